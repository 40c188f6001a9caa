#include "netagent/attach/assignments.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

std::string ForWhom(const PodReference& pod) {
  return pod.pod_namespace.empty() ? "" : fmt::format(" for namespace {}", pod.pod_namespace);
}

}  // namespace

absl::StatusOr<Lending> Lendings::PlanLend(const LendRequest& request, absl::Time now) const {
  const AttachmentKey& key = request.key;
  if (entries_.contains(key)) {
    return absl::AlreadyExistsError(fmt::format(
        "container {} already has interface {}: DEL it first", key.container_id, key.ifname));
  }
  Lending lending{.key = key,
                  .pod = request.pod,
                  .since = now,
                  .attempt = request.attempt,
                  .netns_path = request.netns_path,
                  .network = request.network,
                  .options = request.options};
  lending.options.ordinal = FreeOrdinal(key.container_id);
  // Microseconds as the floor: a journal that was lost must not make the numbers begin again, or
  // the server would take what follows for stale.
  lending.generation = std::max(
      last_generation_ + 1, static_cast<uint64_t>(std::max<int64_t>(absl::ToUnixMicros(now), 1)));
  std::array<const ip::Address*, 2> wished{};  // By family, IPv4 first.
  for (const ip::Address& address : request.addresses) {
    const ip::Address*& wish = wished.at(address.is_v4() ? 0 : 1);
    if (wish != nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("{} and {} are asked for, which are of one family: an interface has one",
                      wish->ToString(), address.ToString()));
    }
    wish = &address;
  }
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    const ip::Address* wish = wished.at(family == ip::Family::kV4 ? 0 : 1);
    const std::set<std::string> pools = PoolsFor(family, request.pod.pod_namespace);
    if (wish != nullptr) RETURN_IF_ERROR(CheckWish(*wish, pools));
    if (pools.empty()) continue;
    const ip::Address* address = wish != nullptr ? wish : NextIdle(family, pools);
    if (address == nullptr) {
      return absl::ResourceExhaustedError(
          fmt::format("no {} address is free on this node{} (considered: pool {})",
                      family == ip::Family::kV4 ? "IPv4" : "IPv6", ForWhom(request.pod),
                      fmt::join(pools, ", pool ")));
    }
    lending.addresses.push_back(*address);
  }
  if (!lending.addresses.empty()) return lending;
  const bool any = std::any_of(held_.begin(), held_.end(),
                               [](const auto& entry) { return entry.second.listed; });
  if (!any) return absl::ResourceExhaustedError("no address is attached to this node");
  return absl::PermissionDeniedError(fmt::format(
      "no pool on this node is meant{}",
      request.pod.pod_namespace.empty() ? " for a pod without namespace" : ForWhom(request.pod)));
}

absl::Status Lendings::CheckWish(const ip::Address& wished,
                                 const std::set<std::string>& pools) const {
  const auto it = held_.find(wished);
  if (it == held_.end() || !it->second.listed) {
    return absl::InvalidArgumentError(
        fmt::format("address {} is asked for, which this node does not have", wished.ToString()));
  }
  const Held& held = it->second;
  if (!pools.contains(held.pool)) {
    return absl::InvalidArgumentError(
        fmt::format("address {} is asked for, which is of pool {}: that is not meant for this pod",
                    wished.ToString(), held.pool));
  }
  if (IsLendable(wished, held)) return absl::OkStatus();
  const std::string_view why = held.use == Use::kLent      ? "lent to another pod"
                               : held.use == Use::kCooling ? "cooling"
                                                           : "not ready to be lent";
  return absl::ResourceExhaustedError(
      fmt::format("address {} is asked for, which is {}", wished.ToString(), why));
}

uint32_t Lendings::FreeOrdinal(const std::string& container_id) const {
  std::set<uint32_t> taken;
  for (auto it = entries_.lower_bound({container_id, ""});
       it != entries_.end() && it->first.container_id == container_id; ++it) {
    taken.insert(it->second.lending.options.ordinal);
  }
  uint32_t ordinal = 0;
  while (taken.contains(ordinal)) ++ordinal;
  return ordinal;
}

std::set<std::string> Lendings::PoolsFor(ip::Family family,
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

const ip::Address* Lendings::NextIdle(ip::Family family, const std::set<std::string>& pools) const {
  const ip::Address* best = nullptr;
  std::pair<bool, uint64_t> best_order;
  for (const auto& [address, held] : held_) {
    if (address.family() != family || !IsLendable(address, held)) continue;
    const std::pair<bool, uint64_t> order = {unasked_.contains(address), held.idle_since};
    if ((best != nullptr && order >= best_order) || !pools.contains(held.pool)) continue;
    best = &address;
    best_order = order;
  }
  return best;
}

bool Lendings::IsLendable(const ip::Address& address, const Held& held) const {
  return held.listed && held.use == Use::kIdle && !held.withheld() && !LacksProof(address, held) &&
         !on_nic_.contains(address) && !IsUnroutable(held);
}

bool Lendings::LacksProof(const ip::Address& address, const Held& held) const {
  return (address.is_v4() ? proof_required_.ipv4 : proof_required_.ipv6) && !held.proven;
}

WithdrawPlan Lendings::PlanWithdraw(const std::vector<ip::Prefix>& blocks) const {
  WithdrawPlan plan;
  std::set<ip::Address> withdraw;
  for (const ip::Prefix& block : blocks) {
    const auto begin = held_.lower_bound(block.base());
    const auto end = std::find_if(begin, held_.end(),
                                  [&](const auto& entry) { return !block.Contains(entry.first); });
    const bool in_use =
        std::any_of(begin, end, [](const auto& entry) { return entry.second.use != Use::kIdle; });
    (in_use ? plan.denied : plan.agreed).push_back(block);
    if (in_use) continue;
    for (auto it = begin; it != end; ++it) {
      if (!it->second.withdrawn) withdraw.insert(it->first);
    }
  }
  plan.withdraw.assign(withdraw.begin(), withdraw.end());
  return plan;
}

void Lendings::Apply(const Event& event) {
  std::visit([this](const auto& e) { ApplyOne(e); }, event);
}

void Lendings::ApplyOne(const HoldingsReplaced& event) {
  for (auto& [address, held] : held_) held.listed = false;
  for (const Holding& holding : event.holdings) {
    const bool is_new = !held_.contains(holding.address);
    const HeldIterator it = Hold(holding.address);
    it->second.pool = holding.pool;
    it->second.nic = holding.nic;
    it->second.listed = true;
    if (is_new) MakeIdle(it);
  }
  for (auto& [address, held] : held_) {
    if (held.listed) continue;
    held.withdrawn = false;
    held.conflict.reset();
    held.proven = held.use == Use::kLent;
  }
  rules_.clear();
  for (const PoolRule& rule : event.rules) {
    if (rule.namespaces.empty()) continue;
    const auto cidr = ip::Prefix::Parse(rule.cidr);
    rules_.insert_or_assign(rule.pool,
                            Rule{rule, cidr.ok() ? std::optional(cidr->family()) : std::nullopt});
  }
  const size_t gone = std::erase_if(held_, [](const auto& entry) {
    return !entry.second.listed && entry.second.use == Use::kIdle;
  });
  if (gone > 0) ++attached_version_;
}

void Lendings::ApplyOne(const LendingBegun& event) {
  const Lending& lending = event.lending;
  // A damaged journal may say that an address is lent twice; the first one stands.
  const bool taken = std::any_of(lending.addresses.begin(), lending.addresses.end(),
                                 [this](const ip::Address& address) {
                                   const auto it = held_.find(address);
                                   return it != held_.end() && it->second.use == Use::kLent;
                                 });
  if (taken || !entries_.emplace(lending.key, Entry{.lending = lending}).second) return;
  last_generation_ = std::max(last_generation_, lending.generation);
  for (const ip::Address& address : lending.addresses) {
    const HeldIterator it = Hold(address);
    it->second.use = Use::kLent;
    it->second.proven = true;
    uncleared_.erase(address);
  }
}

void Lendings::ApplyOne(const LendingBuilt& event) {
  const auto it = entries_.find(event.key);
  if (it != entries_.end()) it->second.built = true;
}

void Lendings::ApplyOne(const LendingReleased& event) {
  const auto entry = entries_.find(event.key);
  if (entry == entries_.end()) return;
  for (const ip::Address& address : entry->second.lending.addresses) {
    const auto it = held_.find(address);
    if (it == held_.end()) continue;  // Named twice in one lending, and gone already.
    it->second.proven = it->second.listed && !it->second.withdrawn;
    if (event.unused) {
      MakeIdle(it);
      if (!it->second.listed) Drop(it);
    } else {
      MakeCool(it, event.at + cooldown_);
    }
  }
  entries_.erase(entry);
}

void Lendings::ApplyOne(const CoolingSet& event) {
  // One that is not listed is kept as well: should the server list it again, it is not to be lent
  // before its time.
  const HeldIterator it = Hold(event.address);
  if (it->second.use != Use::kLent) MakeCool(it, event.until);
}

void Lendings::ApplyOne(const WithdrawnSet& event) {
  for (const ip::Address& address : event.addresses) {
    const auto it = held_.find(address);
    if (it == held_.end() || !it->second.listed) continue;
    it->second.withdrawn = event.withdrawn;
    if (event.withdrawn && it->second.use != Use::kLent) it->second.proven = false;
  }
}

void Lendings::ApplyOne(const ConflictNoted& event) {
  const auto it = held_.find(event.address);
  if (it != held_.end() && it->second.listed) it->second.conflict = event;
}

void Lendings::ApplyOne(const ConflictOver& event) {
  const auto it = held_.find(event.address);
  if (it != held_.end()) it->second.conflict.reset();
}

void Lendings::ApplyOne(const AddressesProven& event) {
  for (const ip::Address& address : event.addresses) {
    const auto it = held_.find(address);
    if (it != held_.end() && it->second.listed && !it->second.withdrawn) it->second.proven = true;
  }
}

Lendings::HeldIterator Lendings::Hold(const ip::Address& address) {
  const auto [it, inserted] = held_.try_emplace(address);
  if (inserted) ++attached_version_;
  return it;
}

void Lendings::Drop(HeldIterator it) {
  held_.erase(it);
  ++attached_version_;
}

void Lendings::MakeIdle(HeldIterator it) {
  uncleared_.erase(it->first);
  it->second.use = Use::kIdle;
  it->second.idle_since = ++idle_counter_;
}

void Lendings::MakeCool(HeldIterator it, absl::Time until) {
  // One that cools already has had no new connections.
  if (clearing_required_ && it->second.use != Use::kCooling) uncleared_.insert(it->first);
  it->second.use = Use::kCooling;
  it->second.cool_until = until;
  next_cooldown_end_ = std::min(next_cooldown_end_.value_or(until), until);
}

void Lendings::ClampCooldowns(absl::Time now) {
  const absl::Time latest = now + cooldown_;
  for (auto it = held_.begin(); it != held_.end(); ++it) {
    if (it->second.use == Use::kCooling && it->second.cool_until > latest) MakeCool(it, latest);
  }
}

void Lendings::SetCleared(const std::set<ip::Address>& addresses) {
  for (const ip::Address& address : addresses) {
    if (uncleared_.erase(address) == 0) continue;
    const absl::Time until = held_.at(address).cool_until;
    next_cooldown_end_ = std::min(next_cooldown_end_.value_or(until), until);
  }
}

std::vector<ip::Address> Lendings::EndCooldowns(absl::Time now) {
  std::vector<ip::Address> cooled;
  if (!next_cooldown_end_ || *next_cooldown_end_ > now) return cooled;
  next_cooldown_end_.reset();
  for (auto it = held_.begin(); it != held_.end();) {
    const auto current = it++;
    const Held& held = current->second;
    if (held.use != Use::kCooling || uncleared_.contains(current->first)) continue;
    if (held.cool_until > now) {
      next_cooldown_end_ = std::min(next_cooldown_end_.value_or(held.cool_until), held.cool_until);
      continue;
    }
    cooled.push_back(current->first);
    MakeIdle(current);
    if (!current->second.listed) Drop(current);
  }
  return cooled;
}

const Lending* Lendings::Find(const AttachmentKey& key) const {
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : &it->second.lending;
}

bool Lendings::IsBuilt(const AttachmentKey& key) const {
  const auto it = entries_.find(key);
  return it != entries_.end() && it->second.built;
}

std::vector<Lending> Lendings::Built() const {
  std::vector<Lending> built;
  for (const auto& [key, entry] : entries_) {
    if (entry.built) built.push_back(entry.lending);
  }
  return built;
}

std::vector<Lending> Lendings::Unfinished() const {
  std::vector<Lending> unfinished;
  for (const auto& [key, entry] : entries_) {
    if (!entry.built) unfinished.push_back(entry.lending);
  }
  return unfinished;
}

std::vector<ip::Address> Lendings::Cooling() const {
  std::vector<ip::Address> cooling;
  for (const auto& [address, held] : held_) {
    if (held.use == Use::kCooling) cooling.push_back(address);
  }
  return cooling;
}

std::vector<ip::Address> Lendings::Attached() const {
  std::vector<ip::Address> attached;
  for (const auto& [address, held] : held_) attached.push_back(address);
  return attached;
}

std::vector<ip::Address> Lendings::Own() const {
  std::vector<ip::Address> own;
  for (const auto& [address, held] : held_) {
    if (held.use == Use::kLent || (held.listed && !held.withdrawn)) own.push_back(address);
  }
  return own;
}

bool Lendings::IsLent(const ip::Address& address) const {
  const auto it = held_.find(address);
  return it != held_.end() && it->second.use == Use::kLent;
}

std::string Lendings::PoolOf(const ip::Address& address) const {
  const auto it = held_.find(address);
  return it == held_.end() ? "" : it->second.pool;
}

std::optional<ip::MacAddress> Lendings::NicOf(const ip::Address& address) const {
  const auto it = held_.find(address);
  return it == held_.end() ? std::nullopt : it->second.nic;
}

uint32_t& Lendings::IdleCountOf(const ip::Address& address, const Held& held,
                                UseCounts& counts) const {
  if (held.withheld() || IsUnroutable(held)) return counts.withheld;
  if (on_nic_.contains(address)) return counts.on_nic;
  return LacksProof(address, held) ? counts.unproven : counts.idle;
}

std::map<std::string, UseCounts> Lendings::CountByPool() const {
  std::map<std::string, UseCounts> counts;
  for (const auto& [address, held] : held_) {
    UseCounts& pool = counts[held.pool];
    switch (held.use) {
      case Use::kIdle:
        ++IdleCountOf(address, held, pool);
        break;
      case Use::kLent:
        ++pool.lent;
        break;
      case Use::kCooling:
        ++pool.cooling;
        break;
    }
  }
  return counts;
}

std::vector<ip::Address> Lendings::Withdrawn() const {
  std::vector<ip::Address> withdrawn;
  for (const auto& [address, held] : held_) {
    if (held.withdrawn) withdrawn.push_back(address);
  }
  return withdrawn;
}

std::vector<ConflictNoted> Lendings::Conflicts() const {
  std::vector<ConflictNoted> conflicts;
  for (const auto& [address, held] : held_) {
    if (held.conflict) conflicts.push_back(*held.conflict);
  }
  return conflicts;
}

std::vector<PoolRule> Lendings::Rules() const {
  std::vector<PoolRule> rules;
  for (const auto& [pool, rule] : rules_) rules.push_back(rule.rule);
  return rules;
}

std::vector<ip::Address> Lendings::Proven() const {
  std::vector<ip::Address> proven;
  for (const auto& [address, held] : held_) {
    if (held.listed && held.proven) proven.push_back(address);
  }
  return proven;
}

std::vector<ip::Address> Lendings::Unproven() const {
  std::vector<ip::Address> unproven;
  for (const auto& [address, held] : held_) {
    if (held.listed && !held.withdrawn && LacksProof(address, held)) unproven.push_back(address);
  }
  return unproven;
}

std::vector<Event> Lendings::Snapshot() const {
  std::vector<Event> events;
  // In the order of becoming idle, so that a replay reuses them in the same order.
  std::vector<std::pair<uint64_t, Holding>> holdings;
  for (const auto& [address, held] : held_) {
    if (held.listed) holdings.emplace_back(held.idle_since, Holding{address, held.pool, held.nic});
  }
  std::sort(holdings.begin(), holdings.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  HoldingsReplaced replaced;
  for (auto& [order, holding] : holdings) replaced.holdings.push_back(std::move(holding));
  replaced.rules = Rules();
  events.emplace_back(std::move(replaced));
  for (const auto& [key, entry] : entries_) {
    events.emplace_back(LendingBegun{entry.lending});
    if (entry.built) events.emplace_back(LendingBuilt{key});
  }
  for (const auto& [address, held] : held_) {
    if (held.use == Use::kCooling) events.emplace_back(CoolingSet{address, held.cool_until});
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
