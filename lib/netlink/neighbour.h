// Neighbours: which MAC address answers for an IP address on a link. The request functions and
// ParseNeighbour() are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/netlink/request.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {

struct Neighbour {
  int32_t link = 0;  // The device's index.
  ip::Address address;
  std::optional<ip::MacAddress> mac;  // The MAC; nullopt while it is being asked for.
  uint16_t state = 0;                 // The state, NUD_* of linux/neighbour.h.

  bool operator==(const Neighbour&) const = default;
};

// Reads the payload of an RTM_NEWNEIGH message. Errors: kDataLoss (cut short, a length that cannot
// be, no address, or a family that is neither IPv4 nor IPv6).
absl::StatusOr<Neighbour> ParseNeighbour(std::span<const uint8_t> payload);

// Puts a permanent entry in place of whatever the kernel has for the address: never asked for,
// never timed out, and nothing on the link can change it.
Request SetPermanentNeighbour(int32_t link, const ip::Address& address, const ip::MacAddress& mac);

// Deletes an entry. One that is not there is no error.
Request DeleteNeighbour(int32_t link, const ip::Address& address);

// Returns the family's neighbours on one device, or on all with index 0. Errors: as Dump().
absl::StatusOr<std::vector<Neighbour>> DumpNeighbours(Socket& socket, ip::Family family,
                                                      int32_t link);

}  // namespace spoke::netlink
