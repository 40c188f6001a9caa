#include "tests/sim/invariants.h"

#include <algorithm>

namespace spoke::sim {

void Invariants::Broken(int law, const std::string& how) {
  trace_.Tell("judge", "LAW {} IS BROKEN: {}", law, how);
  if (!violation_) violation_ = fmt::format("law {}: {}", law, how);
}

// Clocks of machines drift by less than a thousandth, and a program may act within its own tick.
bool Invariants::Rested(const Left& left, absl::Duration cooldown) const {
  return schedule_.now() - left.at >= cooldown * 0.998;
}

// --- Pods. ---

void Invariants::PodGets(const NodeKey& machine, const std::string& container,
                         const ip::Address& address) {
  const std::string text = address.ToString();
  const auto nic = on_nics_.find(address);
  if (nic == on_nics_.end() || nic->second != machine) {
    Broken(1,
           fmt::format("{} of {} gets {}, which is {}", container, machine.name, text,
                       nic == on_nics_.end() ? "on no NIC" : "on the NIC of " + nic->second.name));
  }
  const auto [pod, is_new] = pods_.try_emplace(address, PodOf{machine, container});
  if (!is_new) {
    Broken(1, fmt::format("{} of {} gets {}, which {} of {} has", container, machine.name, text,
                          pod->second.container, pod->second.machine.name));
  }
  const auto last = last_pods_.find(address);
  if (last != last_pods_.end() && !Rested(last->second, promises_.agent_cooldown)) {
    Broken(4, fmt::format("{} of {} gets {} only {} after the pod before", container, machine.name,
                          text, absl::FormatDuration(schedule_.now() - last->second.at)));
  }
}

void Invariants::PodUses(const ip::Address& address) {
  const auto pod = pods_.find(address);
  if (pod != pods_.end()) pod->second.uses = true;
}

void Invariants::PodLoses(const NodeKey& machine, const std::string& container,
                          const ip::Address& address) {
  const auto pod = pods_.find(address);
  if (pod == pods_.end() || pod->second.machine != machine || pod->second.container != container) {
    return;
  }
  if (pod->second.uses) last_pods_[address] = {machine, schedule_.now()};
  pods_.erase(pod);
}

// --- NICs. ---

void Invariants::NicGets(const NodeKey& machine, const ip::Address& address) {
  const auto [nic, is_new] = on_nics_.try_emplace(address, machine);
  if (!is_new && nic->second != machine) {
    Broken(2, fmt::format("{} comes to the NIC of {} and is on that of {}", address.ToString(),
                          machine.name, nic->second.name));
    return;
  }
  const auto last = last_nics_.find(address);
  if (last != last_nics_.end() && last->second.machine != machine &&
      !Rested(last->second, promises_.server_cooldown)) {
    Broken(4, fmt::format("{} comes to the NIC of {} only {} after it left that of {}",
                          address.ToString(), machine.name,
                          absl::FormatDuration(schedule_.now() - last->second.at),
                          last->second.machine.name));
  }
}

void Invariants::NicLoses(const NodeKey& machine, const ip::Address& address) {
  const auto nic = on_nics_.find(address);
  if (nic == on_nics_.end() || nic->second != machine) return;
  on_nics_.erase(nic);
  last_nics_[address] = {machine, schedule_.now()};
  const auto pod = pods_.find(address);
  if (pod != pods_.end() && pod->second.machine == machine) {
    Broken(3, fmt::format("{} leaves the NIC of {} while {} has it", address.ToString(),
                          machine.name, pod->second.container));
  } else if (may_assign_ && may_assign_(machine, address)) {
    Broken(3, fmt::format("{} leaves the NIC of {}, whose agent has not given it up",
                          address.ToString(), machine.name));
  }
}

void Invariants::MachineGone(const NodeKey& machine) {
  for (auto it = pods_.begin(); it != pods_.end();) {
    if (it->second.machine == machine) {
      if (it->second.uses) last_pods_[it->first] = {machine, schedule_.now()};
      it = pods_.erase(it);
    } else {
      ++it;
    }
  }
  for (auto it = on_nics_.begin(); it != on_nics_.end();) {
    if (it->second == machine) {
      last_nics_[it->first] = {machine, schedule_.now()};
      it = on_nics_.erase(it);
    } else {
      ++it;
    }
  }
}

// --- The store. ---

void Invariants::Stored(const NodeKey& node, std::optional<ipam::NodeRecord> record) {
  transaction_.insert_or_assign(node, std::move(record));
}

void Invariants::StoreEnds() {
  // All that goes does so before anything comes: it is one moment.
  for (const auto& [node, record] : transaction_) {
    const auto before = stored_.find(node);
    if (before == stored_.end()) continue;
    for (const auto& [base, configuration] : before->second.configurations) {
      for (size_t i = 0; i < configuration.slots.size(); ++i) {
        const auto held = holders_.find(configuration.AddressAt(i));
        if (held != holders_.end() && held->second == node) holders_.erase(held);
      }
    }
  }
  for (auto& [node, record] : transaction_) {
    const auto before = stored_.find(node);
    if (!record) {
      if (before != stored_.end()) stored_.erase(before);
      acknowledged_.erase(node);
      continue;
    }
    // After a boot the node's assignments are counted from the beginning.
    if (before != stored_.end() && before->second.boot_id != record->boot_id) {
      acknowledged_.erase(node);
    }
    for (const auto& [base, configuration] : record->configurations) {
      for (size_t i = 0; i < configuration.slots.size(); ++i) {
        const ip::Address address = configuration.AddressAt(i);
        const auto [held, is_new] = holders_.try_emplace(address, node);
        if (!is_new && held->second != node) {
          Broken(5, fmt::format("the store gives {} to {} and to {}", address.ToString(), node.name,
                                held->second.name));
        }
        auto& acknowledged = acknowledged_[node];
        const auto told = acknowledged.find(address);
        if (told == acknowledged.end()) continue;
        if (configuration.slots[i].generation < told->second) {
          Broken(6, fmt::format("the store forgets generation {} of {} on {}", told->second,
                                address.ToString(), node.name));
        }
      }
    }
    CheckBreaker(before == stored_.end() ? nullptr : &before->second, *record);
    stored_.insert_or_assign(node, *std::move(record));
  }
  transaction_.clear();
}

void Invariants::StoreReplaced() {
  stored_.clear();
  holders_.clear();
  acknowledged_.clear();
}

// What begins to be detached in one transaction counts, unless the machine is gone.
void Invariants::CheckBreaker(const ipam::NodeRecord* before, const ipam::NodeRecord& after) {
  if (before == nullptr) return;
  uint64_t taken = 0;
  for (const auto& [base, configuration] : after.configurations) {
    if (configuration.state != ipam::AddressState::kDetaching) continue;
    const auto former = before->configurations.find(base);
    if (former != before->configurations.end() &&
        former->second.state == ipam::AddressState::kAttached) {
      taken += configuration.slots.size();
    }
  }
  const absl::Time now = schedule_.now();
  if (taken == 0 || now < pardoned_until_) return;
  taken_.emplace_back(now, taken);
  while (now - taken_.front().first > promises_.breaker_window) taken_.pop_front();
  uint64_t sum = 0;
  for (const auto& [at, count] : taken_) sum += count;
  const auto share = static_cast<uint64_t>(
      promises_.breaker_share * static_cast<double>(holders_.size() + sum) + 1);
  // A window of the breaker's may begin anywhere in ours, so that two of them overlap it.
  if (sum > 2 * std::max(promises_.breaker_floor, share)) {
    Broken(7, fmt::format("{} addresses were taken from nodes within {}", sum,
                          absl::FormatDuration(promises_.breaker_window)));
  }
}

// --- What was acknowledged. ---

void Invariants::Acknowledged(const NodeKey& node, const node_api::AssignmentReport& report) {
  const auto record = stored_.find(node);
  for (const node_api::Assignment& assignment : report.in_use) {
    if (record == stored_.end()) {
      Broken(6, fmt::format("a report of {} is acknowledged, and the store has no such node",
                            node.name));
      return;
    }
    const ipam::Configuration* held = record->second.Holding(assignment.address);
    if (held == nullptr)
      continue;  // It was refused, or given up since: laws 1 to 3 are about that.
    if (held->At(assignment.address).generation < assignment.generation) {
      Broken(6, fmt::format("generation {} of {} on {} is acknowledged, and not in the store",
                            assignment.generation, assignment.address.ToString(), node.name));
    }
    acknowledged_[node][assignment.address] = assignment.generation;
  }
}

void Invariants::OperatorToldOk(const std::string& key, bool is_stored) {
  if (!is_stored) {
    Broken(6, fmt::format("an operator was told that {} is stored, and it is not", key));
  }
}

}  // namespace spoke::sim
