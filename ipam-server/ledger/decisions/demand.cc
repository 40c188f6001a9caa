#include "ipam-server/ledger/decisions/demand.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/plan.h"
#include "ipam-server/ledger/promises.h"
#include "ipam-server/ledger/targets.h"
#include "lib/base/time_text.h"

namespace spoke::ipam {
namespace {

// The time in which an agent that has assigned to a waiting pod says who still waits, if that has
// changed at all: a pod may have come for each that was served, and nothing was to be said.
constexpr absl::Duration kServedFor = absl::Seconds(2);

void Append(std::string& text, std::string_view more) {
  if (more.empty()) return;
  if (!text.empty()) text += "; ";
  text += more;
}

std::string PoolsIn(const Fleet& fleet, const GroupState& state) {
  std::string names;
  for (const size_t index : state.group->pools) {
    names += (names.empty() ? "" : ", ") + fleet.ledger.pools()[index].pool.spec().name;
  }
  return names;
}

// The node would get more, and something is in the way.
std::string WhyNotGrown(const Fleet& fleet, const NodeRecord& record, const GroupState& state) {
  if (record.mode == NodeMode::kFrozen) {
    return fmt::format("node {} is frozen: spokectl node unfreeze {}", record.key.name,
                       record.key.name);
  }
  if (fleet.policy.cloud_chooses && !record.nic_read) {
    return "the cloud has yet to say what is on the node's NIC";
  }
  const size_t entries = record.configurations.size() + record.wanted.size();
  if (entries >= fleet.policy.nic_configurations) {
    return fmt::format("the node's NIC has {} IP configurations and takes no more", entries);
  }
  const Promises promises = AllPromises(fleet);
  std::string text;
  for (const size_t index : state.group->pools) {
    Append(text, fleet.ledger.pools()[index].pool.Describe());
    if (index < promises.by_pool.size() && promises.by_pool[index] > 0) {
      text += fmt::format(", {} promised to reservations", promises.by_pool[index]);
    }
  }
  if (fleet.breaker.frozen()) {
    Append(text, fmt::format("releases are frozen: {}", fleet.breaker.state().freeze->reason));
  }
  return "no address is free: " + text;
}

std::string StandingOf(const Fleet& fleet, const NodeRecord& record, const GroupState& state,
                       const CloudStanding& cloud) {
  std::string text;
  if (state.counts.attaching > 0) {
    text = fmt::format("asked the cloud for {} addresses of pool {}", state.counts.attaching,
                       PoolsIn(fleet, state));
    if (!cloud.failure.empty()) {
      text += fmt::format(", but {}; ", cloud.failure);
      text += cloud.retry_at ? "the next attempt is at " + base::ClockText(*cloud.retry_at)
                             : "it is asked again";
    } else if (!cloud.waits_for.empty()) {
      text += fmt::format(", which waits for {}", cloud.waits_for);
    }
  }
  if (state.counts.staying() < state.target) {
    Append(text, WhyNotGrown(fleet, record, state));
  } else if (state.counts.used() + state.waiting > state.target) {
    Append(text, fmt::format("the node is at its maximum of {} addresses of pool {}", state.target,
                             PoolsIn(fleet, state)));
  } else if (text.empty()) {
    text = fmt::format("the node has {} available addresses, and its agent is told of them",
                       state.counts.available);
  }
  return text;
}

}  // namespace

Effects OnDemand(Fleet& fleet, const NodeKey& key, node_api::Demand demand, absl::Time now) {
  Effects effects;
  NodeRecord* const node = fleet.ledger.Find(key);
  if (node == nullptr) return effects;
  std::erase_if(demand.waiting, [](const auto& entry) { return entry.second == 0; });
  const bool waited = fleet.demands.contains(key);
  if (demand.waiting.empty()) {
    fleet.demands.erase(key);
    return effects;
  }
  fleet.demands.insert_or_assign(key, StatedDemand{.said = std::move(demand)});
  // What was asked for already is wanted sooner now.
  if (!waited && CountAddresses(*node).attaching > 0) effects.attach.insert(key);
  effects.Merge(PlanNode(fleet, key, now));
  return effects;
}

void ServeWaiting(Fleet& fleet, const NodeKey& key,
                  const std::vector<const node_api::Assignment*>& in_use, absl::Time now) {
  const auto demand = fleet.demands.find(key);
  if (demand == fleet.demands.end()) return;
  // A pod with an address of each family waited once.
  std::set<std::pair<std::string_view, std::string_view>> attachments;
  for (const node_api::Assignment* assignment : in_use) {
    const node_api::Lessee& lessee = assignment->lessee;
    if (!attachments.emplace(lessee.container_id, lessee.ifname).second) continue;
    ++demand->second.served[lessee.pod_namespace];
  }
  demand->second.served_at = now;
}

void ForgetServed(Fleet& fleet, Effects& effects, absl::Time now) {
  for (auto& [key, demand] : fleet.demands) {
    const absl::Duration passed = now - demand.served_at;
    if (demand.served.empty() || (passed >= absl::ZeroDuration() && passed < kServedFor)) continue;
    demand.served.clear();
    effects.plan.insert(key);
  }
}

uint64_t WaitingPods(const Fleet& fleet) {
  uint64_t pods = 0;
  for (const auto& [key, demand] : fleet.demands) pods += demand.said.pods();
  return pods;
}

node_api::Forecast ForecastOf(const Fleet& fleet, const NodeRecord& record,
                              const CloudStanding& cloud, absl::Time now) {
  const std::string& name = record.key.name;
  if (record.mode == NodeMode::kDraining) {
    return {.reason = fmt::format(
                "node {} is draining and gets no more addresses: spokectl node undrain {}", name,
                name)};
  }
  if (record.mode == NodeMode::kRetired) {
    return {.reason = fmt::format("another VM has the name of node {} now", name)};
  }
  if (IsEnding(fleet, record.key)) {
    return {.reason = fmt::format(
                "the cloud is about to delete the machine of node {} ({}), which gets no more "
                "addresses: spokectl maintenance list",
                name, fleet.ending.at(record.key).kind)};
  }
  node_api::Forecast forecast;
  bool served = false;
  bool under_way = false;
  for (const GroupState& state : GroupStatesOf(fleet, record)) {
    if (state.waiting == 0) continue;
    served = true;
    under_way = under_way || state.counts.attaching > 0;
    Append(forecast.reason, StandingOf(fleet, record, state, cloud));
  }
  if (!served) {
    Append(forecast.reason,
           "no pool is meant for these pods on this node: compare the node's labels and virtual "
           "network, and the pods' namespaces, with: spokectl pool list -o wide");
  }
  Append(forecast.reason, ProblemOf(record));
  if (under_way && cloud.eta && cloud.failure.empty()) {
    // What is overdue is still to come; zero would mean that nobody knows.
    forecast.eta = std::max(*cloud.eta - now, absl::Milliseconds(1));
  }
  return forecast;
}

}  // namespace spoke::ipam
