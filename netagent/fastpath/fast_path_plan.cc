#include "netagent/fastpath/fast_path_plan.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"

namespace spoke::netagent {
namespace {

// Returns what is never forwarded the short way, whatever its class.
std::vector<AddressBlock<bool>> Excluded(const ClassMap& classes, const NodeNetwork& network,
                                         const std::set<ip::Address>& ordinary) {
  std::vector<AddressBlock<bool>> blocks;
  const auto put = [&](const ip::Prefix& block) { blocks.push_back({block, true}); };
  for (const ip::Prefix& services : classes.services()) put(services);
  for (const ip::Address& address : ordinary) put(ip::Prefix::Host(address));
  for (const NodeAddress& own : network.addresses) {
    put(ip::Prefix::Host(own.address));
    const auto subnet = ip::Prefix::Of(own.address, own.prefix_length);
    // In a /31 both addresses are hosts' (RFC 3021); IPv6 has no broadcast, but the first address
    // is any router's (RFC 4291).
    if (!subnet.ok() || own.prefix_length >= own.address.bits() - 1) continue;
    put(ip::Prefix::Host(subnet->base()));
    if (own.address.is_v4()) put(ip::Prefix::Host(subnet->last()));
  }
  for (const char* text : {"127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3", "0.0.0.0/8", "::/127",
                           "fe80::/10", "ff00::/8"}) {
    put(ip::Prefix::Parse(text).value());
  }
  return blocks;
}

// A range's way out; nothing: there is none.
using Way = std::optional<std::optional<ip::Address>>;

std::vector<AddressRange<Way>> Ways(const NodeNetwork& network, ip::Family family) {
  std::vector<NodeRoute> routes = network.routes;
  // Among equal destinations the lowest metric comes last, and so wins.
  std::stable_sort(routes.begin(), routes.end(),
                   [](const NodeRoute& a, const NodeRoute& b) { return a.metric > b.metric; });
  std::vector<AddressBlock<Way>> blocks;
  for (const NodeRoute& route : routes) {
    if (route.ours) continue;  // Pods are in the map of local addresses.
    const bool by_uplink = route.device != 0 && route.device == network.uplink_index;
    blocks.push_back({route.destination, by_uplink ? Way(route.gateway) : Way()});
  }
  return Flatten<Way>(std::move(blocks), family, Way());
}

}  // namespace

std::vector<FastHop> PlanHops(const ClassMap& classes, const NodeNetwork& network,
                              ip::Family family, const std::set<ip::Address>& ordinary) {
  std::vector<AddressRange<ClassNumber>> numbers;
  for (const ClassRange& range : classes.ranges(family)) {
    numbers.push_back({range.first, range.last, range.number});
  }
  auto excluded = Excluded(classes, network, ordinary);
  const auto allowed = Merge<bool>(
      numbers,
      [&] {
        // Every excluded block counts, and none is put back by one inside it.
        return Flatten<bool>(std::move(excluded), family, false);
      }(),
      [](ClassNumber number, bool out) { return number == kCluster && !out; });
  std::vector<FastHop> hops;
  for (const auto& range : Merge<Way>(allowed, Ways(network, family),
                                      [](bool ok, const Way&way) { return ok ? way : Way(); })) {
    if (range.value) hops.push_back({range.first, range.last, *range.value});
  }
  return hops;
}

FastPathPlan FastPathPlan::Plan(const FastPathSettings& settings, const ClassMap& classes,
                                const NodeNetwork& network) {
  FastPathPlan plan;
  plan.network_ = network;
  plan.hops_v4_ = PlanHops(classes, network, ip::Family::kV4, settings.ordinary);
  plan.hops_v6_ = PlanHops(classes, network, ip::Family::kV6, settings.ordinary);
  if (!settings.wanted) {
    plan.state_ = "off by configuration";
  } else if (!settings.missing.empty()) {
    plan.state_ = "the kernel lacks " + settings.missing;
  } else if (network.uplink_index == 0) {
    plan.state_ = fmt::format("the NIC {} is not there", network.uplink);
  } else if (!settings.obstacles.all.empty()) {
    plan.state_ = settings.obstacles.all;
  } else if (network.foreign_rules) {
    plan.state_ = "routing rules of others are in the kernel";
  } else if (plan.hops_v4_.empty() && plan.hops_v6_.empty()) {
    plan.state_ = "no policy says what the cluster is";
  } else if (std::max(plan.hops_v4_.size(), plan.hops_v6_.size()) > kMaxFastHops) {
    plan.state_ = fmt::format("the cluster's addresses are in {} pieces; {} are the most",
                              std::max(plan.hops_v4_.size(), plan.hops_v6_.size()), kMaxFastHops);
  } else {
    plan.on_ = true;
    plan.takes_new_pods_ = settings.obstacles.new_pods.empty();
    plan.state_ = plan.takes_new_pods_ ? "on" : "not for new pods: " + settings.obstacles.new_pods;
  }
  return plan;
}

std::string FastPathPlan::WhyNot(const TrafficPod& pod, bool kept_by_policy) const {
  if (!on_) return state_;
  if (pod.host_index == 0) return "its link is not known";
  if (!pod.on_first_nic) return "its address is on another NIC";
  if (pod.shaped) return "its bandwidth is limited";
  if (pod.mtu != network_.uplink_mtu) {
    return fmt::format("its MTU is {} and the NIC's {}", pod.mtu, network_.uplink_mtu);
  }
  if (kept_by_policy) return "an egress policy covers its cluster traffic";
  return "";
}

std::set<ip::Address> FastPathPlan::Local() const {
  std::set<ip::Address> local;
  for (const NodeAddress& own : network_.addresses) local.insert(own.address);
  for (const NodeRoute& route : network_.routes) {
    const ip::Address address = route.destination.base();
    if (route.ours && route.destination == ip::Prefix::Host(address)) local.insert(address);
  }
  return local;
}

FastPathTable FastPathPlan::Table() const {
  if (!on_) return {};
  FastPathTable table{.uplink = network_.uplink, .hops = {}};
  table.hops = hops_v4_;
  table.hops.insert(table.hops.end(), hops_v6_.begin(), hops_v6_.end());
  return table;
}

}  // namespace spoke::netagent
