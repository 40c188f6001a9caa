// Ranges of addresses that cover a whole address space, each with a value. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::netagent {

template <typename T>
struct AddressRange {
  ip::Address first;
  ip::Address last;
  T value{};

  bool operator==(const AddressRange&) const = default;
};

template <typename T>
struct AddressBlock {
  ip::Prefix prefix;
  T value{};
};

inline ip::Address FirstAddress(ip::Family family) {
  return family == ip::Family::kV4 ? ip::Address::V4(0) : ip::Address::V6(0, 0);
}
inline ip::Address LastAddress(ip::Family family) {
  return family == ip::Family::kV4 ? ip::Address::V4(~uint32_t{0})
                                   : ip::Address::V6(~uint64_t{0}, ~uint64_t{0});
}
// Returns the address before one that is not the family's first.
inline ip::Address AddressBefore(const ip::Address& address) {
  if (address.is_v4()) return ip::Address::V4(static_cast<uint32_t>(address.low()) - 1);
  return ip::Address::V6(address.low() == 0 ? address.high() - 1 : address.high(),
                         address.low() - 1);
}

// Appends `range`, or makes the last one longer when it has the same value.
template <typename T>
void PutRange(const AddressRange<T>& range, std::vector<AddressRange<T>>& ranges) {
  if (!ranges.empty() && ranges.back().value == range.value) {
    ranges.back().last = range.last;
  } else {
    ranges.push_back(range);
  }
}

// Returns the family's whole space, each address with the value of the smallest block that holds
// it, or else `otherwise`. Of equal blocks the last one wins. Blocks of the other family are passed
// over.
template <typename T>
std::vector<AddressRange<T>> Flatten(std::vector<AddressBlock<T>> blocks, ip::Family family,
                                     const T& otherwise) {
  // A block comes before those inside it.
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const auto& a, const auto& b) { return a.prefix < b.prefix; });
  struct Open {
    ip::Address last;
    T value;
  };
  std::vector<AddressRange<T>> ranges;
  std::vector<Open> open = {{LastAddress(family), otherwise}};
  // The first address without a value yet.
  std::optional<ip::Address> next = FirstAddress(family);
  const auto close_until = [&](const ip::Address& last) {
    if (!next || last < *next) return;
    PutRange<T>({*next, last, open.back().value}, ranges);
    next = last == LastAddress(family) ? std::nullopt : std::optional(ip::Advance(last, 1));
  };
  for (const AddressBlock<T>& block : blocks) {
    if (block.prefix.family() != family) continue;
    while (open.back().last < block.prefix.base()) {
      close_until(open.back().last);
      open.pop_back();
    }
    if (block.prefix.base() != FirstAddress(family)) {
      close_until(AddressBefore(block.prefix.base()));
    }
    open.push_back({block.prefix.last(), block.value});
  }
  while (!open.empty()) {
    close_until(open.back().last);
    open.pop_back();
  }
  return ranges;
}

// Combines two lists, both of which cover the whole space: `choose` of the two values, address by
// address.
template <typename T, typename A, typename B, typename Choose>
std::vector<AddressRange<T>> Merge(const std::vector<AddressRange<A>>& one,
                                   const std::vector<AddressRange<B>>& other,
                                   const Choose& choose) {
  std::vector<AddressRange<T>> merged;
  size_t a = 0;
  size_t b = 0;
  while (a < one.size() && b < other.size()) {
    const ip::Address first = std::max(one[a].first, other[b].first);
    const ip::Address last = std::min(one[a].last, other[b].last);
    PutRange<T>({first, last, choose(one[a].value, other[b].value)}, merged);
    if (one[a].last == last) ++a;
    if (other[b].last == last) ++b;
  }
  return merged;
}

// Returns the fewest CIDR blocks that make up `first` to `last`.
std::vector<ip::Prefix> BlocksOf(const ip::Address& first, const ip::Address& last);

}  // namespace spoke::netagent
