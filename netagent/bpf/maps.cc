#include "netagent/bpf/maps.h"

#include <bpf/bpf.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include "fmt/core.h"

namespace spoke::netagent {

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

}  // namespace spoke::netagent
