#include "lib/ip/socket_address.h"

#include <arpa/inet.h>

#include <cstring>
#include <string>
#include <string_view>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ip {

SocketAddress ToSocketAddress(const Address& address, uint16_t port) {
  SocketAddress out;
  const std::string bytes = address.ToBytes();
  if (address.is_v4()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, bytes.data(), sizeof(in.sin_addr));
    std::memcpy(&out.storage, &in, sizeof(in));
    out.size = sizeof(in);
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::memcpy(&in.sin6_addr, bytes.data(), sizeof(in.sin6_addr));
    std::memcpy(&out.storage, &in, sizeof(in));
    out.size = sizeof(in);
  }
  return out;
}

absl::StatusOr<std::pair<Address, uint16_t>> FromSocketAddress(const SocketAddress& from) {
  std::string_view bytes;
  uint16_t port = 0;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  switch (from.storage.ss_family) {
    case AF_INET:
      std::memcpy(&v4, &from.storage, sizeof(v4));
      bytes = {reinterpret_cast<const char*>(&v4.sin_addr), sizeof(v4.sin_addr)};
      port = ntohs(v4.sin_port);
      break;
    case AF_INET6:
      std::memcpy(&v6, &from.storage, sizeof(v6));
      bytes = {reinterpret_cast<const char*>(&v6.sin6_addr), sizeof(v6.sin6_addr)};
      port = ntohs(v6.sin6_port);
      break;
    default:
      return absl::InvalidArgumentError(
          fmt::format("a socket address of family {}", from.storage.ss_family));
  }
  ASSIGN_OR_RETURN(const Address address, Address::FromBytes(bytes));
  return std::pair(address, port);
}

bool IsLoopback(const Address& address) {
  constexpr uint64_t kLoopbackNet = 127;
  return address.is_v4() ? address.low() >> 24U == kLoopbackNet : address == Address::V6(0, 1);
}

Address PeerAddress(const SocketAddress& from) {
  constexpr uint64_t kMapped = 0xFFFF;
  const auto peer = FromSocketAddress(from);
  if (!peer.ok()) return {};
  const Address& address = peer->first;
  if (address.is_v4() || address.high() != 0 || address.low() >> 32U != kMapped) return address;
  return Address::V4(static_cast<uint32_t>(address.low()));
}

}  // namespace spoke::ip
