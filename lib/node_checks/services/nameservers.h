// Finds whom this node asks for addresses: the name servers of /etc/resolv.conf. Pure.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "lib/ip/address.h"

namespace spoke::node_checks {

// The most name servers that are read: the C library asks the first three (resolv.conf(5)); others
// may ask more.
inline constexpr size_t kMaxNameservers = 16;

// Returns the addresses behind "nameserver", in their order, each once; a zone ("%eth0") is left
// out. What is no such line, or no address, is passed over, as resolvers do.
std::vector<ip::Address> ParseNameservers(std::string_view text);

}  // namespace spoke::node_checks
