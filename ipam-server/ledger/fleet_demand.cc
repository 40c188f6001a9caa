// Pods that wait for addresses: what their node gets for them, and what it is told.
#include <algorithm>
#include <set>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/fleet.h"

namespace spoke::ipam {
namespace {

// The time in which an agent that has assigned to a waiting pod says who still waits, if that has
// changed at all: a pod may have come for each that was served, and nothing was to be said.
constexpr absl::Duration kServedFor = absl::Seconds(2);

bool Names(const PoolGroup& group, const std::string& pod_namespace) {
  return std::find(group.namespaces.begin(), group.namespaces.end(), pod_namespace) !=
         group.namespaces.end();
}

uint32_t Left(const std::map<std::string, uint32_t>& served, const std::string& pod_namespace,
              uint32_t waiting) {
  const auto it = served.find(pod_namespace);
  return it == served.end() ? waiting : waiting - std::min(waiting, it->second);
}

void Append(std::string& text, std::string_view more) {
  if (more.empty()) return;
  if (!text.empty()) text += "; ";
  text += more;
}

}  // namespace

Effects Fleet::OnDemand(const NodeKey& key, node_api::Demand demand, absl::Time now) {
  Effects effects;
  const auto node = nodes_.find(key);
  if (node == nodes_.end()) return effects;
  std::erase_if(demand.waiting, [](const auto& entry) { return entry.second == 0; });
  const bool waited = demands_.contains(key);
  if (demand.waiting.empty()) {
    demands_.erase(key);
    return effects;
  }
  demands_.insert_or_assign(key, StatedDemand{.said = std::move(demand)});
  // What was asked for already is wanted sooner now.
  if (!waited && CountAddresses(node->second).attaching > 0) effects.attach.insert(key);
  effects.Merge(Plan(key, now));
  return effects;
}

void Fleet::TakeUnstored(const Fleet& former) {
  doubled_ = former.doubled_;
  demands_ = former.demands_;
  std::erase_if(demands_, [this](const auto& entry) { return !nodes_.contains(entry.first); });
}

const node_api::Demand* Fleet::DemandOf(const NodeKey& key) const {
  const auto it = demands_.find(key);
  return it == demands_.end() ? nullptr : &it->second.said;
}

std::vector<NodeKey> Fleet::NodesInDemand() const {
  std::vector<NodeKey> nodes;
  nodes.reserve(demands_.size());
  for (const auto& [key, demand] : demands_) nodes.push_back(key);
  return nodes;
}

uint64_t Fleet::WaitingPods() const {
  uint64_t pods = 0;
  for (const auto& [key, demand] : demands_) pods += demand.said.pods();
  return pods;
}

// Adds waiting pods as agents choose pools: those that name the pod's namespace, or else those
// that name none, of each family. Where several groups name it an address of any will do, and
// since one of them may have none, each is to provide.
void Fleet::AddWaiting(const NodeRecord& record, std::vector<GroupState>& states) const {
  const auto demand = demands_.find(record.key);
  if (demand == demands_.end()) return;
  for (const auto& [pod_namespace, said] : demand->second.said.waiting) {
    const uint32_t waiting = Left(demand->second.served, pod_namespace, said);
    std::set<ip::Family> named;
    for (const GroupState& state : states) {
      if (Names(*state.group, pod_namespace)) named.insert(state.group->family);
    }
    for (GroupState& state : states) {
      const bool serves = named.contains(state.group->family) ? Names(*state.group, pod_namespace)
                                                              : state.group->namespaces.empty();
      if (serves) state.waiting += waiting;
    }
  }
}

void Fleet::ServeWaiting(const NodeKey& key, const std::vector<const node_api::Assignment*>& in_use,
                         absl::Time now) {
  const auto demand = demands_.find(key);
  if (demand == demands_.end()) return;
  // A pod with an address of each family waited once.
  std::set<std::pair<std::string_view, std::string_view>> attachments;
  for (const node_api::Assignment* assignment : in_use) {
    const node_api::Lessee& lessee = assignment->lessee;
    if (!attachments.emplace(lessee.container_id, lessee.ifname).second) continue;
    ++demand->second.served[lessee.pod_namespace];
  }
  demand->second.served_at = now;
}

void Fleet::ForgetServed(Effects& effects, absl::Time now) {
  for (auto& [key, demand] : demands_) {
    const absl::Duration passed = now - demand.served_at;
    if (demand.served.empty() || (passed >= absl::ZeroDuration() && passed < kServedFor)) continue;
    demand.served.clear();
    effects.plan.insert(key);
  }
}

node_api::Forecast Fleet::ForecastOf(const NodeRecord& record, const CloudStanding& cloud,
                                     absl::Time now) const {
  const std::string& name = record.key.name;
  if (record.mode == NodeMode::kDraining) {
    return {.reason = fmt::format(
                "node {} is draining and gets no more addresses: spokectl node undrain {}", name,
                name)};
  }
  if (record.mode == NodeMode::kRetired) {
    return {.reason = fmt::format("another VM has the name of node {} now", name)};
  }
  node_api::Forecast forecast;
  bool served = false;
  bool under_way = false;
  for (const GroupState& state : GroupStatesOf(record)) {
    if (state.waiting == 0) continue;
    served = true;
    under_way = under_way || state.counts.attaching > 0;
    Append(forecast.reason, StandingOf(record, state, cloud));
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

std::string Fleet::PoolsIn(const GroupState& state) const {
  std::string names;
  for (const size_t index : state.group->pools) {
    names += (names.empty() ? "" : ", ") + pools_[index].pool.spec().name;
  }
  return names;
}

std::string Fleet::StandingOf(const NodeRecord& record, const GroupState& state,
                              const CloudStanding& cloud) const {
  std::string text;
  if (state.counts.attaching > 0) {
    text = fmt::format("asked the cloud for {} addresses of pool {}", state.counts.attaching,
                       PoolsIn(state));
    if (!cloud.failure.empty()) {
      text += fmt::format(", but {}; ", cloud.failure);
      text += cloud.retry_at
                  ? "the next attempt is at " +
                        absl::FormatTime(absl::RFC3339_sec, *cloud.retry_at, absl::UTCTimeZone())
                  : "it is asked again";
    } else if (!cloud.waits_for.empty()) {
      text += fmt::format(", which waits for {}", cloud.waits_for);
    }
  }
  if (state.counts.staying() < state.target) {
    Append(text, WhyNotGrown(record, state));
  } else if (state.counts.used() + state.waiting > state.target) {
    Append(text, fmt::format("the node is at its maximum of {} addresses of pool {}", state.target,
                             PoolsIn(state)));
  } else if (text.empty()) {
    text = fmt::format("the node has {} available addresses, and its agent is told of them",
                       state.counts.available);
  }
  return text;
}

// The node would get more, and something is in the way.
std::string Fleet::WhyNotGrown(const NodeRecord& record, const GroupState& state) const {
  if (record.mode == NodeMode::kFrozen) {
    return fmt::format("node {} is frozen: spokectl node unfreeze {}", record.key.name,
                       record.key.name);
  }
  if (policy_.cloud_chooses && !record.nic_read) {
    return "the cloud has yet to say what is on the node's NIC";
  }
  const size_t entries = record.configurations.size() + record.wanted.size();
  if (entries >= policy_.nic_configurations) {
    return fmt::format("the node's NIC has {} IP configurations and takes no more", entries);
  }
  const Promises promises = AllPromises();
  std::string text;
  for (const size_t index : state.group->pools) {
    Append(text, pools_[index].pool.Describe());
    if (index < promises.by_pool.size() && promises.by_pool[index] > 0) {
      text += fmt::format(", {} promised to reservations", promises.by_pool[index]);
    }
  }
  if (breaker_.frozen()) {
    Append(text, fmt::format("releases are frozen: {}", breaker_.state().freeze->reason));
  }
  return "no address is free: " + text;
}

}  // namespace spoke::ipam
