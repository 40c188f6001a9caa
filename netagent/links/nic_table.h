// A way out of its own for each NIC beside the node's first.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/netlink/socket.h"

namespace spoke::netagent {

// Router::SetNicTable() on the socket's namespace. `has_ipv6`: the kernel speaks it at all.
absl::StatusOr<uint32_t> FillNicTable(netlink::Socket& socket, const ip::MacAddress& nic,
                                      bool has_ipv6);

}  // namespace spoke::netagent
