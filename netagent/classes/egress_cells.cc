#include "netagent/classes/egress_cells.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lib/base/check.h"

namespace spoke::netagent {
namespace {

ip::Address Lowest(ip::Family family) {
  return family == ip::Family::kV4 ? ip::Address::V4(0) : ip::Address::V6(0, 0);
}

ip::Address Highest(ip::Family family) {
  return family == ip::Family::kV4 ? ip::Address::V4(0xFFFFFFFF)
                                   : ip::Address::V6(~uint64_t{0}, ~uint64_t{0});
}

// Returns the address after `address`, unless that is the last one.
std::optional<ip::Address> After(const ip::Address& address) {
  if (address == Highest(address.family())) return std::nullopt;
  return ip::Advance(address, 1);
}

bool IsInside(ClassNumber number) { return number != kInternet && number < kFirstGroup; }

// The number of blocks of each sort that one policy has around the address that the sweep is at.
struct Depth {
  int meant = 0;    // Blocks that are meant as they stand.
  int outside = 0;  // Blocks of which only what lies outside is meant.
  int excluded = 0;
};

struct Event {
  uint32_t policy = 0;
  int Depth::*depth = nullptr;
  int change = 0;
};

// Walks one address space from its first address to its last.
class Sweep {
 public:
  Sweep(ip::Family family, const ClassMap& classes) : family_(family), classes_(classes) {
    events_[Lowest(family)];
    for (const ClassRange& range : classes.ranges(family)) events_[range.first];
  }

  void Add(uint32_t policy, const Destinations& destinations) {
    for (const ip::Prefix& block : destinations.blocks) {
      Add(policy, block, LiesInside(block) ? &Depth::meant : &Depth::outside);
    }
    for (const ip::Prefix& block : destinations.outside) Add(policy, block, &Depth::outside);
    for (const ip::Prefix& block : destinations.excluded) Add(policy, block, &Depth::excluded);
  }

  // Cuts a boundary before and behind `address`.
  void Cut(const ip::Address& address) {
    if (address.family() != family_) return;
    events_[address];
    if (const auto next = After(address)) events_[*next];
  }

  template <typename Visit>
  void Run(Visit visit) {
    std::map<uint32_t, Depth> depths;
    auto range = classes_.ranges(family_).begin();
    const auto end = classes_.ranges(family_).end();
    for (auto event = events_.begin(); event != events_.end(); ++event) {
      for (const Event& e : event->second) {
        Depth& depth = depths[e.policy];
        depth.*e.depth += e.change;
        if (depth.meant == 0 && depth.outside == 0 && depth.excluded == 0) depths.erase(e.policy);
      }
      while (range != end && range->last < event->first) ++range;
      const ClassNumber number = range == end ? kInternet : range->number;
      const auto next = std::next(event);
      const ip::Address last = next == events_.end() ? Highest(family_) : Before(next->first);
      visit(event->first, last, number, depths);
    }
  }

 private:
  // Returns the address before one that is not the first.
  static ip::Address Before(const ip::Address& address) {
    if (address.is_v4()) return ip::Address::V4(static_cast<uint32_t>(address.low() - 1));
    return ip::Address::V6(address.high() - (address.low() == 0 ? 1 : 0), address.low() - 1);
  }

  void Add(uint32_t policy, const ip::Prefix& block, int Depth::*depth) {
    if (block.family() != family_) return;
    events_[block.base()].push_back({policy, depth, 1});
    if (const auto next = After(block.last())) events_[*next].push_back({policy, depth, -1});
  }

  // Returns whether no address of `block` is on the Internet or in a destination group.
  bool LiesInside(const ip::Prefix& block) const {
    const std::vector<ClassRange>& ranges = classes_.ranges(block.family());
    auto range = std::upper_bound(
        ranges.begin(), ranges.end(), block.base(),
        [](const ip::Address& address, const ClassRange& r) { return address < r.first; });
    if (range == ranges.begin()) return false;
    for (--range; range != ranges.end() && range->first <= block.last(); ++range) {
      if (!IsInside(range->number)) return false;
    }
    return true;
  }

  const ip::Family family_;
  const ClassMap& classes_;
  std::map<ip::Address, std::vector<Event>> events_;
};

}  // namespace

uint32_t Cells::CellOf(const ip::Address& address) const {
  const std::vector<CellRange>& ranges = address.is_v4() ? v4 : v6;
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), address,
      [](const ip::Address& a, const CellRange& range) { return a < range.first; });
  CHECK(after != ranges.begin(), "cells cover the whole address space");
  return std::prev(after)->cell;
}

Cells CutIntoCells(const std::vector<Destinations>& policies, const ClassMap& classes,
                   const std::set<ip::Address>& own) {
  Cells out;
  std::map<Cell, uint32_t> numbers;
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    std::vector<CellRange>& ranges = family == ip::Family::kV4 ? out.v4 : out.v6;
    Sweep sweep(family, classes);
    for (uint32_t i = 0; i < policies.size(); ++i) sweep.Add(i, policies[i]);
    for (const ip::Address& address : own) sweep.Cut(address);
    for (const ip::Address& address : policy::kPlatformServices) sweep.Cut(address);
    sweep.Run([&](const ip::Address& first, const ip::Address& last, ClassNumber number,
                  const std::map<uint32_t, Depth>& depths) {
      Cell cell;
      const bool platform =
          std::find(policy::kPlatformServices.begin(), policy::kPlatformServices.end(), first) !=
          policy::kPlatformServices.end();
      if (platform) {
        cell.platform = true;
      } else if (!own.contains(first)) {
        cell.cluster = number == kCluster;
        for (const auto& [policy, depth] : depths) {
          const bool meant = depth.meant > 0 || (depth.outside > 0 && !IsInside(number));
          if (meant && depth.excluded == 0) cell.policies.push_back(policy);
        }
      }
      const uint32_t number_of_cell =
          numbers.emplace(std::move(cell), static_cast<uint32_t>(numbers.size())).first->second;
      if (!ranges.empty() && ranges.back().cell == number_of_cell) {
        ranges.back().last = last;
      } else {
        ranges.push_back({first, last, number_of_cell});
      }
    });
  }
  out.cells.resize(numbers.size());
  for (const auto& [cell, number] : numbers) out.cells[number] = cell;
  return out;
}

}  // namespace spoke::netagent
