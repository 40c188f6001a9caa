#include "netagent/egress/egress_plan.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/claims.h"

namespace spoke::netagent {
namespace {

// The most exceptions of all profiles together; each is an element of a set.
constexpr size_t kMaxExceptions = 65'536;
// The most cells: a number has 16 bits in the rules, and one of them is none.
constexpr size_t kMaxCells = 65'535;

// Returns FNV-1a over the address and the slot, and a last mix (of MurmurHash3), so that neighbours
// in address and slot have nothing in common.
uint64_t Weight(const ip::Address& address, uint32_t slot) {
  uint64_t hash = 0xCBF2'9CE4'8422'2325;
  const auto add = [&](uint8_t byte) { hash = (hash ^ byte) * 0x0000'0100'0000'01B3; };
  for (const char c : address.ToBytes()) add(static_cast<uint8_t>(c));
  for (uint32_t shift = 0; shift < 32; shift += 8) add(static_cast<uint8_t>(slot >> shift));
  hash = (hash ^ (hash >> 33U)) * 0xFF51'AFD7'ED55'8CCD;
  return hash ^ (hash >> 33U);
}

EgressAction ActionIn(const Cell& cell, const Profile& profile) {
  if (cell.platform) return kPlatformAction;
  for (const uint32_t policy : cell.policies) {
    if (std::binary_search(profile.begin(), profile.end(), policy)) return kFirstPolicy + policy;
  }
  return kLeaveAlone;
}

ProfileActions ActionsOf(const Profile& profile, const std::vector<Cell>& cells) {
  ProfileActions out;
  std::vector<EgressAction> by_cell;
  std::map<EgressAction, size_t> how_often;
  for (const Cell& cell : cells) {
    by_cell.push_back(ActionIn(cell, profile));
    ++how_often[by_cell.back()];
    out.in_cluster = out.in_cluster || (cell.cluster && by_cell.back() != kLeaveAlone);
  }
  // What most cells have needs no elements.
  size_t most = 0;
  for (const auto& [action, count] : how_often) {
    if (count > most) out.usual = action;
    most = std::max(most, count);
  }
  for (uint32_t cell = 0; cell < by_cell.size(); ++cell) {
    if (by_cell[cell] != out.usual) out.exceptions.emplace(cell, by_cell[cell]);
  }
  return out;
}

std::set<GatewayEndpoint> AllGateways(const EgressPlan& plan) {
  std::set<GatewayEndpoint> all;
  for (const ResolvedEgress& policy : plan.resolved.policies) {
    for (const ResolvedGateway& gateway : policy.gateways) {
      if (!plan.settings.own.contains(gateway.endpoint.address)) all.insert(gateway.endpoint);
    }
  }
  return all;
}

// Gives gateways their marks. A mark is a gateway's for as long as there is room: a flow of it may
// go on for days.
absl::Status GiveMarks(EgressPlan& plan) {
  const std::set<GatewayEndpoint> needed = AllGateways(plan);
  if (needed.size() > claims::kGatewayMarks) {
    return absl::InvalidArgumentError(
        fmt::format("EgressPolicy/{} and the others name {} gateways; at most {} are taken",
                    plan.resolved.policies.front().name, needed.size(), claims::kGatewayMarks));
  }
  for (const auto& [mark, endpoint] : plan.settings.known_marks) {
    if (mark - claims::kFirstGatewayMark >= claims::kGatewayMarks) continue;
    if (plan.mark_of.emplace(endpoint, mark).second) plan.marks.emplace(mark, endpoint);
  }
  const auto evict = [&] {
    for (auto mark = plan.marks.begin(); mark != plan.marks.end(); ++mark) {
      if (needed.contains(mark->second)) continue;
      plan.mark_of.erase(mark->second);
      plan.marks.erase(mark);
      return;
    }
  };
  for (const GatewayEndpoint& endpoint : needed) {
    if (plan.mark_of.contains(endpoint)) continue;
    if (plan.marks.size() == claims::kGatewayMarks) evict();
    uint32_t mark = claims::kFirstGatewayMark;
    while (plan.marks.contains(mark)) ++mark;
    plan.marks.emplace(mark, endpoint);
    plan.mark_of.emplace(endpoint, mark);
  }
  return absl::OkStatus();
}

void FindTunnels(EgressPlan& plan) {
  plan.tunnel_port = plan.resolved.tunnel_port;
  // Flows that began by it go on.
  if (!plan.tunnel_port) plan.tunnel_port = plan.settings.known_tunnel_port;
  for (const ResolvedEgress& policy : plan.resolved.policies) {
    for (const ResolvedGateway& gateway : policy.gateways) {
      if (gateway.endpoint.is_tunnel()) plan.tunnel_gateways.insert(gateway.endpoint.address);
    }
  }
  for (const auto& [mark, endpoint] : plan.marks) {
    if (endpoint.is_tunnel()) plan.tunnel_gateways.insert(endpoint.address);
  }
}

void FindInside(const ClassMap& classes, EgressPlan& plan) {
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    for (const ClassRange& range : classes.ranges(family)) {
      if (range.number == kCluster) plan.cluster.push_back(range);
      if (range.number != kInternet && range.number < kFirstGroup) plan.inside.push_back(range);
    }
  }
}

}  // namespace

bool EgressPlan::Cuts() const {
  return std::any_of(resolved.policies.begin(), resolved.policies.end(),
                     [](const ResolvedEgress& policy) { return policy.cuts; });
}

EgressAction EgressPlan::ActionOf(uint32_t profile, const ip::Address& far) const {
  const ProfileActions& does = actions.at(profile);
  const auto exception = does.exceptions.find(cells.CellOf(far));
  return exception == does.exceptions.end() ? does.usual : exception->second;
}

std::vector<GatewayEndpoint> EgressPlan::Open(const ResolvedEgress& policy,
                                              ip::Family family) const {
  std::vector<GatewayEndpoint> open;
  for (const ResolvedGateway& gateway : policy.gateways) {
    if (gateway.endpoint.address.family() != family || gateway.draining) continue;
    const bool self = settings.own.contains(gateway.endpoint.address);
    if (self || healthy.contains(gateway.endpoint)) open.push_back(gateway.endpoint);
  }
  return open;
}

std::vector<GatewayEndpoint> EgressPlan::Slots(const std::vector<GatewayEndpoint>& open) {
  std::vector<GatewayEndpoint> slots;
  for (uint32_t slot = 0; slot < kGatewaySlots; ++slot) {
    slots.push_back(*std::max_element(
        open.begin(), open.end(), [&](const GatewayEndpoint& a, const GatewayEndpoint& b) {
          return std::pair(Weight(a.address, slot), a) < std::pair(Weight(b.address, slot), b);
        }));
  }
  return slots;
}

absl::StatusOr<EgressPlan> PlanEgress(const Policy& policy, const ClassMap& classes,
                                      const std::set<GatewayEndpoint>& healthy,
                                      const EgressSettings& settings) {
  EgressPlan plan;
  plan.settings = settings;
  plan.healthy = healthy;
  ASSIGN_OR_RETURN(plan.resolved, ResolveEgress(policy, settings.ip_masq));
  std::vector<Destinations> destinations;
  for (const ResolvedEgress& egress : plan.resolved.policies) {
    destinations.push_back(egress.destinations);
  }
  plan.cells = CutIntoCells(destinations, classes, settings.own);
  if (plan.cells.cells.size() > kMaxCells) {
    return absl::InvalidArgumentError(
        fmt::format("egress policies cut destinations into {} kinds; at most {} are taken",
                    plan.cells.cells.size(), kMaxCells));
  }
  size_t exceptions = 0;
  for (const Profile& profile : plan.resolved.profiles) {
    plan.actions.push_back(ActionsOf(profile, plan.cells.cells));
    exceptions += plan.actions.back().exceptions.size();
  }
  if (exceptions > kMaxExceptions) {
    return absl::InvalidArgumentError(
        fmt::format("egress policies cut destinations and namespaces into {} cases; at most {} are "
                    "taken",
                    exceptions, kMaxExceptions));
  }
  RETURN_IF_ERROR(GiveMarks(plan));
  FindTunnels(plan);
  if (settings.is_gateway) FindInside(classes, plan);
  return plan;
}

}  // namespace spoke::netagent
