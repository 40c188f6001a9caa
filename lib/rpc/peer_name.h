// Reads the names that gRPC has for peers. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "lib/ip/address.h"

namespace spoke::rpc {

// Returns the address and port in gRPC's name of a peer, "ipv4:10.0.0.7:4711" or
// "ipv6:%5Bfe80::1%25eth0%5D:4711", without the scope of a link; 0.0.0.0 and 0 when it is not of
// the Internet.
std::pair<ip::Address, uint16_t> ParsePeerName(std::string_view name);

}  // namespace spoke::rpc
