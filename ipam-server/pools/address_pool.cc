#include "ipam-server/pools/address_pool.h"

#include <algorithm>

#include "fmt/core.h"
#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

// The most addresses: far above any subnet in use at once, and low enough to avoid overflow.
constexpr uint64_t kMostAddresses = uint64_t{1} << 62U;
// A job of thousands of pods may end at one moment.
constexpr size_t kMostCooldowns = 8192;

}  // namespace

AddressPool::AddressPool(PoolSpec spec) : spec_(std::move(spec)) {
  const int bits = spec_.cidr.base().bits();
  unit_length_ = spec_.block_length == 0 ? bits : static_cast<int>(spec_.block_length);
  CHECK(unit_length_ >= spec_.cidr.length() && unit_length_ <= bits && bits - unit_length_ < 32,
        "the block length was validated");
  unit_size_ = uint64_t{1} << static_cast<unsigned>(bits - unit_length_);
  const uint64_t size = std::min(spec_.cidr.size(), kMostAddresses);
  first_unit_ = (spec_.reserve_first + unit_size_ - 1) / unit_size_;
  const uint64_t end = size > spec_.reserve_last ? size - spec_.reserve_last : 0;
  last_unit_ = std::max(first_unit_, end / unit_size_);
  never_used_ = first_unit_;
}

uint64_t AddressPool::Addresses(uint64_t units) const { return units * unit_size_; }

absl::StatusOr<ip::Prefix> AddressPool::Take(const NodeRecord* owner, absl::Time now) {
  if (rests_until_ && now < *rests_until_) return absl::ResourceExhaustedError(Describe());
  rests_until_.reset();
  while (never_used_ < last_unit_) {
    const uint64_t index = never_used_++;
    const auto [it, inserted] = units_.try_emplace(index);
    if (!inserted) continue;  // It was adopted or quarantined before its turn came.
    it->second.owner = owner;
    ++held_;
    return UnitAt(index);
  }
  EndCooldowns(now);
  while (!ready_.empty()) {
    const auto [index, usable_from] = ready_.front();
    ready_.pop_front();
    Unit& unit = units_.at(index);
    if (unit.owner != nullptr || unit.quarantined || unit.cooldown ||
        unit.usable_from != usable_from) {
      continue;
    }
    unit.owner = owner;
    ++held_;
    return UnitAt(index);
  }
  return absl::ResourceExhaustedError(Describe());
}

// Takes the unit out of the count it is in, so that it can enter another.
void AddressPool::Leave(Unit& unit) {
  if (unit.cooldown) --cooldown_count_;
  if (unit.quarantined && unit.owner == nullptr) --quarantined_;
  unit.cooldown = false;
}

bool AddressPool::Hold(const ip::Prefix& unit, const NodeRecord* owner) {
  if (!Owns(unit)) return false;
  Unit& entry = units_[IndexOf(unit.base())];
  if (entry.owner != nullptr) return false;
  Leave(entry);
  entry.owner = owner;
  entry.usable_from = absl::InfinitePast();  // No entry of a queue means this unit any more.
  ++held_;
  return true;
}

bool AddressPool::Release(const ip::Prefix& unit, absl::Time usable_from) {
  if (!Owns(unit)) return false;
  const auto it = units_.find(IndexOf(unit.base()));
  if (it == units_.end() || it->second.owner == nullptr) return false;
  it->second.owner = nullptr;
  --held_;
  if (it->second.quarantined) ++quarantined_;
  Cool(unit, usable_from);
  return true;
}

bool AddressPool::Cool(const ip::Prefix& unit, absl::Time usable_from) {
  if (!Owns(unit)) return false;
  const uint64_t index = IndexOf(unit.base());
  Unit& entry = units_[index];
  if (entry.owner != nullptr) return false;
  entry.usable_from = usable_from;
  if (entry.quarantined) return false;  // What is left of it begins when that is lifted.
  Leave(entry);
  entry.cooldown = true;
  ++cooldown_count_;
  cooldown_.emplace_back(index, usable_from);
  return true;
}

bool AddressPool::SetQuarantined(const ip::Prefix& unit, bool quarantined) {
  if (!Owns(unit)) return false;
  const uint64_t index = IndexOf(unit.base());
  const auto it = units_.find(index);
  const bool is = it != units_.end() && it->second.quarantined;
  if (is == quarantined) return false;
  Unit& entry = units_[index];
  Leave(entry);
  entry.quarantined = quarantined;
  if (entry.owner != nullptr) return true;
  if (quarantined) {
    ++quarantined_;
    return true;
  }
  if (entry.usable_from <= absl::UnixEpoch()) {  // Nobody has had it.
    ready_.emplace_back(index, entry.usable_from);
    return true;
  }
  // A quarantine ends no cooldown. One that is over ends at the next look.
  entry.cooldown = true;
  ++cooldown_count_;
  const auto behind = std::find_if(cooldown_.rbegin(), cooldown_.rend(), [&](const auto& other) {
    return other.second <= entry.usable_from;
  });
  cooldown_.insert(behind.base(), {index, entry.usable_from});
  return true;
}

void AddressPool::EndCooldowns(absl::Time now) {
  if (rests_until_ && now >= *rests_until_) rests_until_.reset();
  for (size_t i = 0; i < kMostCooldowns; ++i) {
    if (cooldown_.empty() || cooldown_.front().second > now) return;
    const auto [index, usable_from] = cooldown_.front();
    cooldown_.pop_front();
    Unit& unit = units_.at(index);
    if (!unit.cooldown || unit.usable_from != usable_from) continue;
    unit.cooldown = false;
    --cooldown_count_;
    ready_.emplace_back(index, usable_from);
  }
}

// --- Another specification. ---

// Whether every unit keeps its place, and only more units come.
bool AddressPool::GrowsTo(const AddressPool& next) const {
  return next.spec_.cidr.base() == spec_.cidr.base() && next.unit_length_ == unit_length_ &&
         next.first_unit_ <= first_unit_ && next.last_unit_ >= last_unit_;
}

std::optional<ip::Prefix> AddressPool::InUseOutside(const PoolSpec* spec) const {
  std::optional<AddressPool> next;
  if (spec != nullptr) next.emplace(*spec);
  if (next && GrowsTo(*next)) return std::nullopt;
  const bool in_place =
      next && next->spec_.cidr.base() == spec_.cidr.base() && next->unit_length_ == unit_length_;
  const auto keeps = [&](uint64_t index) {
    if (in_place) return index >= next->first_unit_ && index < next->last_unit_;
    return next && next->Owns(UnitAt(index));
  };
  std::optional<uint64_t> first;
  for (const auto& [index, unit] : units_) {
    if (!unit.in_use() || (first && *first < index)) continue;
    if (!keeps(index)) first = index;
  }
  return first ? std::optional(UnitAt(*first)) : std::nullopt;
}

void AddressPool::Respecify(PoolSpec spec) {
  AddressPool next(std::move(spec));
  const bool in_place =
      next.spec_.cidr.base() == spec_.cidr.base() && next.unit_length_ == unit_length_;
  if (in_place) {
    // What is free and outside is forgotten, and comes anew should the pool grow again.
    const auto outside = [&](uint64_t index) {
      return index < next.first_unit_ || index >= next.last_unit_;
    };
    if (!GrowsTo(next)) {
      absl::erase_if(units_, [&](const auto& entry) {
        CHECK(!outside(entry.first) || !entry.second.in_use(), "what is in use was looked for");
        return outside(entry.first);
      });
      for (Queue* queue : {&cooldown_, &ready_}) {
        std::erase_if(*queue, [&](const auto& entry) { return outside(entry.first); });
      }
    }
    // The units before the first one come first now; the others are skipped.
    never_used_ = next.first_unit_ < first_unit_
                      ? next.first_unit_
                      : std::clamp(never_used_, next.first_unit_, next.last_unit_);
    first_unit_ = next.first_unit_;
    last_unit_ = next.last_unit_;
    spec_ = std::move(next.spec_);
    return;
  }
  // Units that the next pool has keep their order.
  for (const auto& [index, unit] : units_) {
    const ip::Prefix range = UnitAt(index);
    if (next.Owns(range)) {
      next.units_.emplace(next.IndexOf(range.base()), unit);
    } else {
      CHECK(!unit.in_use(), "what is in use was looked for");
    }
  }
  next.CarryOver(cooldown_, next.cooldown_, *this);
  next.CarryOver(ready_, next.ready_, *this);
  next.held_ = held_;
  next.cooldown_count_ = cooldown_count_;
  next.quarantined_ = quarantined_;
  next.rests_until_ = rests_until_;
  *this = std::move(next);
}

void AddressPool::CarryOver(const Queue& from, Queue& to, const AddressPool& former) const {
  for (const auto& [index, at] : from) {
    const ip::Prefix range = former.UnitAt(index);
    if (Owns(range)) to.emplace_back(IndexOf(range.base()), at);
  }
}

AddressPool::InUse AddressPool::Used() const {
  uint64_t lowest = last_unit_;
  uint64_t highest = first_unit_;
  uint64_t units = 0;
  for (const auto& [index, unit] : units_) {
    if (!unit.in_use()) continue;
    ++units;
    lowest = std::min(lowest, index);
    highest = std::max(highest, index);
  }
  if (units == 0) return {};
  return {.addresses = Addresses(units),
          .lowest = UnitAt(lowest).base(),
          .highest = UnitAt(highest).last()};
}

std::optional<ip::Prefix> AddressPool::UnitOf(const ip::Address& address) const {
  if (!spec_.cidr.Contains(address)) return std::nullopt;
  // Only the first 2^64 addresses of an IPv6 block above /64 are ever used.
  if (address.high() != spec_.cidr.base().high()) return std::nullopt;
  const uint64_t index = IndexOf(address);
  if (index < first_unit_ || index >= last_unit_) return std::nullopt;
  return UnitAt(index);
}

bool AddressPool::Owns(const ip::Prefix& unit) const {
  return unit.length() == unit_length_ && UnitOf(unit.base()) == unit;
}

const NodeRecord* AddressPool::OwnerOf(const ip::Address& address) const {
  if (!UnitOf(address)) return nullptr;
  const auto it = units_.find(IndexOf(address));
  return it == units_.end() ? nullptr : it->second.owner;
}

AddressPool::State AddressPool::StateOf(const ip::Address& address) const {
  if (!UnitOf(address)) return State::kExcluded;
  const auto it = units_.find(IndexOf(address));
  const State free = rests_until_ ? State::kCooldown : State::kFree;
  if (it == units_.end()) return free;
  if (it->second.owner != nullptr) return State::kHeld;
  if (it->second.quarantined) return State::kQuarantined;
  return it->second.cooldown ? State::kCooldown : free;
}

absl::Time AddressPool::UsableFrom(const ip::Address& address) const {
  const auto it = units_.find(IndexOf(address));
  const absl::Time own = it == units_.end() ? absl::InfinitePast() : it->second.usable_from;
  return std::max(own, rests_until_.value_or(own));
}

uint64_t AddressPool::IndexOf(const ip::Address& address) const {
  return ip::Distance(spec_.cidr.base(), address) / unit_size_;
}

ip::Prefix AddressPool::UnitAt(uint64_t index) const {
  return ip::Prefix::Of(ip::Advance(spec_.cidr.base(), index * unit_size_), unit_length_).value();
}

std::string AddressPool::Describe() const {
  std::string text =
      fmt::format("pool {} ({}): {} usable, {} attached, {} in cooldown, {} free", spec_.name,
                  spec_.cidr.ToString(), usable(), held(), cooldown(), free());
  if (quarantined() > 0) text += fmt::format(", {} quarantined", quarantined());
  return text;
}

}  // namespace spoke::ipam
