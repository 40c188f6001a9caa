// More of what the kernel says about a device than link.h has, for those who look whether one is
// still as it was made; and requests that put single properties right. The request functions and
// ParseLinkState() are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/netlink/link.h"
#include "lib/netlink/request.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {

struct LinkState {
  Link link;
  uint32_t group = 0;  // The group; 0: in none but the default one.
  std::string qdisc;   // The kind of queue at its root: "noqueue", "tbf".
  // The number that the socket's namespace has for the one the peer is in; nullopt: the same.
  std::optional<int32_t> peer_netns;
  // The settings by IPV4_DEVCONF_* number of linux/ip.h; nothing at 0. Empty: the device has no
  // IPv4.
  std::vector<uint32_t> ipv4;
  std::optional<uint8_t> address_generation;  // The mode, IN6_ADDR_GEN_MODE_*; nullopt: no IPv6.

  bool operator==(const LinkState&) const = default;
};

// Reads the payload of an RTM_NEWLINK message. Errors: kDataLoss (cut short, or a length that
// cannot be).
absl::StatusOr<LinkState> ParseLinkState(std::span<const uint8_t> payload);

// Errors: kNotFound; as GetOne().
absl::StatusOr<LinkState> GetLinkState(Socket& socket, const std::string& name);
absl::StatusOr<LinkState> GetLinkState(Socket& socket, int32_t index);

// Returns every device of the socket's namespace whose name begins with `prefix`. Errors: as
// Dump().
absl::StatusOr<std::vector<LinkState>> DumpLinkStates(Socket& socket, std::string_view prefix);

// Returns the number that the socket's namespace has for the one that the descriptor `netns` stands
// for, as LinkState::peer_netns; nullopt: it has none, so no device here has its peer there.
// Errors: as GetOne().
absl::StatusOr<std::optional<int32_t>> NetnsNumber(Socket& socket, int netns);

Request SetLinkMac(int32_t index, const ip::MacAddress& mac);
Request SetLinkMtu(int32_t index, uint32_t mtu);

}  // namespace spoke::netlink
