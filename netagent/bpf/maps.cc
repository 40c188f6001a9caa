#include "netagent/bpf/maps.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <string>
#include <vector>

#include "fmt/core.h"

namespace spoke::netagent {
namespace {

using Bytes = std::vector<std::byte>;

// The error that the kernel says of a map whose elements it does not hand out in batches (ENOTSUPP,
// which no header for programs has), or in general before Linux 5.6.
constexpr int kNoBatches = 524;

// The least size of a place: one between two batches takes as much as a key, or as the number of a
// bucket.
constexpr size_t kLeastPlace = sizeof(uint64_t);

// Walks maps without batches, by two system calls an element. It sees at most as many elements as
// the map takes, since a walk begins anew where the element before has gone.
absl::Status WalkOneByOne(int map, const bpf_map_info& info, std::string_view what,
                          absl::FunctionRef<void(const void* key, const void* value)> each) {
  Bytes key(info.key_size);
  Bytes next(info.key_size);
  Bytes value(info.value_size);
  for (uint32_t seen = 0; seen < info.max_entries; ++seen) {
    if (bpf_map_get_next_key(map, seen == 0 ? nullptr : key.data(), next.data()) != 0) {
      return errno == ENOENT ? absl::OkStatus() : MapError(errno, what);
    }
    std::swap(key, next);
    if (bpf_map_lookup_elem(map, key.data(), value.data()) == 0) {
      each(key.data(), value.data());
    } else if (errno != ENOENT) {
      return MapError(errno, what);
    }
  }
  return absl::OkStatus();
}

}  // namespace

spoke_address ToLayout(const ip::Address& address) {
  spoke_address out{};
  const std::string bytes = address.ToBytes();
  std::memcpy(&out, bytes.data(), bytes.size());
  return out;
}

ip::Address FromLayout(const spoke_address& in, bool is_v4) {
  std::array<uint8_t, sizeof(in)> bytes{};
  std::memcpy(bytes.data(), &in, sizeof(in));
  const auto span = std::span<const uint8_t>(bytes).first(is_v4 ? 4 : 16);
  return ip::Address::FromBytes(span).value();
}

absl::Status MapError(int error, std::string_view what) {
  const std::string text = fmt::format("{}: {}", what, std::strerror(error));
  return error == E2BIG ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

absl::Status PutElement(int map, const void* key, const void* value, std::string_view what) {
  if (bpf_map_update_elem(map, key, value, BPF_ANY) == 0) return absl::OkStatus();
  return MapError(errno, what);
}

absl::Status EraseElement(int map, const void* key, std::string_view what) {
  if (bpf_map_delete_elem(map, key) == 0 || errno == ENOENT) return absl::OkStatus();
  return MapError(errno, what);
}

absl::Status WalkElements(int map, const ElementSizes& sizes, std::string_view what,
                          uint32_t at_once,
                          absl::FunctionRef<void(const void* key, const void* value)> each) {
  bpf_map_info info{};
  uint32_t length = sizeof(info);
  if (bpf_obj_get_info_by_fd(map, &info, &length) != 0) return MapError(errno, what);
  if (info.key_size != sizes.key || info.value_size != sizes.value) return MapError(EINVAL, what);
  Bytes place(std::max(sizes.key, kLeastPlace));
  Bytes next(place.size());
  bpf_map_batch_opts options{};
  options.sz = sizeof(options);
  for (bool is_first = true, is_last = false; !is_last;) {
    Bytes keys(at_once * sizes.key);
    Bytes values(at_once * sizes.value);
    // The kernel takes less where a bucket no longer fits.
    uint32_t count = at_once;
    const int failed = bpf_map_lookup_batch(map, is_first ? nullptr : place.data(), next.data(),
                                            keys.data(), values.data(), &count, &options);
    const int error = failed != 0 ? errno : 0;
    if (is_first && (error == EINVAL || error == kNoBatches)) {
      return WalkOneByOne(map, info, what, each);
    }
    if (error == ENOSPC && at_once < info.max_entries) {
      at_once *= 2;  // The next bucket has more.
      continue;
    }
    is_last = error == ENOENT;
    if (error != 0 && !is_last) return MapError(error, what);
    for (uint32_t i = 0; i < count; ++i) {
      each(keys.data() + i * sizes.key, values.data() + i * sizes.value);
    }
    std::swap(place, next);
    is_first = false;
  }
  return absl::OkStatus();
}

absl::Status ReadFirst(int map, uint32_t count, size_t size, void* values, std::string_view what) {
  if (count == 0) return absl::OkStatus();
  std::vector<uint32_t> keys(count);
  uint32_t place = 0;
  uint32_t read = count;
  bpf_map_batch_opts options{};
  options.sz = sizeof(options);
  const int failed =
      bpf_map_lookup_batch(map, nullptr, &place, keys.data(), values, &read, &options);
  const int error = failed != 0 ? errno : 0;
  const bool is_read = error == 0 || error == ENOENT;  // The latter is said with the last of all.
  if (is_read && read == count) return absl::OkStatus();
  // Linux before 5.13 has no batches of arrays with a value for each processor.
  if (!is_read && error != EINVAL && error != kNoBatches) return MapError(error, what);
  for (uint32_t key = 0; key < count; ++key) {
    void* const value = static_cast<std::byte*>(values) + key * size;
    if (bpf_map_lookup_elem(map, &key, value) != 0) return MapError(errno, what);
  }
  return absl::OkStatus();
}

}  // namespace spoke::netagent
