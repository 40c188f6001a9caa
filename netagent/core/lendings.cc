#include "netagent/core/lendings.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"

namespace spoke::netagent {

absl::StatusOr<Lending> Lendings::PlanLend(const AttachmentKey& key, const PodReference& pod,
                                           absl::Time now) const {
  if (entries_.contains(key)) {
    return absl::AlreadyExistsError(fmt::format(
        "container {} already has interface {}: DEL it first", key.container_id, key.ifname));
  }
  Lending lending{.key = key, .pod = pod, .since = now};
  // Microseconds as the floor: a journal that was lost must not make the numbers begin again, or
  // the server would take what follows for stale.
  lending.generation = std::max(
      last_generation_ + 1, static_cast<uint64_t>(std::max<int64_t>(absl::ToUnixMicros(now), 1)));
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    bool holds_family = false;
    const std::pair<const ip::Address, Held>* oldest = nullptr;
    for (const auto& candidate : held_) {
      const auto& [address, held] = candidate;
      if (address.family() != family || !held.listed) continue;
      holds_family = true;
      if (held.use != Use::kIdle) continue;
      if (oldest == nullptr || held.idle_since < oldest->second.idle_since) oldest = &candidate;
    }
    if (!holds_family) continue;
    if (oldest == nullptr) {
      return absl::ResourceExhaustedError(fmt::format("no {} address is free on this node",
                                                      family == ip::Family::kV4 ? "IPv4" : "IPv6"));
    }
    lending.addresses.push_back(oldest->first);
  }
  if (lending.addresses.empty()) {
    return absl::ResourceExhaustedError("no address is attached to this node");
  }
  return lending;
}

void Lendings::Apply(const Event& event) {
  std::visit([this](const auto& e) { ApplyOne(e); }, event);
}

void Lendings::ApplyOne(const HoldingsReplaced& event) {
  for (auto& [address, held] : held_) held.listed = false;
  for (const Holding& holding : event.holdings) {
    const auto [it, inserted] = held_.try_emplace(holding.address);
    it->second.pool = holding.pool;
    it->second.listed = true;
    if (inserted) MakeIdle(it);
  }
  std::erase_if(held_, [](const auto& entry) {
    return !entry.second.listed && entry.second.use == Use::kIdle;
  });
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
    const auto [it, inserted] = held_.try_emplace(address);
    if (inserted) it->second.listed = false;
    it->second.use = Use::kLent;
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
    if (event.unused) {
      MakeIdle(it);
      if (!it->second.listed) held_.erase(it);
    } else {
      it->second.use = Use::kCooling;
      it->second.cool_until = event.at + cooldown_;
    }
  }
  entries_.erase(entry);
}

void Lendings::ApplyOne(const CoolingSet& event) {
  const auto it = held_.find(event.address);
  if (it == held_.end() || it->second.use == Use::kLent) return;
  it->second.use = Use::kCooling;
  it->second.cool_until = event.until;
}

void Lendings::MakeIdle(std::map<ip::Address, Held>::iterator it) {
  it->second.use = Use::kIdle;
  it->second.idle_since = ++idle_counter_;
}

std::vector<ip::Address> Lendings::EndCooldowns(absl::Time now) {
  std::vector<ip::Address> cooled;
  for (auto it = held_.begin(); it != held_.end();) {
    const auto current = it++;
    if (current->second.use != Use::kCooling || current->second.cool_until > now) continue;
    cooled.push_back(current->first);
    MakeIdle(current);
    if (!current->second.listed) held_.erase(current);
  }
  return cooled;
}

std::optional<absl::Time> Lendings::NextCooldownEnd() const {
  std::optional<absl::Time> next;
  for (const auto& [address, held] : held_) {
    if (held.use != Use::kCooling) continue;
    next = next ? std::min(*next, held.cool_until) : held.cool_until;
  }
  return next;
}

const Lending* Lendings::Find(const AttachmentKey& key) const {
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : &it->second.lending;
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

std::map<std::string, UseCounts> Lendings::CountByPool() const {
  std::map<std::string, UseCounts> counts;
  for (const auto& [address, held] : held_) {
    UseCounts& pool = counts[held.pool];
    switch (held.use) {
      case Use::kIdle:
        ++pool.idle;
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

std::vector<Event> Lendings::Snapshot() const {
  std::vector<Event> events;
  // In the order of becoming idle, so that a replay reuses them in the same order. What is cooling
  // and no longer listed is listed here nevertheless: it must not be lent before its time even if
  // the server gives it back.
  std::vector<std::pair<uint64_t, Holding>> holdings;
  for (const auto& [address, held] : held_) {
    if (held.listed || held.use == Use::kCooling) {
      holdings.emplace_back(held.idle_since, Holding{address, held.pool});
    }
  }
  std::sort(holdings.begin(), holdings.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  HoldingsReplaced replaced;
  for (auto& [order, holding] : holdings) replaced.holdings.push_back(std::move(holding));
  events.emplace_back(std::move(replaced));
  for (const auto& [key, entry] : entries_) {
    events.emplace_back(LendingBegun{entry.lending});
    if (entry.built) events.emplace_back(LendingBuilt{key});
  }
  for (const auto& [address, held] : held_) {
    if (held.use == Use::kCooling) events.emplace_back(CoolingSet{address, held.cool_until});
  }
  return events;
}

}  // namespace spoke::netagent
