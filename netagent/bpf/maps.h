// Reads and changes elements of the maps of programs in the kernel, by descriptor. `what` says in
// an error what was tried. Errors: kInternal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "netagent/bpf/layout.h"

namespace spoke::netagent {

spoke_address ToLayout(const ip::Address& address);
ip::Address FromLayout(const spoke_address& in, bool is_v4);

absl::Status MapError(int error, std::string_view what);

// Puts the element. The key and the value have the sizes that the map was made with. For a map that
// has a value for each processor, `value` begins an array of as many.
absl::Status PutElement(int map, const void* key, const void* value, std::string_view what);
// Erases the element. OK when it is not there.
absl::Status EraseElement(int map, const void* key, std::string_view what);

template <typename Key, typename Value>
absl::Status Put(int map, const Key& key, const Value& value, std::string_view what) {
  return PutElement(map, &key, &value, what);
}

// The number of elements that the kernel is asked for at once.
inline constexpr uint32_t kElementsAtOnce = 512;

// The sizes of a map's keys and values, in bytes.
struct ElementSizes {
  size_t key = 0;
  size_t value = 0;
};

// Calls `each` with every key and value of a map, which has one value for all processors. The
// pointers need not be aligned, and are good until `each` returns. `at_once` is above 0; where the
// kernel has more in one bucket, it is doubled.
absl::Status WalkElements(int map, const ElementSizes& sizes, std::string_view what,
                          uint32_t at_once,
                          absl::FunctionRef<void(const void* key, const void* value)> each);

// Calls `each` with every key and its value, as WalkElements() does. Elements that come or go
// meanwhile may be missed. An error may come after some elements.
template <typename Key, typename Value, typename Each>
absl::Status ForEachElement(int map, std::string_view what, const Each& each,
                            uint32_t at_once = kElementsAtOnce) {
  return WalkElements(map, {sizeof(Key), sizeof(Value)}, what, at_once,
                      [&each](const void* raw_key, const void* raw_value) {
                        Key key;
                        Value value;
                        std::memcpy(&key, raw_key, sizeof(key));
                        std::memcpy(&value, raw_value, sizeof(value));
                        each(key, value);
                      });
}

// Reads the values of the keys from 0 on of an array, `count` of them, to `values`. `size` is what
// each key has, in bytes: of a map that has a value for each processor, as many values.
absl::Status ReadFirst(int map, uint32_t count, size_t size, void* values, std::string_view what);

// Returns these values, in the order of their keys; `each` is how many a key has.
template <typename Value>
absl::StatusOr<std::vector<Value>> ReadFirst(int map, uint32_t count, size_t each,
                                             std::string_view what) {
  std::vector<Value> values(count * each);
  if (absl::Status read = ReadFirst(map, count, each * sizeof(Value), values.data(), what);
      !read.ok()) {
    return read;
  }
  return values;
}

template <typename Key>
absl::Status Erase(int map, const Key& key, std::string_view what) {
  return EraseElement(map, &key, what);
}

}  // namespace spoke::netagent
