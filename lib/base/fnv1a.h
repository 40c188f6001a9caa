// FNV-1a of 64 bits (draft-eastlake-fnv, section 2): a hash that is the same in every build and
// version, as std::hash and absl::Hash are not, and no good against somebody who chooses the input.
// Pure.
//
// It needs no more than these two headers: the CNI plugin, which is linked without libstdc++, uses
// it.
#pragma once

#include <cstdint>
#include <string_view>

namespace spoke::base {

inline constexpr uint64_t kFnv1aBasis = 0xCBF29CE484222325ULL;

// The hash of `text`. Where `hash` is the hash of what came before, returns that of both one after
// the other.
constexpr uint64_t Fnv1a(std::string_view text, uint64_t hash = kFnv1aBasis) {
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3ULL;
  return hash;
}

}  // namespace spoke::base
