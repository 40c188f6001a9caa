// Addresses as socket calls want them (ip(7), ipv6(7)). Pure.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"

namespace spoke::ip {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);  // As a call that fills it in wants it.

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SocketAddress ToSocketAddress(const Address& address, uint16_t port);

// The address and port in `from`. Errors: kInvalidArgument (of neither family).
absl::StatusOr<std::pair<Address, uint16_t>> FromSocketAddress(const SocketAddress& from);

// Whether it is of 127.0.0.0/8, or ::1.
bool IsLoopback(const Address& address);

// The address alone. One of IPv4 that a socket for both families shows as ::ffff:a.b.c.d is
// a.b.c.d; 0.0.0.0 for what is of neither family.
Address PeerAddress(const SocketAddress& from);

}  // namespace spoke::ip
