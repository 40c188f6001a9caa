// Elements of the maps of programs in the kernel, by descriptor. `what` says in an error what was
// tried. Errors: kInternal.
#pragma once

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

template <typename Key>
absl::Status Erase(int map, const Key& key, std::string_view what) {
  return EraseElement(map, &key, what);
}

}  // namespace spoke::netagent
