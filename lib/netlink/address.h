// Addresses on devices. AddAddress() and ParseAddress() are pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/netlink/request.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {

struct LinkAddress {
  int32_t link = 0;     // The device's index.
  ip::Address address;  // The device's own address; never the far end's of a point-to-point link.
  int prefix_length = 0;
  uint8_t scope = 0;   // The scope, RT_SCOPE_*; 0 is global.
  uint32_t flags = 0;  // The flags, IFA_F_*.

  bool operator==(const LinkAddress&) const = default;
};

// Reads the payload of an RTM_NEWADDR message. Errors: kDataLoss (cut short, a length that cannot
// be, no address, or a family that is neither IPv4 nor IPv6).
absl::StatusOr<LinkAddress> ParseAddress(std::span<const uint8_t> payload);

// Puts `address` alone (/32 or /128) on the device. There is no duplicate address detection for
// IPv6: the address can be used at once. Refused with kAlreadyExists when it is there.
Request AddAddress(int32_t link, const ip::Address& address, uint8_t scope = 0);

// Returns the addresses of one device, or of all with index 0. Errors: as Dump().
absl::StatusOr<std::vector<LinkAddress>> DumpAddresses(Socket& socket, ip::Family family,
                                                       int32_t link);

}  // namespace spoke::netlink
