#include "lib/nft/ruleset.h"

#include <algorithm>
#include <cstring>

namespace spoke::nft {
namespace {

constexpr size_t kNameBytes = 16;
constexpr size_t kRegisterBytes = 4;

}  // namespace

Bytes HostOrder(uint32_t value) {
  Bytes bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

Bytes NetworkOrder(uint16_t value) {
  return {static_cast<uint8_t>(value >> 8U), static_cast<uint8_t>(value & 0xFFU)};
}

Bytes NetworkOrder(const ip::Address& address) {
  const std::string bytes = address.ToBytes();
  return {bytes.begin(), bytes.end()};
}

Bytes DeviceName(std::string_view name) {
  Bytes bytes(kNameBytes, 0);
  std::copy_n(name.begin(), std::min(name.size(), kNameBytes - 1), bytes.begin());
  return bytes;
}

Bytes Join(std::initializer_list<Bytes> parts) {
  Bytes joined;
  for (const Bytes& part : parts) {
    joined.insert(joined.end(), part.begin(), part.end());
    joined.resize((joined.size() + kRegisterBytes - 1) / kRegisterBytes * kRegisterBytes, 0);
  }
  return joined;
}

}  // namespace spoke::nft
