#include "ipam-server/admin/explain.h"

#include <algorithm>

#include "fmt/core.h"
#include "ipam-server/admin/describe.h"
#include "ipam-server/ledger/targets.h"
#include "lib/base/status.h"
#include "lib/base/time_text.h"

namespace spoke::ipam {
namespace {

// The most private addresses of one virtual network (Azure subscription and service limits).
constexpr uint64_t kVnetAddresses = 65'536;

// Returns "in 40s", or "now" for what is due.
std::string Until(const FleetView& view, absl::Time time) {
  return time <= view.now ? "now" : "in " + base::AgeText(time - view.now);
}

std::string AgeOf(const FleetView& view, absl::Time since) {
  return base::AgeText(view.now - since);
}

template <typename... Args>
void Say(v1::ExplainResponse& out, fmt::format_string<Args...> format, Args&&... args) {
  out.add_details(fmt::format(format, std::forward<Args>(args)...));
}

void SayCounts(const Fleet& fleet, const NodeRecord& record, v1::ExplainResponse& out) {
  const AddressCounts counts = CountAddresses(record);
  const uint64_t withheld = CountWithheld(fleet, record);
  Say(out, "addresses: {} available, {} in use, {} in cooldown, {} attaching, {} detaching",
      counts.available - withheld, counts.in_use, counts.cooldown, counts.attaching,
      counts.detaching);
  if (withheld == 0) return;
  Say(out, "no pod gets {} more, which are in quarantine, or off the NIC", withheld);
}

// Returns what the cloud refuses of the node, as the operator is told; nullptr: nothing.
const std::string* CloudProblemOf(const FleetView& view, const NodeRecord& record) {
  const auto problem = view.problems.find(CloudTopicOf(record.key));
  return problem == view.problems.end() ? nullptr : &problem->second;
}

void SayCloud(const FleetView& view, const NodeRecord& record, v1::ExplainResponse& out) {
  const AddressCounts counts = CountAddresses(record);
  const auto forecast = view.cloud.ForecastOf(record.key);
  const std::string* const problem = CloudProblemOf(view, record);
  if (forecast && problem != nullptr) {
    // Another attempt heals nothing, so that no time is said at which the node is well.
    Say(out, "the cloud refused the last change of its NIC, and is asked again {}",
        Until(view, forecast->eta));
    out.add_details(*problem);
    return;
  }
  if (forecast) {
    Say(out, "a change of its NIC waits for the cloud, in lane {}, and should be done {}: {}",
        NameOf(forecast->lane), Until(view, forecast->eta), forecast->waits_for);
    out.set_eta_unix_ms(absl::ToUnixMillis(forecast->eta));
    return;
  }
  const auto retry = view.cloud_retries.find(record.key);
  if (retry != view.cloud_retries.end()) {
    Say(out, "the cloud refused the last change of its NIC; the next attempt is {}",
        Until(view, retry->second));
  } else if (counts.attaching + counts.detaching > 0) {
    Say(out, "the cloud has been asked to change its NIC and has not answered yet");
  }
  if (problem != nullptr) out.add_details(*problem);
}

void SayFindings(const Session& session, v1::ExplainResponse& out) {
  for (const node_api::NodeFinding& finding : session.findings) {
    Say(out, "its check {} {}: {} {}. Remedy: {}", finding.check,
        finding.blocking ? "finds what keeps pods from working" : "warns", finding.object,
        finding.what, finding.remedy);
  }
}

bool IsBlocked(const Session& session) {
  return std::any_of(session.findings.begin(), session.findings.end(),
                     [](const node_api::NodeFinding& finding) { return finding.blocking; });
}

absl::StatusOr<v1::ExplainResponse> ExplainNode(const FleetView& view, const std::string& name) {
  const NodeRecord* record = FindByName(view.fleet.ledger, name);
  if (record == nullptr) {
    return absl::NotFoundError(
        fmt::format("there is no node {}, since no agent has said hello for it: is spoke-netagent "
                    "running there, with the right server address and certificate?",
                    name));
  }
  v1::ExplainResponse out;
  const std::string shortage = ShortageOf(view.fleet, *record);
  const auto session = view.sessions.find(record->key);
  Say(out, "VM {}, boot {}, mode {}", record->key.vm_id, record->boot_id, NameOf(record->mode));
  if (session == view.sessions.end()) {
    Say(out, "its agent is away: it assigns what it has, and gets nothing new until it is back");
  } else {
    Say(out, "its agent is connected (session {}, version {})", record->session_epoch,
        session->second.agent_version);
    if (session->second.acked_version < session->second.desired_version) {
      Say(out, "it has not yet acknowledged its newest addresses");
    }
    SayFindings(session->second, out);
  }
  SayCounts(view.fleet, *record, out);
  Say(out, "target: {} addresses, {} of them per family for reservations",
      TargetOf(view.fleet, *record), view.fleet.reservations.ReservedFor(name));
  const auto demand = view.fleet.demands.find(record->key);
  if (demand != view.fleet.demands.end()) {
    Say(out, "{} pods wait there for addresses", demand->second.said.pods());
    if (session != view.sessions.end() && !session->second.forecast.reason.empty()) {
      Say(out, "their runtimes are told: {}", session->second.forecast.reason);
    }
  }
  SayCloud(view, *record, out);
  if (view.fleet.breaker.frozen()) {
    Say(out, "releases are frozen: {}", view.fleet.breaker.state().freeze->reason);
  }
  if (record->mode == NodeMode::kDraining) {
    out.set_summary(
        fmt::format("node {} is draining: it gets no more addresses (spokectl node "
                    "undrain {})",
                    name, name));
  } else if (session != view.sessions.end() && IsBlocked(session->second)) {
    out.set_summary(fmt::format("pods do not work on node {}, as its agent's checks find", name));
  } else if (!shortage.empty()) {
    out.set_summary(fmt::format("node {} {}", name, shortage));
  } else if (CountAddresses(*record).attaching > 0 && RefusesCloud(view, record->key)) {
    out.set_summary(
        fmt::format("node {} gets no addresses: the cloud refuses to change its NIC", name));
  } else if (CountAddresses(*record).attaching > 0) {
    out.set_summary(fmt::format("node {} is getting addresses now", name));
  } else if (demand != view.fleet.demands.end() && demand->second.said.pods() > 0) {
    out.set_summary(fmt::format("pods wait on node {} for addresses", name));
  } else {
    out.set_summary(fmt::format("node {} has what it should have", name));
  }
  return out;
}

// Counts the addresses of each pool that its records call free, and that are nodes' own.
std::map<const PoolEntry*, uint64_t> OwnByPool(const FleetView& view) {
  std::map<const PoolEntry*, uint64_t> own;
  for (const auto& [key, session] : view.sessions) {
    for (const ip::Address& address : session.own_addresses) {
      const PoolEntry* entry = view.fleet.ledger.pools().Covering(address);
      if (entry == nullptr || entry->pool.StateOf(address) != AddressPool::State::kFree) continue;
      ++own[entry];
    }
  }
  return own;
}

absl::StatusOr<v1::ExplainResponse> ExplainAddress(const FleetView& view, const std::string& text) {
  ASSIGN_OR_RETURN(const ip::Address address, ip::Address::Parse(text));
  const PoolEntry* entry = view.fleet.ledger.pools().Covering(address);
  if (entry == nullptr) {
    return absl::NotFoundError(
        fmt::format("{} is in none of the pools; see: spokectl pool list", text));
  }
  v1::ExplainResponse out;
  const AddressPool& pool = entry->pool;
  Say(out, "{}", pool.Describe());
  const auto& quarantine = view.fleet.ledger.quarantine().entries;
  if (const auto it = quarantine.find(address); it != quarantine.end()) {
    Say(out, "in quarantine for {}: {}", AgeOf(view, it->second.since), it->second.reason);
    Say(out, "when the cause is gone: spokectl ip quarantine {} --lift", text);
  }
  switch (pool.StateOf(address)) {
    case AddressPool::State::kExcluded:
      out.set_summary(
          fmt::format("{} is never handed out: it is among the first {} or the last "
                      "{} of its subnet, or in no whole block",
                      text, pool.spec().reserve_first, pool.spec().reserve_last));
      return out;
    case AddressPool::State::kFree:
      if (const NodeKey* node = OwnAddressOf(view, address); node != nullptr) {
        out.set_summary(
            fmt::format("{} is the own address of node {}, and for no pod", text, node->name));
        Say(out, "pool {} contains it all the same: let its reserveFirst or its CIDR leave it out",
            pool.spec().name);
        return out;
      }
      out.set_summary(fmt::format("{} is free", text));
      return out;
    case AddressPool::State::kQuarantined:
      out.set_summary(fmt::format("{} is in quarantine and not handed out", text));
      return out;
    case AddressPool::State::kCooldown:
      out.set_summary(fmt::format("{} was taken off its node and is in cooldown, which ends {}",
                                  text, Until(view, pool.UsableFrom(address))));
      out.set_eta_unix_ms(absl::ToUnixMillis(pool.UsableFrom(address)));
      return out;
    case AddressPool::State::kHeld:
      break;
  }
  const NodeRecord& record = *pool.OwnerOf(address);
  const Configuration& configuration = *record.Holding(address);
  const Slot& slot = configuration.At(address);
  out.set_summary(fmt::format("{} is {} on node {}", text, NameOf(configuration.state, slot.use),
                              record.key.name));
  Say(out, "IP configuration {} ({}) of NIC {}, in this state for {}", configuration.name,
      configuration.range.ToString(), record.nic_mac.ToString(), AgeOf(view, slot.since));
  if (slot.lessee != nullptr) {
    Say(out, "assigned to pod {}/{}, container {}, {}", slot.lessee->pod_namespace,
        slot.lessee->pod_name, slot.lessee->container_id, slot.lessee->ifname);
  }
  if (configuration.denied_until > view.now) {
    Say(out, "its agent would not give it up; it is asked again {}",
        Until(view, configuration.denied_until));
  }
  if (configuration.state != AddressState::kAttached) SayCloud(view, record, out);
  return out;
}

bool FindPod(const FleetView& view, const std::string& pod_namespace, const std::string& name,
             v1::ExplainResponse& out) {
  for (const auto& [key, record] : view.fleet.ledger.nodes()) {
    for (const auto& [base, configuration] : record.configurations) {
      for (size_t i = 0; i < configuration.slots.size(); ++i) {
        const Slot& slot = configuration.slots[i];
        if (slot.lessee == nullptr || slot.lessee->pod_name != name ||
            slot.lessee->pod_namespace != pod_namespace) {
          continue;
        }
        Say(out, "{} on node {} for {}, container {}, {}", configuration.AddressAt(i).ToString(),
            key.name, AgeOf(view, slot.since), slot.lessee->container_id, slot.lessee->ifname);
        if (out.nodes().empty() || *out.nodes().rbegin() != key.name) out.add_nodes(key.name);
      }
    }
  }
  return out.details_size() > 0;
}

absl::StatusOr<v1::ExplainResponse> ExplainPod(const FleetView& view, const std::string& pod) {
  const size_t slash = pod.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == pod.size()) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is no pod; write NAMESPACE/NAME", pod));
  }
  const std::string pod_namespace = pod.substr(0, slash);
  v1::ExplainResponse out;
  if (FindPod(view, pod_namespace, pod.substr(slash + 1), out)) {
    out.set_summary(
        fmt::format("pod {} has {}", pod, out.details_size() == 1 ? "an address" : "addresses"));
    return out;
  }
  out.set_summary(fmt::format("no address is assigned to pod {}", pod));
  for (const PoolEntry& entry : view.fleet.ledger.pools()) {
    const std::vector<std::string>& only = entry.pool.spec().namespaces;
    if (!only.empty() && std::find(only.begin(), only.end(), pod_namespace) == only.end()) continue;
    Say(out, "it could be served from {}", entry.pool.Describe());
  }
  if (out.details_size() == 0) Say(out, "no pool serves namespace {}", pod_namespace);
  Say(out,
      "the node the pod is scheduled to decides: spokectl explain node NAME, and for the steps of "
      "its "
      "ADD spokectl explain pod {} --node NAME; an agent that is away reports its assignments when "
      "it "
      "is back",
      pod);
  return out;
}

void AddLimit(v1::WhatIfResponse& out, std::string what, uint64_t needed, uint64_t available,
              std::string remedy) {
  v1::WhatIfLimit& limit = *out.add_limits();
  limit.set_what(std::move(what));
  limit.set_needed(needed);
  limit.set_available(available);
  limit.set_ok(needed <= available);
  if (!limit.ok()) limit.set_remedy(std::move(remedy));
}

// Addresses in use of each virtual network.
std::map<std::string, uint64_t> UsedByVnet(const Fleet& fleet) {
  std::map<std::string, uint64_t> used;
  for (const PoolEntry& entry : fleet.ledger.pools()) {
    if (!entry.pool.spec().vnet.empty()) used[entry.pool.spec().vnet] += entry.pool.held();
  }
  return used;
}

}  // namespace

const NodeKey* OwnAddressOf(const FleetView& view, const ip::Address& address) {
  for (const auto& [key, session] : view.sessions) {
    const std::vector<ip::Address>& own = session.own_addresses;
    if (std::find(own.begin(), own.end(), address) != own.end()) return &key;
  }
  return nullptr;
}

absl::StatusOr<v1::ExplainResponse> ExplainSubject(const FleetView& view,
                                                   const v1::ExplainRequest& request) {
  const int subjects = (request.pod().empty() ? 0 : 1) + (request.node().empty() ? 0 : 1) +
                       (request.address().empty() ? 0 : 1);
  if (subjects != 1) {
    return absl::InvalidArgumentError("name one pod, one node or one address");
  }
  if (!request.on_node().empty() && request.pod().empty()) {
    return absl::InvalidArgumentError("only a pod is looked for on a node");
  }
  if (!request.pod().empty()) return ExplainPod(view, request.pod());
  if (!request.node().empty()) return ExplainNode(view, request.node());
  return ExplainAddress(view, request.address());
}

absl::StatusOr<v1::WhatIfResponse> JudgeScaleUp(const FleetView& view,
                                                const v1::WhatIfRequest& request) {
  const Fleet& fleet = view.fleet;
  if (request.nodes() == 0) return absl::InvalidArgumentError("ask for one node at least");
  const std::vector<PoolGroup>& groups = fleet.ledger.pools().GroupsFor(
      {request.labels().begin(), request.labels().end()}, request.vnet(), {});
  if (groups.empty()) {
    return absl::InvalidArgumentError(
        "no pool is meant for such nodes; compare the labels and the virtual network with: "
        "spokectl "
        "pool list -o wide");
  }
  v1::WhatIfResponse out;
  const std::map<const PoolEntry*, uint64_t> own = OwnByPool(view);
  uint64_t configurations = 0;
  std::map<std::string, uint64_t> needed_by_vnet;
  for (const PoolGroup& group : groups) {
    // Pods of one namespace only may use the special pools; how many is not known here.
    const uint32_t pods = group.namespaces.empty() ? request.pods_per_node() : 0;
    const uint64_t unit = fleet.ledger.pools()[group.pools.front()].pool.unit_size();
    const uint64_t target = TargetAddresses(group.target, pods);
    const uint64_t per_node = (target + unit - 1) / unit * unit;
    configurations += per_node / unit;
    uint64_t free = 0;
    std::string names;
    for (const size_t index : group.pools) {
      const PoolEntry& entry = fleet.ledger.pools()[index];
      const auto taken = own.find(&entry);
      free += entry.free() - std::min(entry.free(), taken == own.end() ? 0 : taken->second);
      names += (names.empty() ? "" : ", ") + fleet.ledger.pools()[index].pool.spec().name;
    }
    const uint64_t needed = per_node * request.nodes();
    out.set_addresses_needed(out.addresses_needed() + needed);
    needed_by_vnet[fleet.ledger.pools()[group.pools.front()].pool.spec().vnet] += needed;
    AddLimit(out, fmt::format("addresses of pool {}", names), needed, free,
             "add a pool, or make one larger: spokectl pool create, spokectl pool resize");
    AddLimit(out, fmt::format("pods a node from pool {}", names), pods, group.target.max,
             "raise nodeAddresses.max of the pool");
  }
  AddLimit(out, "IP configurations a NIC", configurations, fleet.policy.nic_configurations,
           "use pools with blocks (blockPrefixLength), or fewer pods a node");
  const std::map<std::string, uint64_t> used = UsedByVnet(fleet);
  for (const auto& [vnet, needed] : needed_by_vnet) {
    if (vnet.empty()) continue;
    const auto it = used.find(vnet);
    const uint64_t taken = it == used.end() ? 0 : it->second;
    AddLimit(out, fmt::format("addresses of virtual network {}", vnet), needed,
             kVnetAddresses - std::min(kVnetAddresses, taken),
             "put the nodes into another virtual network, with a pool of its own");
  }
  out.set_fits(std::all_of(out.limits().begin(), out.limits().end(),
                           [](const v1::WhatIfLimit& limit) { return limit.ok(); }));
  return out;
}

void TopUsers::Add(const NodeRecord& record) {
  const AddressCounts counts = CountAddresses(record);
  v1::TopEntry& node = nodes_.emplace_back();
  node.set_name(record.key.name);
  node.set_in_use(counts.in_use);
  node.set_held(counts.total());
  for (const auto& [base, configuration] : record.configurations) {
    for (const Slot& slot : configuration.slots) {
      if (slot.lessee != nullptr) ++in_use_by_namespace_[slot.lessee->pod_namespace];
    }
  }
}

v1::GetTopResponse TopUsers::Describe(uint32_t limit) const {
  const auto more = [](const v1::TopEntry& a, const v1::TopEntry& b) {
    return std::pair(b.in_use(), a.name()) < std::pair(a.in_use(), b.name());
  };
  std::vector<v1::TopEntry> nodes = nodes_;
  std::vector<v1::TopEntry> namespaces;
  for (const auto& [name, in_use] : in_use_by_namespace_) {
    v1::TopEntry& entry = namespaces.emplace_back();
    entry.set_name(name);
    entry.set_in_use(in_use);
  }
  v1::GetTopResponse out;
  for (auto* list : {&nodes, &namespaces}) {
    std::sort(list->begin(), list->end(), more);
    list->resize(std::min<size_t>(list->size(), limit));
    for (v1::TopEntry& entry : *list) {
      *(list == &nodes ? out.add_nodes() : out.add_namespaces()) = std::move(entry);
    }
  }
  return out;
}

}  // namespace spoke::ipam
