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
  // The size; before a call that fills the address in, all the room there is.
  socklen_t size = sizeof(sockaddr_storage);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SocketAddress ToSocketAddress(const Address& address, uint16_t port);

// Returns the address and port in `from`. Errors: kInvalidArgument (of neither family).
absl::StatusOr<std::pair<Address, uint16_t>> FromSocketAddress(const SocketAddress& from);

// Returns whether it is of 127.0.0.0/8, or ::1.
bool IsLoopback(const Address& address);

// Returns the address alone. An IPv4 address that a socket for both families shows as
// ::ffff:a.b.c.d is a.b.c.d; what is of neither family is 0.0.0.0.
Address PeerAddress(const SocketAddress& from);

}  // namespace spoke::ip
