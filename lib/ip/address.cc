#include "lib/ip/address.h"

#include <arpa/inet.h>

#include "fmt/core.h"
#include "lib/base/check.h"

namespace spoke::ip {
namespace {

uint64_t LoadBigEndian(std::span<const uint8_t> bytes) {
  uint64_t value = 0;
  for (const uint8_t byte : bytes) value = (value << 8U) | byte;
  return value;
}

void StoreBigEndian(uint64_t value, std::span<uint8_t> bytes) {
  for (size_t i = bytes.size(); i > 0; --i) {
    bytes[i - 1] = static_cast<uint8_t>(value & 0xFFU);
    value >>= 8U;
  }
}

}  // namespace

absl::StatusOr<Address> Address::Parse(std::string_view text) {
  const std::string terminated(text);  // inet_pton wants a terminator; an inner NUL must not pass.
  std::array<uint8_t, 16> bytes{};
  if (terminated.find('\0') == std::string::npos) {
    if (::inet_pton(AF_INET, terminated.c_str(), bytes.data()) == 1) {
      return V4(static_cast<uint32_t>(LoadBigEndian(std::span(bytes).first(4))));
    }
    if (::inet_pton(AF_INET6, terminated.c_str(), bytes.data()) == 1) {
      return FromBytes(std::span<const uint8_t>(bytes));
    }
  }
  return absl::InvalidArgumentError(fmt::format("\"{}\" is not an IP address", text));
}

absl::StatusOr<Address> Address::FromBytes(std::span<const uint8_t> bytes) {
  if (bytes.size() == 4) return V4(static_cast<uint32_t>(LoadBigEndian(bytes)));
  if (bytes.size() == 16) {
    return V6(LoadBigEndian(bytes.first(8)), LoadBigEndian(bytes.last(8)));
  }
  return absl::InvalidArgumentError(
      fmt::format("an IP address has 4 or 16 bytes, not {}", bytes.size()));
}

absl::StatusOr<Address> Address::FromBytes(std::string_view bytes) {
  return FromBytes(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

std::string Address::ToBytes() const {
  std::array<uint8_t, 16> bytes{};
  if (is_v4()) {
    StoreBigEndian(low_, std::span(bytes).first(4));
    return {reinterpret_cast<const char*>(bytes.data()), 4};
  }
  StoreBigEndian(high_, std::span(bytes).first(8));
  StoreBigEndian(low_, std::span(bytes).last(8));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string Address::ToString() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const std::string bytes = ToBytes();
  ::inet_ntop(is_v4() ? AF_INET : AF_INET6, bytes.data(), text.data(), text.size());
  return text.data();
}

Address Advance(const Address& base, uint64_t steps) {
  if (base.is_v4()) return Address::V4(static_cast<uint32_t>(base.low() + steps));
  const uint64_t low = base.low() + steps;
  return Address::V6(base.high() + (low < base.low() ? 1 : 0), low);
}

uint64_t Distance(const Address& base, const Address& address) {
  CHECK(base.family() == address.family(), "distance is taken inside one family");
  return address.low() - base.low();
}

absl::StatusOr<MacAddress> MacAddress::Parse(std::string_view text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a MAC address (aa:bb:cc:dd:ee:ff)", text));
  };
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  if (text.size() != 17) return bad();
  MacAddress mac;
  for (size_t i = 0; i < mac.octets.size(); ++i) {
    const int high = digit(text[3 * i]);
    const int low = digit(text[3 * i + 1]);
    const bool separated = i == 5 || text[3 * i + 2] == ':';
    if (high < 0 || low < 0 || !separated) return bad();
    mac.octets[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return mac;
}

std::string MacAddress::ToString() const {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", octets[0], octets[1], octets[2],
                     octets[3], octets[4], octets[5]);
}

}  // namespace spoke::ip
