#include "ipam-server/ledger/decisions/hello.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "fmt/core.h"
#include "ipam-server/ledger/decisions/conflict.h"
#include "ipam-server/ledger/decisions/holdings.h"
#include "ipam-server/ledger/decisions/plan.h"
#include "ipam-server/ledger/decisions/reservations.h"
#include "ipam-server/ledger/promises.h"
#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

// Each machine under a name keeps its addresses until the cloud or an operator says that it is
// gone, so that an agent with ever new VM ids would have them all.
absl::Status CheckPredecessors(const Fleet& fleet, const node_api::Hello& hello) {
  uint32_t with_addresses = 0;
  const auto& nodes = fleet.ledger.nodes();
  for (auto it = nodes.lower_bound({hello.node.node_name, ""});
       it != nodes.end() && it->first.name == hello.node.node_name; ++it) {
    const NodeRecord& other = it->second;
    if (!hello.node.boot_id.empty() && other.boot_id == hello.node.boot_id) return absl::OkStatus();
    with_addresses += other.configurations.empty() && other.wanted.empty() ? 0 : 1;
  }
  if (with_addresses < fleet.policy.machines_per_name) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "{} machines under the name {} hold addresses already, and VM {} would be one more: those "
      "that are gone end with `spokectl node forget {} --vm ID`",
      with_addresses, hello.node.node_name, hello.node.vm_id, hello.node.node_name));
}

// A machine that says another VM id than before, but has not booted since, is the same: a
// configuration or the way its id is found has changed. Its record goes with it.
void KeepRecordOf(Fleet& fleet, const node_api::Hello& hello, Effects& effects) {
  const NodeKey key = KeyOf(hello);
  if (hello.node.boot_id.empty() || fleet.ledger.Find(key) != nullptr) return;
  const auto& nodes = fleet.ledger.nodes();
  for (auto it = nodes.lower_bound({hello.node.node_name, ""});
       it != nodes.end() && it->first.name == hello.node.node_name; ++it) {
    if (it->second.boot_id != hello.node.boot_id) continue;
    const NodeKey former = it->first;
    NodeRecord record = fleet.ledger.Unload(former);
    record.key = key;
    CHECK(fleet.ledger.Upsert(std::move(record)).ok(), "what it held is free for it");
    fleet.forgettable.erase(former);
    for (std::set<NodeKey>* keys :
         {&fleet.missing, &fleet.unsettled, &fleet.conflicts_refused, &fleet.proved}) {
      if (keys->erase(former) > 0) keys->insert(key);
    }
    fleet.demands.erase(former);
    fleet.ending.erase(former);
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
void RetireOthers(Fleet& fleet, const NodeKey& key, Effects& effects, absl::Time now) {
  const auto& nodes = fleet.ledger.nodes();
  for (auto it = nodes.lower_bound({key.name, ""}); it != nodes.end() && it->first.name == key.name;
       ++it) {
    NodeRecord& other = *fleet.ledger.Find(it->first);
    if (other.key == key || other.mode == NodeMode::kRetired) continue;
    other.mode = NodeMode::kRetired;
    // Nothing more is to be put on its NIC, whatever else is asked for it.
    StopWantingAll(fleet, other, effects);
    if (other.configurations.empty() && other.wanted.empty()) {
      fleet.forgettable.insert_or_assign(other.key, now + fleet.policy.replaced_stays);
    }
    effects.changed.insert(other.key);
    effects.findings.push_back({Finding::Kind::kReplaced, other.key, ip::Address(),
                                fmt::format("VM {} has the name now", key.vm_id)});
  }
}

// An agent with ever new VM ids does not fill the store with records of machines that hold nothing.
void ForgetOldest(Fleet& fleet, std::string_view name, absl::Time now) {
  uint32_t stay = 0;
  auto oldest = fleet.forgettable.end();
  for (auto it = fleet.forgettable.lower_bound({std::string(name), ""});
       it != fleet.forgettable.end() && it->first.name == name; ++it) {
    if (it->second <= now) continue;
    ++stay;
    if (oldest == fleet.forgettable.end() || it->second < oldest->second) oldest = it;
  }
  if (stay > fleet.policy.machines_per_name) oldest->second = now;
}

// What decides which pools serve the node.
void TakePlace(Fleet& fleet, NodeRecord& record, const node_api::Hello& hello) {
  const std::vector<PoolGroup>* before = &fleet.ledger.pools().GroupsFor(record);
  record.labels = hello.node.labels;
  record.vnet = hello.node.vnet;
  if (!hello.node.subnets.empty()) record.subnets = hello.node.subnets;
  if (&fleet.ledger.pools().GroupsFor(record) != before) {
    fleet.reservations.OnPoolsChanged(CapacityOf(fleet, {record.key.name}, Holdings::kLeftOut));
  }
}

// CheckIdentity() has let it in: whoever has been there was replaced, or never proved it.
void TakeInstance(Fleet& fleet, NodeRecord& record, const node_api::Hello& hello,
                  Effects& effects) {
  if (hello.node.instance.empty()) return;
  const auto before = fleet.ledger.SetInstance(record, hello.node.instance);
  if (!before || before->name == hello.node.node_name) return;
  NodeRecord* const displaced = fleet.ledger.Find(*before);
  if (displaced == nullptr) return;
  displaced->instance.clear();
  effects.changed.insert(*before);
  effects.greet_anew.emplace(*before,
                             fmt::format("node {} has proved that it is on this node's instance {}",
                                         hello.node.node_name, hello.node.instance));
  effects.findings.push_back(
      {Finding::Kind::kDisplaced, *before, ip::Address(),
       fmt::format("node {} has proved that it is on instance {}, which this node's agent only "
                   "claimed",
                   hello.node.node_name, hello.node.instance)});
}

// Ends the assignments that the agent does not name. After a reboot it cannot remember what to
// keep from reuse, so the old assignments are in cooldown from now on.
void EndAssignmentsOf(Fleet& fleet, NodeRecord& record, const node_api::Hello& hello,
                      Effects& effects, absl::Time now) {
  const bool rebooted = record.boot_id != hello.node.boot_id;
  absl::flat_hash_set<std::string> still_in_use;
  for (const node_api::Assignment& assignment : hello.in_use)
    still_in_use.insert(assignment.address.ToBytes());
  for (auto& [base, configuration] : record.configurations) {
    for (size_t i = 0; i < configuration.slots.size(); ++i) {
      Slot& slot = configuration.slots[i];
      const ip::Address address = configuration.AddressAt(i);
      // A new journal counts from the beginning. The hello may name what was assigned since, where
      // this store has not heard of the boot before: it is older, or another server's commit
      // failed.
      if (rebooted) slot.generation = 0;
      if (still_in_use.contains(address.ToBytes())) continue;
      if (slot.use == Use::kInUse) {
        SetUse(fleet, record, configuration,
               {address, rebooted ? Use::kCooldown : Use::kAvailable, nullptr, now}, effects);
      } else if (slot.use == Use::kCooldown && !rebooted &&
                 (slot.generation != 0 || now - slot.since >= fleet.policy.cooldown)) {
        // The agent has said what has a generation, and its word that the cooldown is over may have
        // been lost. Of what began with its boot it may not know yet: it is told again.
        SetUse(fleet, record, configuration, {address, Use::kAvailable, nullptr, now}, effects);
      } else if (rebooted && slot.use == Use::kAvailable && IsWithheld(fleet, configuration)) {
        // A pod may have had it unreported. The agent lets rest what it is listed, and not this.
        SetUse(fleet, record, configuration, {address, Use::kCooldown, nullptr, now}, effects);
      }
    }
  }
}

}  // namespace

// An agent speaks for its own node. On another's instance it would take that node's addresses off
// its NIC, and from the cloud's list.
absl::Status CheckIdentity(const Fleet& fleet, const node_api::Hello& hello, bool instance_proved) {
  const NodeRecord* known = fleet.ledger.Find(KeyOf(hello));
  const bool says_instance = !hello.node.instance.empty();
  if (known != nullptr && says_instance && !instance_proved && !known->instance.empty() &&
      known->instance != hello.node.instance) {
    return absl::PermissionDeniedError(fmt::format(
        "node {} (VM {}) is on instance {}, and its agent says {} now: if the machine is gone, "
        "`spokectl node forget {}`",
        hello.node.node_name, hello.node.vm_id, known->instance, hello.node.instance,
        hello.node.node_name));
  }
  const NodeRecord* there = says_instance ? fleet.ledger.NodeOn(hello.node.instance) : nullptr;
  const bool of_another = there != nullptr && there->key.name != hello.node.node_name &&
                          there->mode != NodeMode::kRetired;
  if (of_another && !(instance_proved && !fleet.proved.contains(there->key))) {
    return absl::PermissionDeniedError(fmt::format(
        "node {} says that it is on instance {}, which is that of node {} (VM {}): if that node is "
        "gone, `spokectl node forget {}`",
        hello.node.node_name, hello.node.instance, there->key.name, there->key.vm_id,
        there->key.name));
  }
  return known != nullptr ? absl::OkStatus() : CheckPredecessors(fleet, hello);
}

Effects OnHello(Fleet& fleet, const node_api::Hello& hello, absl::Time now, bool instance_proved) {
  const NodeKey key = KeyOf(hello);
  Effects effects;
  KeepRecordOf(fleet, hello, effects);
  NodeRecord* const known = fleet.ledger.Find(key);
  NodeRecord& record = known != nullptr ? *known : *fleet.ledger.Upsert({.key = key}).value();
  ++record.session_epoch;
  fleet.heard.insert(key);
  fleet.missing.erase(key);
  fleet.forgettable.erase(key);
  fleet.demands.erase(key);  // It is of the session before.
  // Its agent says soon whether its machine still goes.
  if (const auto ending = fleet.ending.find(key); ending != fleet.ending.end()) {
    ending->second.unsaid_since = now;
  }

  effects.changed.insert(key);
  if (record.mode == NodeMode::kRetired) {
    record.mode = NodeMode::kActive;
    // While another machine had its name, nothing was put on its NIC.
    if (!record.configurations.empty()) effects.attach.insert(key);
  }
  RetireOthers(fleet, key, effects, now);
  ForgetOldest(fleet, key.name, now);
  if (record.nic_mac != hello.nic.mac) {
    // The addresses have to follow to the NIC that the node has now.
    record.nic_mac = hello.nic.mac;
    if (!record.configurations.empty() || !record.wanted.empty()) effects.attach.insert(key);
  }
  if (record.boot_id != hello.node.boot_id && !record.configurations.empty()) {
    // A reimage, or a new model of its scale set, gives a VM the NIC of its first day.
    effects.attach.insert(key);
  }
  TakePlace(fleet, record, hello);
  if (instance_proved) fleet.proved.insert(key);
  TakeInstance(fleet, record, hello, effects);
  EndAssignmentsOf(fleet, record, hello, effects, now);
  EndClaimsOf(fleet, hello.node.node_name);
  fleet.used_unheld.erase(key);
  record.boot_id = hello.node.boot_id;
  for (const node_api::Assignment& assignment : hello.in_use)
    TakeAssignment(fleet, record, assignment, effects);
  for (const ip::Address& address : hello.cooldown) {
    Configuration* configuration = record.Holding(address);
    if (configuration != nullptr && configuration->At(address).use == Use::kAvailable) {
      SetUse(fleet, record, *configuration, {address, Use::kCooldown, nullptr, now}, effects);
    }
  }
  if (known == nullptr) ClaimReserved(fleet, record, effects);
  if (fleet.policy.cloud_chooses && !record.nic_read) effects.attach.insert(key);
  // A draining node that was away is asked at once for what it can give back.
  effects.Merge(record.mode == NodeMode::kDraining ? ReviewNode(fleet, key, {}, now)
                                                   : PlanNode(fleet, key, now));
  return effects;
}

}  // namespace spoke::ipam
