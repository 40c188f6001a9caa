// Tells when an address that was just added can be used.
#pragma once

#include "lib/ip/address.h"
#include "lib/netlink/socket.h"
#include "lib/netns/netns.h"

namespace spoke::netagent {

// Returns when the namespace takes packets to `address` for its own. The kernel adds that route for
// a new IPv6 address a moment after the address itself, from a work queue.
void AwaitLocal(netlink::Socket& socket, const ip::Address& address);
void AwaitLocal(const netns::Netns& netns, const ip::Address& address);

}  // namespace spoke::netagent
