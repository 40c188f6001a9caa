// ICMP errors as a router sends them (RFC 792, RFC 1191, RFC 4443). Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/ip/address.h"

namespace spoke::fabric {

enum class IcmpError : uint8_t {
  kNoRoute,   // No subnet of the router has the destination.
  kNoHost,    // A subnet has it, and nobody there answers to it.
  kHopLimit,  // The TTL or hop limit is exceeded.
  kTooBig,    // It must not be fragmented, and the next link takes less.
};

// Returns the frame that tells the sender of `frame`, which must parse as an untagged IP packet,
// that `error` befell it. It comes from the router's `address`, of the packet's family, and `mac`.
// `mtu`, in bytes, is what the next link takes; it is used for kTooBig alone.
std::vector<uint8_t> BuildIcmpError(IcmpError error, std::span<const uint8_t> frame,
                                    const ip::Address& address, const ip::MacAddress& mac,
                                    uint16_t mtu);

}  // namespace spoke::fabric
