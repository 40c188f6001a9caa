#include "netagent/attach/assignments.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

std::string ForWhom(const cni::PodReference& pod) {
  return pod.pod_namespace.empty() ? "" : fmt::format(" for namespace {}", pod.pod_namespace);
}

}  // namespace

void AddEntries(const Assignment& assignment, std::vector<node_api::Assignment>& entries) {
  for (const ip::Address& address : assignment.addresses) {
    entries.push_back({.address = address,
                       .generation = assignment.generation,
                       .since = assignment.since,
                       .lessee = {.container_id = assignment.key.container_id,
                                  .ifname = assignment.key.ifname,
                                  .pod_namespace = assignment.pod.pod_namespace,
                                  .pod_name = assignment.pod.name,
                                  .pod_uid = assignment.pod.uid}});
  }
}

absl::StatusOr<Assignment> Assignments::PlanAssignment(const Assignment& asked,
                                                       absl::Time now) const {
  const AttachmentKey& key = asked.key;
  if (entries_.contains(key)) {
    return absl::AlreadyExistsError(fmt::format(
        "container {} already has interface {}: DEL it first", key.container_id, key.ifname));
  }
  Assignment assignment = asked;
  assignment.addresses.clear();
  assignment.since = now;
  assignment.options.ordinal = FreeOrdinal(key.container_id);
  // Microseconds are the floor: a journal that was lost must not make the numbers begin again, or
  // the server would take what follows for stale.
  assignment.generation = std::max(
      last_generation_ + 1, static_cast<uint64_t>(std::max<int64_t>(absl::ToUnixMicros(now), 1)));
  std::array<const ip::Address*, 2> requested{};  // Indexed by family, IPv4 first.
  for (const ip::Address& address : asked.addresses) {
    const ip::Address*& options = requested.at(address.is_v4() ? 0 : 1);
    if (options != nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("{} and {} are asked for, which are of one family: an interface has one",
                      options->ToString(), address.ToString()));
    }
    options = &address;
  }
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    const ip::Address* options = requested.at(family == ip::Family::kV4 ? 0 : 1);
    const std::set<std::string> pools = PoolsFor(family, asked.pod.pod_namespace);
    if (options != nullptr) RETURN_IF_ERROR(CheckOptions(*options, pools));
    if (pools.empty()) continue;
    const ip::Address* address = options != nullptr ? options : NextAvailable(family, pools);
    if (address == nullptr) {
      RETURN_IF_ERROR(CheckAny());
      return absl::ResourceExhaustedError(
          fmt::format("no {} address is free on this node{} (considered: pool {})",
                      family == ip::Family::kV4 ? "IPv4" : "IPv6", ForWhom(asked.pod),
                      fmt::join(pools, ", pool ")));
    }
    assignment.addresses.push_back(*address);
  }
  if (!assignment.addresses.empty()) return assignment;
  RETURN_IF_ERROR(CheckAny());
  return absl::PermissionDeniedError(fmt::format(
      "no pool on this node is meant{}",
      asked.pod.pod_namespace.empty() ? " for a pod without namespace" : ForWhom(asked.pod)));
}

absl::Status Assignments::CheckAny() const {
  const bool any = std::any_of(held_.begin(), held_.end(),
                               [](const auto& entry) { return entry.second.listed; });
  return any ? absl::OkStatus()
             : absl::ResourceExhaustedError("no address is attached to this node");
}

absl::Status Assignments::CheckOptions(const ip::Address& requested,
                                       const std::set<std::string>& pools) const {
  const auto it = held_.find(requested);
  if (it == held_.end() || !it->second.listed) {
    return absl::InvalidArgumentError(fmt::format(
        "address {} is asked for, which this node does not have", requested.ToString()));
  }
  const Held& held = it->second;
  if (!pools.contains(held.pool)) {
    return absl::InvalidArgumentError(
        fmt::format("address {} is asked for, which is of pool {}: that is not meant for this pod",
                    requested.ToString(), held.pool));
  }
  if (IsAssignable(requested, held)) return absl::OkStatus();
  const std::string_view why = held.use == Use::kInUse      ? "assigned to another pod"
                               : held.use == Use::kCooldown ? "in cooldown"
                                                            : "not ready to be assigned";
  return absl::ResourceExhaustedError(
      fmt::format("address {} is asked for, which is {}", requested.ToString(), why));
}

uint32_t Assignments::FreeOrdinal(const std::string& container_id) const {
  std::set<uint32_t> taken;
  for (auto it = entries_.lower_bound({container_id, ""});
       it != entries_.end() && it->first.container_id == container_id; ++it) {
    taken.insert(it->second.assignment.options.ordinal);
  }
  uint32_t ordinal = 0;
  while (taken.contains(ordinal)) ++ordinal;
  return ordinal;
}

std::set<std::string> Assignments::PoolsFor(ip::Family family,
                                            const std::string& pod_namespace) const {
  std::set<std::string> meant;
  std::set<std::string> open;
  const auto take = [&](const std::string& pool) {
    const auto rule = rules_.find(pool);
    if (rule == rules_.end()) {
      open.insert(pool);
      return;
    }
    const std::vector<std::string>& namespaces = rule->second.rule.namespaces;
    if (namespaces.empty()) open.insert(pool);
    if (std::find(namespaces.begin(), namespaces.end(), pod_namespace) != namespaces.end()) {
      meant.insert(pool);
    }
  };
  // Neighbours are of one pool as a rule, and this is on the way of every ADD.
  const std::string* last = nullptr;
  for (const auto& [address, held] : held_) {
    if (!held.listed || address.family() != family || (last != nullptr && *last == held.pool)) {
      continue;
    }
    last = &held.pool;
    take(held.pool);
  }
  for (const auto& [pool, rule] : rules_) {
    if (rule.family == family) take(pool);
  }
  return meant.empty() ? open : meant;
}

const ip::Address* Assignments::NextAvailable(ip::Family family,
                                              const std::set<std::string>& pools) const {
  const ip::Address* best = nullptr;
  std::pair<bool, uint64_t> best_order;
  for (const auto& [address, held] : held_) {
    if (address.family() != family || !IsAssignable(address, held)) continue;
    const std::pair<bool, uint64_t> order = {unasked_.contains(address), held.available_since};
    if ((best != nullptr && order >= best_order) || !pools.contains(held.pool)) continue;
    best = &address;
    best_order = order;
  }
  return best;
}

bool Assignments::IsAssignable(const ip::Address& address, const Held& held) const {
  return held.listed && held.use == Use::kAvailable && !held.unusable() &&
         !LacksProof(address, held) && !on_nic_.contains(address) && !IsUnroutable(held);
}

bool Assignments::LacksProof(const ip::Address& address, const Held& held) const {
  return (address.is_v4() ? proof_required_.ipv4 : proof_required_.ipv6) && !held.proven;
}

WithdrawPlan Assignments::PlanWithdraw(const std::vector<ip::Prefix>& blocks) const {
  WithdrawPlan plan;
  std::set<ip::Address> withdraw;
  for (const ip::Prefix& block : blocks) {
    const auto begin = held_.lower_bound(block.base());
    const auto end = std::find_if(begin, held_.end(),
                                  [&](const auto& entry) { return !block.Contains(entry.first); });
    const bool in_use = std::any_of(
        begin, end, [](const auto& entry) { return entry.second.use != Use::kAvailable; });
    (in_use ? plan.denied : plan.agreed).push_back(block);
    if (in_use) continue;
    for (auto it = begin; it != end; ++it) {
      if (!it->second.withdrawn) withdraw.insert(it->first);
    }
  }
  plan.withdraw.assign(withdraw.begin(), withdraw.end());
  return plan;
}

void Assignments::Apply(const Event& event) {
  std::visit([this](const auto& e) { ApplyOne(e); }, event);
}

void Assignments::ApplyOne(const HoldingsReplaced& event) {
  ++own_changes_;
  for (auto& [address, held] : held_) held.listed = false;
  for (const Holding& holding : event.holdings) {
    const bool is_new = !held_.contains(holding.address);
    const HeldIterator it = Hold(holding.address);
    it->second.pool = holding.pool;
    it->second.nic = holding.nic;
    it->second.listed = true;
    if (is_new) MakeAvailable(it);
  }
  for (auto& [address, held] : held_) {
    if (held.listed) continue;
    held.withdrawn = false;
    held.conflict.reset();
    held.proven = held.use == Use::kInUse;
  }
  rules_.clear();
  for (const PoolRule& rule : event.rules) {
    const auto cidr = ip::Prefix::Parse(rule.cidr);
    rules_.insert_or_assign(rule.pool,
                            Rule{rule, cidr.ok() ? std::optional(cidr->family()) : std::nullopt});
  }
  const size_t gone = std::erase_if(held_, [](const auto& entry) {
    return !entry.second.listed && entry.second.use == Use::kAvailable;
  });
  if (gone > 0) ++attached_version_;
}

void Assignments::ApplyOne(const AssignmentBegun& event) {
  const Assignment& assignment = event.assignment;
  // A damaged journal may say that an address is assigned twice; the first one stands.
  const bool taken = std::any_of(assignment.addresses.begin(), assignment.addresses.end(),
                                 [this](const ip::Address& address) {
                                   const auto it = held_.find(address);
                                   return it != held_.end() && it->second.use == Use::kInUse;
                                 });
  if (taken || !entries_.emplace(assignment.key, Entry{.assignment = assignment}).second) return;
  last_generation_ = std::max(last_generation_, assignment.generation);
  for (const ip::Address& address : assignment.addresses) {
    const HeldIterator it = Hold(address);
    if (!it->second.listed || it->second.withdrawn) ++own_changes_;
    it->second.use = Use::kInUse;
    it->second.proven = true;
    uncleared_.erase(address);
  }
}

void Assignments::ApplyOne(const AssignmentBuilt& event) {
  const auto it = entries_.find(event.key);
  if (it != entries_.end()) it->second.built = true;
}

void Assignments::ApplyOne(const AssignmentReleased& event) {
  const auto entry = entries_.find(event.key);
  if (entry == entries_.end()) return;
  for (const ip::Address& address : entry->second.assignment.addresses) {
    const auto it = held_.find(address);
    if (it == held_.end()) continue;  // The assignment names it twice; it is gone already.
    it->second.proven = it->second.listed && !it->second.withdrawn;
    if (!it->second.proven) ++own_changes_;
    if (event.unused) {
      MakeAvailable(it);
      if (!it->second.listed) Drop(it);
    } else {
      StartCooldown(it, event.at + cooldown_);
    }
  }
  entries_.erase(entry);
}

void Assignments::ApplyOne(const CooldownSet& event) {
  // An address that is not listed is kept as well: if the server lists it again, it must not be
  // assigned before its time.
  const HeldIterator it = Hold(event.address);
  if (it->second.use != Use::kInUse) StartCooldown(it, event.until);
}

void Assignments::ApplyOne(const WithdrawnSet& event) {
  ++own_changes_;
  for (const ip::Address& address : event.addresses) {
    const auto it = held_.find(address);
    if (it == held_.end() || !it->second.listed) continue;
    it->second.withdrawn = event.withdrawn;
    if (event.withdrawn && it->second.use != Use::kInUse) it->second.proven = false;
  }
}

void Assignments::ApplyOne(const ConflictNoted& event) {
  const auto it = held_.find(event.address);
  if (it != held_.end() && it->second.listed) it->second.conflict = event;
}

void Assignments::ApplyOne(const ConflictOver& event) {
  const auto it = held_.find(event.address);
  if (it != held_.end()) it->second.conflict.reset();
}

void Assignments::ApplyOne(const AddressesProven& event) {
  for (const ip::Address& address : event.addresses) {
    const auto it = held_.find(address);
    if (it != held_.end() && it->second.listed && !it->second.withdrawn) it->second.proven = true;
  }
}

Assignments::HeldIterator Assignments::Hold(const ip::Address& address) {
  const auto [it, inserted] = held_.try_emplace(address);
  if (inserted) ++attached_version_;
  return it;
}

void Assignments::Drop(HeldIterator it) {
  held_.erase(it);
  ++attached_version_;
}

void Assignments::MakeAvailable(HeldIterator it) {
  uncleared_.erase(it->first);
  it->second.use = Use::kAvailable;
  it->second.available_since = ++available_counter_;
}

void Assignments::StartCooldown(HeldIterator it, absl::Time until) {
  // An address that is in cooldown already has had no new connections.
  if (clearing_required_ && it->second.use != Use::kCooldown) uncleared_.insert(it->first);
  it->second.use = Use::kCooldown;
  it->second.cool_until = until;
  next_cooldown_end_ = std::min(next_cooldown_end_.value_or(until), until);
}

void Assignments::ClampCooldowns(absl::Time now) {
  const absl::Time latest = now + cooldown_;
  for (auto it = held_.begin(); it != held_.end(); ++it) {
    if (it->second.use == Use::kCooldown && it->second.cool_until > latest)
      StartCooldown(it, latest);
  }
}

std::optional<absl::Time> Assignments::CooldownEnd(const ip::Address& address) const {
  const auto it = held_.find(address);
  if (it == held_.end() || it->second.use != Use::kCooldown) return std::nullopt;
  return it->second.cool_until;
}

void Assignments::SetCleared(const std::set<ip::Address>& addresses) {
  for (const ip::Address& address : addresses) {
    if (uncleared_.erase(address) == 0) continue;
    const absl::Time until = held_.at(address).cool_until;
    next_cooldown_end_ = std::min(next_cooldown_end_.value_or(until), until);
  }
}

std::vector<ip::Address> Assignments::EndCooldowns(absl::Time now) {
  std::vector<ip::Address> cooled;
  if (!next_cooldown_end_ || *next_cooldown_end_ > now) return cooled;
  next_cooldown_end_.reset();
  for (auto it = held_.begin(); it != held_.end();) {
    const auto current = it++;
    const Held& held = current->second;
    if (held.use != Use::kCooldown || uncleared_.contains(current->first)) continue;
    if (held.cool_until > now) {
      next_cooldown_end_ = std::min(next_cooldown_end_.value_or(held.cool_until), held.cool_until);
      continue;
    }
    cooled.push_back(current->first);
    MakeAvailable(current);
    if (!current->second.listed) Drop(current);
  }
  return cooled;
}

const Assignment* Assignments::Find(const AttachmentKey& key) const {
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : &it->second.assignment;
}

bool Assignments::IsBuilt(const AttachmentKey& key) const {
  const auto it = entries_.find(key);
  return it != entries_.end() && it->second.built;
}

std::vector<Assignment> Assignments::Built() const {
  std::vector<Assignment> built;
  for (const auto& [key, entry] : entries_) {
    if (entry.built) built.push_back(entry.assignment);
  }
  return built;
}

std::vector<Assignment> Assignments::Unfinished() const {
  std::vector<Assignment> unfinished;
  for (const auto& [key, entry] : entries_) {
    if (!entry.built) unfinished.push_back(entry.assignment);
  }
  return unfinished;
}

std::vector<ip::Address> Assignments::Cooldown() const {
  std::vector<ip::Address> cooldown;
  for (const auto& [address, held] : held_) {
    if (held.use == Use::kCooldown) cooldown.push_back(address);
  }
  return cooldown;
}

std::vector<ip::Address> Assignments::Attached() const {
  std::vector<ip::Address> attached;
  for (const auto& [address, held] : held_) attached.push_back(address);
  return attached;
}

std::vector<ip::Address> Assignments::Own() const {
  std::vector<ip::Address> own;
  for (const auto& [address, held] : held_) {
    if (held.use == Use::kInUse || (held.listed && !held.withdrawn)) own.push_back(address);
  }
  return own;
}

bool Assignments::IsAssigned(const ip::Address& address) const {
  const auto it = held_.find(address);
  return it != held_.end() && it->second.use == Use::kInUse;
}

std::string Assignments::PoolOf(const ip::Address& address) const {
  const auto it = held_.find(address);
  return it == held_.end() ? "" : it->second.pool;
}

std::optional<ip::MacAddress> Assignments::NicOf(const ip::Address& address) const {
  const auto it = held_.find(address);
  return it == held_.end() ? std::nullopt : it->second.nic;
}

uint32_t& Assignments::AvailableCountOf(const ip::Address& address, const Held& held,
                                        UseCounts& counts) const {
  if (held.unusable() || IsUnroutable(held)) return counts.unusable;
  if (on_nic_.contains(address)) return counts.on_nic;
  return LacksProof(address, held) ? counts.unproven : counts.available;
}

std::map<std::string, UseCounts> Assignments::CountByPool() const {
  std::map<std::string, UseCounts> counts;
  for (const auto& [address, held] : held_) {
    UseCounts& pool = counts[held.pool];
    switch (held.use) {
      case Use::kAvailable:
        ++AvailableCountOf(address, held, pool);
        break;
      case Use::kInUse:
        ++pool.in_use;
        break;
      case Use::kCooldown:
        ++pool.cooldown;
        break;
    }
  }
  return counts;
}

bool Assignments::HasUsable() const {
  return std::any_of(held_.begin(), held_.end(), [&](const auto& entry) {
    const auto& [address, held] = entry;
    UseCounts counts;
    return held.use == Use::kInUse ||
           (held.use == Use::kAvailable &&
            &AvailableCountOf(address, held, counts) == &counts.available);
  });
}

std::vector<ip::Address> Assignments::Withdrawn() const {
  std::vector<ip::Address> withdrawn;
  for (const auto& [address, held] : held_) {
    if (held.withdrawn) withdrawn.push_back(address);
  }
  return withdrawn;
}

std::vector<ConflictNoted> Assignments::Conflicts() const {
  std::vector<ConflictNoted> conflicts;
  for (const auto& [address, held] : held_) {
    if (held.conflict) conflicts.push_back(*held.conflict);
  }
  return conflicts;
}

std::vector<PoolRule> Assignments::Rules() const {
  std::vector<PoolRule> rules;
  for (const auto& [pool, rule] : rules_) rules.push_back(rule.rule);
  return rules;
}

std::vector<ip::Address> Assignments::Proven() const {
  std::vector<ip::Address> proven;
  for (const auto& [address, held] : held_) {
    if (held.listed && held.proven) proven.push_back(address);
  }
  return proven;
}

std::vector<ip::Address> Assignments::Unproven() const {
  std::vector<ip::Address> unproven;
  for (const auto& [address, held] : held_) {
    if (held.listed && !held.withdrawn && LacksProof(address, held)) unproven.push_back(address);
  }
  return unproven;
}

std::vector<Event> Assignments::Snapshot() const {
  std::vector<Event> events;
  // Addresses are in the order of becoming available, so that a replay reuses them in that order.
  std::vector<std::pair<uint64_t, Holding>> holdings;
  for (const auto& [address, held] : held_) {
    if (held.listed)
      holdings.emplace_back(held.available_since, Holding{address, held.pool, held.nic});
  }
  std::sort(holdings.begin(), holdings.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  HoldingsReplaced replaced;
  for (auto& [order, holding] : holdings) replaced.holdings.push_back(std::move(holding));
  replaced.rules = Rules();
  events.emplace_back(std::move(replaced));
  for (const auto& [key, entry] : entries_) {
    events.emplace_back(AssignmentBegun{entry.assignment});
    if (entry.built) events.emplace_back(AssignmentBuilt{key});
  }
  for (const auto& [address, held] : held_) {
    if (held.use == Use::kCooldown) events.emplace_back(CooldownSet{address, held.cool_until});
  }
  if (WithdrawnSet withdrawn{Withdrawn()}; !withdrawn.addresses.empty()) {
    events.emplace_back(std::move(withdrawn));
  }
  for (ConflictNoted& conflict : Conflicts()) events.emplace_back(conflict);
  if (AddressesProven proven{Proven()}; !proven.addresses.empty()) {
    events.emplace_back(std::move(proven));
  }
  return events;
}

}  // namespace spoke::netagent
