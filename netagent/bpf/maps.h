// Elements of the maps of programs in the kernel, by descriptor. `what` says in an error what was
// tried. Errors: kInternal.
#pragma once

#include <bpf/bpf.h>

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "lib/ip/address.h"
#include "netagent/bpf/layout.h"

namespace spoke::netagent {

spoke_address ToLayout(const ip::Address& address);
ip::Address FromLayout(const spoke_address& in, bool is_v4);

absl::Status MapError(int error, std::string_view what);

// The key and the value have the sizes that the map was made with. Of a map that has a value for
// each processor, `value` begins an array of as many.
absl::Status PutElement(int map, const void* key, const void* value, std::string_view what);
// One that is not there is erased.
absl::Status EraseElement(int map, const void* key, std::string_view what);

template <typename Key, typename Value>
absl::Status Put(int map, const Key& key, const Value& value, std::string_view what) {
  return PutElement(map, &key, &value, what);
}

// Calls `each` with every key and its value, of `most` at most. Elements that come or go meanwhile
// may be missed.
template <typename Key, typename Value, typename Each>
void ForEachElement(int map, uint32_t most, const Each& each) {
  Key key{};
  const Key* previous = nullptr;
  for (uint32_t seen = 0; seen < most; ++seen) {
    Key next{};
    if (bpf_map_get_next_key(map, previous, &next) != 0) return;
    Value value{};
    if (bpf_map_lookup_elem(map, &next, &value) == 0) each(next, value);
    key = next;
    previous = &key;
  }
}

template <typename Key>
absl::Status Erase(int map, const Key& key, std::string_view what) {
  return EraseElement(map, &key, what);
}

}  // namespace spoke::netagent
