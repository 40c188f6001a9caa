// Which machine a node is: who may say what, and when one takes another's place.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/fleet.h"
#include "lib/base/status.h"

namespace spoke::ipam {

const NodeRecord* Fleet::NodeOn(const std::string& instance) const {
  const auto it = on_instance_.find(instance);
  return it == on_instance_.end() ? nullptr : Find(it->second);
}

bool Fleet::HasItsInstance(const NodeRecord& record) const {
  if (record.instance.empty()) return true;
  const NodeRecord* there = NodeOn(record.instance);
  return there == nullptr || there == &record;
}

// An agent speaks for its own node. On another's instance it would take that node's addresses off
// its NIC, and from the cloud's list.
absl::Status Fleet::CheckIdentity(const node_api::Hello& hello, bool instance_proved) const {
  const NodeRecord* known = Find(KeyOf(hello));
  const bool says_instance = !hello.node.instance.empty();
  if (known != nullptr && says_instance && !instance_proved && !known->instance.empty() &&
      known->instance != hello.node.instance) {
    return absl::PermissionDeniedError(fmt::format(
        "node {} (VM {}) is on instance {}, and its agent says {} now: if the machine is gone, "
        "`spokectl node forget {}`",
        hello.node.node_name, hello.node.vm_id, known->instance, hello.node.instance,
        hello.node.node_name));
  }
  const NodeRecord* there = says_instance ? NodeOn(hello.node.instance) : nullptr;
  const bool of_another = there != nullptr && there->key.name != hello.node.node_name &&
                          there->mode != NodeMode::kRetired;
  if (of_another && !(instance_proved && !proved_.contains(there->key))) {
    return absl::PermissionDeniedError(fmt::format(
        "node {} says that it is on instance {}, which is that of node {} (VM {}): if that node is "
        "gone, `spokectl node forget {}`",
        hello.node.node_name, hello.node.instance, there->key.name, there->key.vm_id,
        there->key.name));
  }
  return known != nullptr ? absl::OkStatus() : CheckPredecessors(hello);
}

// Each machine under a name keeps its addresses until the cloud or an operator says that it is
// gone, so that an agent with ever new VM ids would have them all.
absl::Status Fleet::CheckPredecessors(const node_api::Hello& hello) const {
  uint32_t with_addresses = 0;
  for (auto it = nodes_.lower_bound({hello.node.node_name, ""});
       it != nodes_.end() && it->first.name == hello.node.node_name; ++it) {
    const NodeRecord& other = it->second;
    if (!hello.node.boot_id.empty() && other.boot_id == hello.node.boot_id) return absl::OkStatus();
    with_addresses += other.configurations.empty() && other.wanted.empty() ? 0 : 1;
  }
  if (with_addresses < policy_.machines_per_name) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "{} machines under the name {} hold addresses already, and VM {} would be one more: those "
      "that are gone end with `spokectl node forget {} --vm ID`",
      with_addresses, hello.node.node_name, hello.node.vm_id, hello.node.node_name));
}

// CheckIdentity() has let it in: whoever has been there was replaced, or never proved it.
void Fleet::TakeInstance(NodeRecord& record, const node_api::Hello& hello, Effects& effects) {
  if (hello.node.instance.empty()) return;
  if (const auto former = on_instance_.find(record.instance);
      former != on_instance_.end() && former->second == record.key) {
    on_instance_.erase(former);
  }
  const auto [there, free] = on_instance_.try_emplace(hello.node.instance, record.key);
  const NodeKey before = std::exchange(there->second, record.key);
  record.instance = hello.node.instance;
  if (free || before.name == hello.node.node_name) return;
  const auto displaced = nodes_.find(before);
  if (displaced == nodes_.end()) return;
  displaced->second.instance.clear();
  effects.changed.insert(before);
  effects.greet_anew.emplace(before,
                             fmt::format("node {} has proved that it is on this node's instance {}",
                                         hello.node.node_name, hello.node.instance));
  effects.findings.push_back(
      {Finding::Kind::kDisplaced, before, ip::Address(),
       fmt::format("node {} has proved that it is on instance {}, which this node's agent only "
                   "claimed",
                   hello.node.node_name, hello.node.instance)});
}

// A machine that says another VM id than before, but has not booted since, is the same: a
// configuration or the way its id is found has changed. Its record goes with it.
void Fleet::KeepRecordOf(const node_api::Hello& hello, Effects& effects) {
  const NodeKey key = KeyOf(hello);
  if (hello.node.boot_id.empty() || nodes_.contains(key)) return;
  for (auto it = nodes_.lower_bound({hello.node.node_name, ""});
       it != nodes_.end() && it->first.name == hello.node.node_name; ++it) {
    if (it->second.boot_id != hello.node.boot_id) continue;
    const NodeKey former = it->first;
    auto node = nodes_.extract(it);
    node.key() = key;
    node.mapped().key = key;
    nodes_.insert(std::move(node));  // The record stays where it is: the pools point to it.
    for (std::set<NodeKey>* keys :
         {&missing_, &forgettable_, &unsettled_, &conflicts_refused_, &proved_}) {
      if (keys->erase(former) > 0) keys->insert(key);
    }
    demands_.erase(former);
    for (auto& [instance, owner] : on_instance_) {
      if (owner == former) owner = key;
    }
    effects.changed.insert(former);
    effects.renamed.emplace(former, key);
    effects.findings.push_back(
        {Finding::Kind::kRenamed, key, ip::Address(),
         fmt::format("was VM {} before, and has not booted since", former.vm_id)});
    return;
  }
}

// The one that spoke last has the name. The others keep their addresses: only the cloud can say
// that a VM is gone.
void Fleet::RetireOthers(const NodeKey& key, Effects& effects) {
  for (auto it = nodes_.lower_bound({key.name, ""});
       it != nodes_.end() && it->first.name == key.name; ++it) {
    NodeRecord& other = it->second;
    if (other.key == key || other.mode == NodeMode::kRetired) continue;
    other.mode = NodeMode::kRetired;
    // Nothing more is to be put on its NIC, whatever else is asked for it.
    StopWantingAll(other, effects);
    if (other.configurations.empty() && other.wanted.empty()) forgettable_.insert(other.key);
    effects.changed.insert(other.key);
    effects.findings.push_back({Finding::Kind::kReplaced, other.key, ip::Address(),
                                fmt::format("VM {} has the name now", key.vm_id)});
  }
}

absl::StatusOr<Forgotten> Fleet::Forget(const Farewell& farewell, absl::Time now) {
  RETURN_IF_ERROR(CheckNotHeld());
  ASSIGN_OR_RETURN(NodeRecord* const record, RecordToForget(farewell));
  const auto silent = farewell.silent.find(record->key);
  if (silent == farewell.silent.end() || silent->second != record->session_epoch) {
    return absl::FailedPreconditionError(
        fmt::format("the agent of node {} (VM {}) is connected: a machine that speaks is not gone. "
                    "To take a node out of use: spokectl node drain {}",
                    record->key.name, record->key.vm_id, record->key.name));
  }
  const bool listed = policy_.cloud_chooses && !record->instance.empty() &&
                      HasItsInstance(*record) && !missing_.contains(record->key);
  if (listed) {
    return absl::FailedPreconditionError(
        fmt::format("the cloud has not said that {} is gone: delete the VM first, and wait for its "
                    "next listing",
                    record->instance));
  }
  const AddressCounts counts = CountAddresses(*record);
  if (counts.in_use != farewell.in_use) {
    return absl::FailedPreconditionError(fmt::format(
        "pods of node {} (VM {}) used {} addresses when its agent last spoke, not {}: if the "
        "machine has really stopped, say so with --in-use {}; where it still runs, its addresses "
        "will be in two places",
        record->key.name, record->key.vm_id, counts.in_use, farewell.in_use, counts.in_use));
  }
  Forgotten forgotten{.node = record->key, .addresses = counts.total(), .effects = {}};
  FreeGone(*record, forgotten.effects, now);
  return forgotten;
}

absl::StatusOr<NodeRecord*> Fleet::RecordToForget(const Farewell& farewell) {
  std::vector<NodeRecord*> found;
  std::string ids;
  for (auto it = nodes_.lower_bound({farewell.node, ""});
       it != nodes_.end() && it->first.name == farewell.node; ++it) {
    if (!farewell.vm_id.empty() && it->first.vm_id != farewell.vm_id) continue;
    found.push_back(&it->second);
    ids += (ids.empty() ? "" : ", ") + it->first.vm_id;
  }
  if (found.empty()) {
    return absl::NotFoundError(
        farewell.vm_id.empty()
            ? fmt::format("there is no node {}", farewell.node)
            : fmt::format("there is no node {} with VM id {}", farewell.node, farewell.vm_id));
  }
  if (found.size() > 1) {
    return absl::InvalidArgumentError(
        fmt::format("there are {} machines under the name {}: say which with --vm ({})",
                    found.size(), farewell.node, ids));
  }
  return found.front();
}

}  // namespace spoke::ipam
