#include "tests/sim/laws.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "fmt/core.h"
#include "ipam-server/store/record_codec.h"
#include "lib/base/status.h"
#include "tests/sim/budget_load.h"

namespace spoke::sim {
namespace {

template <typename Take>
void ForEachAddress(const ip::Prefix& range, const Take& take) {
  for (uint64_t i = 0; i < range.size(); ++i) take(ip::Advance(range.base(), i));
}

template <typename Is>
bool IsAny(const ip::Prefix& range, const Is& is) {
  bool any = false;
  ForEachAddress(range, [&](const ip::Address& address) { any = any || is(address); });
  return any;
}

}  // namespace

Laws::Laws(const LawSettings& settings, const Schedule& schedule, Fabric& fabric, StoreDisks& disks)
    : settings_(settings), schedule_(schedule), fabric_(fabric) {
  fabric.Watch([this](const std::string& vm, const auto& range) { OnDetached(vm, range); });
  disks.Watch([this](const StoreDisks::Changes& changes) { OnDurable(changes); });
}

void Laws::Break(int law, std::string what) {
  if (!broken_) broken_ = Violation{law, schedule_.now(), std::move(what)};
}

// --- Pods. ---

bool Laws::Lies(size_t machine) const {
  const auto vm = vms_.find(machine);
  return vm != vms_.end() && liars_.contains(vm->second);
}

void Laws::OnMachine(const Machine& machine) {
  vms_[machine.index] = machine.vm_id;
  assignable_[machine.vm_id] = {.machine = machine.index, .listed = {}, .withdrawn = {}};
}

void Laws::OnMachineDown(const Machine& machine) {
  std::vector<std::string> gone;
  for (auto it = links_.lower_bound({machine.index, ""});
       it != links_.end() && it->first.first == machine.index; ++it) {
    gone.push_back(it->first.second);
  }
  for (const std::string& host_link : gone) {
    OnEnding(machine, host_link);
    OnUnlink(machine, host_link);
  }
  deleted_.erase(deleted_.lower_bound({machine.index, ""}),
                 deleted_.lower_bound({machine.index + 1, ""}));
  assignable_.erase(machine.vm_id);
  OnRate(machine, units::BitRate());
}

void Laws::OnRate(const Machine& machine, units::BitRate rate) {
  units::BitRate& known = rates_[machine.index];
  rate_sum_ = rate_sum_ - known + rate;
  known = rate;
  const units::BitRate capacity = SharedBudget().capacity;
  if (rate_sum_ <= capacity) return;
  Break(13, fmt::format("machines may use {} bits a second of a budget of {}", rate_sum_.count(),
                        capacity.count()));
}

void Laws::OnLink(const Machine& machine, const std::string& host_link,
                  const std::vector<ip::Address>& addresses) {
  const LinkKey key{machine.index, host_link};
  links_[key] = {.addresses = addresses};
  if (Lies(machine.index)) return;
  if (deleted_.contains(key)) {
    Break(11, fmt::format("{} of {} is made after its DEL", host_link, machine.name));
  }
  for (const ip::Address& address : addresses) {
    const auto [user, is_first] = users_.emplace(address, key);
    if (!is_first && Lies(user->second.first)) {
      user->second = key;
    } else if (!is_first) {
      Break(1, fmt::format("{} is used by {} of machine {} and by {} of machine {}",
                           address.ToString(), user->second.second, user->second.first, host_link,
                           machine.index));
    }
    CheckOnNic(machine, host_link, address);
    const auto used = last_used_.find(address);
    // Clocks of machines go slower by less than one part in a thousand.
    if (used != last_used_.end() && schedule_.now() - used->second < settings_.cooldown * 0.999) {
      Break(7,
            fmt::format("{} goes to {} of {} {} after its last use", address.ToString(), host_link,
                        machine.name, absl::FormatDuration(schedule_.now() - used->second)));
    }
  }
}

void Laws::CheckOnNic(const Machine& machine, const std::string& host_link,
                      const ip::Address& address) {
  if (fabric_.Has(machine.vm_id, address)) {
    taken_by_others_.erase({machine.vm_id, address});
  } else if (!taken_by_others_.contains({machine.vm_id, address})) {
    Break(2, fmt::format("{} of {} gets {}, which its NIC has not", host_link, machine.name,
                         address.ToString()));
  }
}

void Laws::OnServed(const Machine& machine, const std::string& host_link,
                    std::string_view pod_namespace) {
  const auto link = links_.find({machine.index, host_link});
  if (link == links_.end()) return;
  link->second.served = true;
  CheckOwn(host_link, pod_namespace, link->second.addresses);
}

void Laws::CheckOwn(const std::string& host_link, std::string_view pod_namespace,
                    const std::vector<ip::Address>& addresses) {
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    std::vector<const ipam::PoolSpec*> meant;
    std::vector<const ipam::PoolSpec*> general;
    for (const ipam::PoolSpec& pool : settings_.pools) {
      if (pool.cidr.family() != family) continue;
      if (pool.namespaces.empty()) general.push_back(&pool);
      if (std::count(pool.namespaces.begin(), pool.namespaces.end(), pod_namespace) > 0) {
        meant.push_back(&pool);
      }
    }
    const auto& pools = meant.empty() ? general : meant;
    const auto is_own = [&](const ip::Address& address) {
      return std::any_of(pools.begin(), pools.end(),
                         [&](const auto* pool) { return pool->cidr.Contains(address); });
    };
    const auto have = std::count_if(addresses.begin(), addresses.end(),
                                    [&](const auto& a) { return a.family() == family; });
    const auto own = std::count_if(addresses.begin(), addresses.end(), is_own);
    const int due = pools.empty() ? 0 : 1;
    if (have == due && own == due) continue;
    Break(14, fmt::format("{} of namespace {} has {} addresses of {}, {} of its pools", host_link,
                          pod_namespace, have, family == ip::Family::kV4 ? "IPv4" : "IPv6", own));
  }
}

void Laws::OnEnding(const Machine& machine, const std::string& host_link) {
  const auto link = links_.find({machine.index, host_link});
  if (link != links_.end()) link->second.ending = true;
}

void Laws::OnDeleted(const Machine& machine, const std::string& host_link) {
  deleted_.emplace(machine.index, host_link);
}

void Laws::OnUnlink(const Machine& machine, const std::string& host_link) {
  const auto link = links_.extract({machine.index, host_link});
  if (link.empty()) return;
  const bool lies = Lies(machine.index);
  if (link.mapped().served && !link.mapped().ending && !lies) {
    Break(3, fmt::format("{} of {} is taken down, and its pod runs", host_link, machine.name));
  }
  for (const ip::Address& address : link.mapped().addresses) {
    const auto user = users_.find(address);
    if (user != users_.end() && user->second == link.key()) users_.erase(user);
    if (link.mapped().served && !lies) last_used_[address] = schedule_.now();
  }
}

void Laws::OnJournalBegun(const Machine& machine) { OnMachine(machine); }

void Laws::OnJournal(const Machine& machine, const netagent::Event& event) {
  Assignable& agent = assignable_[machine.vm_id];
  if (const auto* replaced = std::get_if<netagent::HoldingsReplaced>(&event)) {
    agent.listed.clear();
    for (const netagent::Holding& holding : replaced->holdings) {
      agent.listed.insert(holding.address);
    }
    std::erase_if(agent.withdrawn, [&](const auto& a) { return !agent.listed.contains(a); });
  } else if (const auto* withdrawn = std::get_if<netagent::WithdrawnSet>(&event)) {
    for (const ip::Address& address : withdrawn->addresses) {
      if (withdrawn->withdrawn) {
        agent.withdrawn.insert(address);
        CheckUnused(machine, address);
      } else {
        agent.withdrawn.erase(address);
      }
    }
  }
}

void Laws::CheckUnused(const Machine& machine, const ip::Address& address) {
  const auto user = users_.find(address);
  if (user == users_.end() || user->second.first != machine.index) return;
  if (Lies(machine.index)) return;
  Break(4, fmt::format("the agent of {} gives up {}, which {} uses", machine.name,
                       address.ToString(), user->second.second));
}

// --- NICs. ---

void Laws::OnChangedByOthers(const std::string& vm, const std::vector<ip::Prefix>& taken) {
  changed_by_others_[vm] = schedule_.now();
  for (const ip::Prefix& range : taken) {
    ForEachAddress(range,
                   [&](const ip::Address& address) { taken_by_others_.emplace(vm, address); });
  }
}

std::map<ip::Prefix, std::string> Laws::UnmendedOn(const std::string& vm) const {
  std::map<ip::Prefix, std::string> differs;
  const ipam::NicAddresses* const nic = fabric_.Find(vm);
  const auto changed = changed_by_others_.find(vm);
  const bool of_late = changed != changed_by_others_.end() &&
                       schedule_.now() - changed->second < kMending - kUnderWay;
  if (nic == nullptr || restored_ || of_late) return differs;
  const ipam::NodeRecord* const record = Durable(nic->node);
  if (liars_.contains(vm)) return differs;
  if (record == nullptr || record->mode == ipam::NodeMode::kRetired) return differs;
  // While two machines have one name, what either is to have changes each time that one speaks.
  const bool has_double = std::any_of(durable_.begin(), durable_.end(), [&](const auto& other) {
    return other.second.key.name == record->key.name && other.second.key != record->key;
  });
  if (has_double) return differs;
  for (const ipam::IpConfiguration& entry : nic->configurations) {
    const auto wanted = record->wanted.find(entry.name);
    const bool is_wanted =
        wanted != record->wanted.end() && wanted->second.given.value_or(entry.range) == entry.range;
    if (record->Holding(entry.range.base()) != nullptr || is_wanted) continue;
    differs.emplace(entry.range, "is on the NIC still, which the store does not say");
  }
  for (const auto& [base, configuration] : record->configurations) {
    if (configuration.state != ipam::AddressState::kAttached || fabric_.Has(vm, base)) continue;
    const bool waits = frozen_ || schedule_.now() - thawed_ < kMending ||
                       IsAny(configuration.range, [&](const ip::Address& address) {
                         return WasUsedOfLate(address) || IsCutOff(vm, address);
                       });
    if (!nic->instance.empty() && waits) continue;
    differs.emplace(configuration.range,
                    "is not on the NIC still, and the store says that it is attached");
  }
  return differs;
}

void Laws::CheckMended(const std::string& vm, const std::map<ip::Prefix, std::string>& before) {
  for (const auto& [range, how] : UnmendedOn(vm)) {
    const auto found = before.find(range);
    if (found == before.end() || found->second != how) continue;
    const ipam::NicAddresses* const nic = fabric_.Find(vm);
    Break(12, fmt::format("{} of {} {}", range.ToString(), nic->node.name, how));
  }
  // What the NIC has again by now counts as any other address does.
  std::erase_if(taken_by_others_, [&](const auto& taken) {
    return taken.first == vm && fabric_.Has(vm, taken.second);
  });
}

bool Laws::WasUsedOfLate(const ip::Address& address) const {
  const auto used = last_used_.find(address);
  return used != last_used_.end() && schedule_.now() - used->second < kMending;
}

bool Laws::IsCutOff(const std::string& vm, const ip::Address& address) const {
  return taken_by_others_.contains({vm, address}) && users_.contains(address);
}

void Laws::OnDetached(const std::string& vm, const ip::Prefix& range) {
  const auto agent = assignable_.find(vm);
  if (agent == assignable_.end() || liars_.contains(vm)) return;
  ForEachAddress(range, [&](const ip::Address& address) {
    const auto user = users_.find(address);
    if (user == users_.end() || user->second.first != agent->second.machine) return;
    if (IsCutOff(vm, address)) return;  // It came back by chance, and its pod does not rely on it.
    Break(3, fmt::format("{} is taken off the NIC of {}, and {} uses it", address.ToString(), vm,
                         user->second.second));
  });
}

// --- The store. ---

void Laws::OnRestore(bool begins) {
  restoring_ = begins;
  restored_ = true;
}

void Laws::OnPolicyAsked(uint64_t version, std::string objects) {
  policies_.insert_or_assign(version, std::move(objects));
}

void Laws::OnPolicyInForce(uint64_t version) {
  policy_in_force_ = std::max(policy_in_force_, version);
}

// What failed may have happened all the same.
void Laws::CheckPolicy(uint64_t version, const std::string& objects) {
  if (version < policy_in_force_ && !restored_) {
    Break(5, fmt::format("the policy has version {}, though version {} was in force", version,
                         policy_in_force_));
  }
  const auto asked = policies_.find(version);
  if (asked == policies_.end() ? !objects.empty() : asked->second != objects) {
    Break(5, fmt::format("the policy of version {} is not what an operator asked for", version));
  }
}

// What one transaction takes from a node it may give to another, so that all is taken first. What a
// record has had before and has still is neither taken nor given.
void Laws::OnDurable(const StoreDisks::Changes& changes) {
  std::vector<std::pair<std::string, ipam::NodeRecord>> learned;
  for (const auto& [name, value] : changes) {
    if (name == ipam::kStoreKey) OnDurableStore(value);
    if (name == ipam::kBreakerKey) OnDurableBreaker(value);
    if (!name.starts_with(ipam::kNodeKeyPrefix)) continue;
    std::string key(name);
    if (!value) {
      Forget(key, nullptr);
      continue;
    }
    auto record = ipam::DecodeNode(*value);
    if (!record.ok()) return Break(5, fmt::format("{}: {}", key, base::MessageOf(record.status())));
    Forget(key, &*record);
    learned.emplace_back(std::move(key), *std::move(record));
  }
  for (auto& [key, record] : learned) Learn(key, std::move(record));
}

void Laws::OnDurableStore(const std::optional<std::string_view>& value) {
  const auto state = value ? ipam::DecodeStore(*value) : absl::NotFoundError("no store");
  store_id_ = state.ok() ? state->store_id : "";
  epoch_ = state.ok() ? state->epoch : 0;
  const auto told = told_.find(store_id_);
  if (restoring_) {
    told_.clear();
  } else if (told != told_.end() && epoch_ < told->second) {
    Break(6, fmt::format("the store is at epoch {}, and nodes were told {}", epoch_, told->second));
  }
}

void Laws::OnDurableBreaker(const std::optional<std::string_view>& value) {
  const auto state = value ? ipam::DecodeBreaker(*value) : absl::NotFoundError("no breaker");
  const bool was_frozen = std::exchange(frozen_, state.ok() && state->freeze.has_value());
  if (was_frozen && !frozen_) thawed_ = schedule_.now();
}

void Laws::Forget(const std::string& key, const ipam::NodeRecord* next) {
  const auto before = durable_.find(key);
  if (before == durable_.end()) return;
  if (!restoring_) CheckTaken(before->second, next);
  for (const auto& [base, configuration] : before->second.configurations) {
    if (next != nullptr && next->configurations.contains(base)) continue;
    const auto owner = owners_.find(base);
    if (owner == owners_.end() || owner->second != key) continue;
    owners_.erase(owner);
    attached_ -= configuration.range.size();
  }
  if (next == nullptr) durable_.erase(before);
}

void Laws::Learn(const std::string& key, ipam::NodeRecord record) {
  ipam::NodeRecord& known = durable_[key];
  for (const auto& [base, configuration] : record.configurations) {
    if (known.configurations.contains(base)) continue;
    const auto [owner, is_first] = owners_.try_emplace(base, key);
    attached_ += is_first ? configuration.range.size() : 0;
    if (is_first) continue;
    Break(8, fmt::format("{} is in the records {} and {}", base.ToString(), owner->second, key));
  }
  known = std::move(record);
}

void Laws::CheckTaken(const ipam::NodeRecord& before, const ipam::NodeRecord* after) {
  const auto agent = assignable_.find(before.key.vm_id);
  if (agent == assignable_.end()) return;  // Nobody is there to give anything up.
  if (liars_.contains(before.key.vm_id)) return;
  for (const auto& [base, configuration] : before.configurations) {
    if (configuration.state != ipam::AddressState::kAttached) continue;
    const ipam::Configuration* kept = after == nullptr ? nullptr : after->Holding(base);
    if (kept != nullptr && kept->state != ipam::AddressState::kDetaching) continue;
    ForEachAddress(configuration.range, [&](const ip::Address& address) {
      const Assignable& would = agent->second;
      if (!would.listed.contains(address) || would.withdrawn.contains(address)) return;
      Break(4, fmt::format("{} is taken from {}, whose agent has not given it up",
                           address.ToString(), before.key.name));
    });
  }
}

const ipam::NodeRecord* Laws::Durable(const ipam::NodeKey& node) const {
  const auto it = durable_.find(ipam::StoreKeyOf(node));
  return it == durable_.end() ? nullptr : &it->second;
}

// --- What agents are told. ---

void Laws::OnHeard(const ipam::NodeKey& node, const node_api::AgentMessage& message) {
  if (const auto* report = std::get_if<node_api::AssignmentReport>(&message)) {
    reports_.insert_or_assign(node, *report);
  } else if (std::holds_alternative<node_api::Hello>(message)) {
    reports_.erase(node);
  } else if (const auto* answer = std::get_if<node_api::ReclaimAnswer>(&message)) {
    // Of what an agent keeps others may give up as much.
    for (const ip::Prefix& range : answer->denied) {
      if (last_asked_.erase({node, range}) > 0) asked_sum_ -= range.size();
    }
  }
}

void Laws::OnTold(const ipam::NodeKey& node, const ipam::ToAgent& message) {
  if (const auto* ack = std::get_if<node_api::ReportAck>(&message)) {
    const auto report = reports_.find(node);
    if (report == reports_.end() || report->second.sequence != ack->sequence) return;
    CheckReport(node, report->second);
  } else if (const auto* desired = std::get_if<node_api::DesiredState>(&message)) {
    CheckDesired(node, *desired);
  } else if (const auto* reclaim = std::get_if<node_api::ReclaimRequest>(&message)) {
    CheckBound(node, reclaim->ranges);
  }
}

void Laws::CheckReport(const ipam::NodeKey& node, const node_api::AssignmentReport& report) {
  const ipam::NodeRecord* record = Durable(node);
  if (record == nullptr || liars_.contains(node.vm_id)) return;
  const auto check = [&](const ip::Address& address, uint64_t generation) {
    const ipam::Configuration* held = record->Holding(address);
    if (held == nullptr || held->At(address).generation >= generation) return;
    Break(5, fmt::format("the report of {} about {} is acknowledged, and not on the disks",
                         node.name, address.ToString()));
  };
  for (const node_api::Assignment& entry : report.in_use) check(entry.address, entry.generation);
  for (const node_api::Release& entry : report.released) check(entry.address, entry.generation);
}

void Laws::CheckDesired(const ipam::NodeKey& node, const node_api::DesiredState& desired) {
  const ipam::NodeRecord* record = Durable(node);
  for (const node_api::DesiredConfiguration& added : desired.added) {
    const ipam::Configuration* held =
        record == nullptr ? nullptr : record->Holding(added.range.base());
    if (held != nullptr && held->state == ipam::AddressState::kAttached) continue;
    Break(5, fmt::format("{} is told of {}, which the disks do not say is attached there",
                         node.name, added.range.ToString()));
  }
  const std::vector<std::string> mark = absl::StrSplit(desired.store_token, '.');
  uint64_t epoch = 0;
  if (mark.size() != 5 || !absl::SimpleAtoi(mark[2], &epoch)) return;
  if (mark[1] == store_id_ && epoch > epoch_) {
    Break(6, fmt::format("{} is told epoch {}, and the disks are at {}", node.name, epoch, epoch_));
  }
  uint64_t& told = told_[mark[1]];
  told = std::max(told, epoch);
}

// The server's window and this one begin at different moments, so that two of its windows may lie
// in one of these.
void Laws::CheckBound(const ipam::NodeKey& node, const std::vector<ip::Prefix>& ranges) {
  const ipam::NodeRecord* record = Durable(node);
  if (record != nullptr && record->mode == ipam::NodeMode::kDraining) return;
  const absl::Time now = schedule_.now();
  while (!asked_.empty() && now - asked_.front().at > absl::Minutes(1)) {
    const Asked& asked = asked_.front();
    const auto last = last_asked_.find(asked.range);
    if (last != last_asked_.end() && last->second == asked.at) {
      asked_sum_ -= asked.range.second.size();
      last_asked_.erase(last);
    }
    asked_.pop_front();
  }
  const auto share =
      static_cast<uint64_t>(settings_.breaker_share * static_cast<double>(attached_)) + 1;
  for (const ip::Prefix& range : ranges) {
    const AskedRange asked{node, range};
    const auto [last, is_first] = last_asked_.insert_or_assign(asked, now);
    if (is_first) asked_sum_ += range.size();
    asked_.push_back({now, asked, share});
  }
  // What has gone since was attached when the first of them were asked for.
  const auto most = std::max_element(
      asked_.begin(), asked_.end(), [](const auto& a, const auto& b) { return a.share < b.share; });
  const uint64_t window =
      std::max(most == asked_.end() ? share : most->share, settings_.breaker_floor);
  const uint64_t bound = 2 * window + pardoned_;
  if (asked_sum_ <= bound) return;
  Break(9, fmt::format("{} addresses are asked for within a minute, of {} attached", asked_sum_,
                       attached_));
}

}  // namespace spoke::sim
