// Network devices: requests to make, configure, find and remove them, and what the kernel says
// about one. The request functions and ParseLink() are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {

// The longest name a device can have (IFNAMSIZ without its NUL).
inline constexpr size_t kMaxLinkName = 15;

struct Link {
  int32_t index = 0;
  std::string name;
  std::string kind;  // The kind, such as "veth" or "bridge"; empty for hardware and lo.
  ip::MacAddress mac;
  uint32_t mtu = 0;  // The MTU in bytes.
  bool up = false;   // Whether an administrator set it up, with or without a carrier.
  uint32_t tx_queues = 0;
  uint32_t rx_queues = 0;
  int32_t peer_index = 0;  // A veth's peer's index, in the peer's namespace. 0: none.
  int32_t master = 0;      // The index of the device that this one is a part of (bond, netvsc).
  uint32_t group = 0;      // The IFLA_GROUP that DeleteLinkGroup() goes by.
  uint16_t udp_port = 0;   // The port at which a vxlan listens.

  bool operator==(const Link&) const = default;
};

// Reads the payload of an RTM_NEWLINK message. Unknown attributes are passed over. Errors:
// kDataLoss (cut short, or a length that cannot be).
absl::StatusOr<Link> ParseLink(std::span<const uint8_t> payload);

struct VethEnd {
  std::string name;
  // The index is chosen by the caller, so that requests behind this one in a batch can name the
  // device before the kernel has made it. Positive, and unused in the end's namespace.
  int32_t index = 0;
  ip::MacAddress mac;
};

// Makes a veth pair in place: `outer` in the socket's namespace, up unless `outer_up` is false, and
// `peer` in the one that the descriptor `peer_netns` stands for, and down. Both have `mtu` and one
// queue each way: more would cost a grace period of the kernel's and carry nothing, since a veth
// has no hardware.
//
// Never made in one namespace and moved: the move waits some 20 ms under the kernel's network lock.
// The peer cannot be born up: the kernel opens it before it has its partner, and fails.
//
// Refused with kAlreadyExists when either name or index is taken.
Request CreateVeth(const VethEnd& outer, const VethEnd& peer, int peer_netns, uint32_t mtu,
                   bool outer_up = true);

// Makes a device of kind ifb, down: what is redirected to it waits in its queues and then goes on
// where it came from. `queue_length`: packets that a queue of it holds which has no limit of its
// own. Refused with kAlreadyExists when the name is taken, with kUnimplemented by a kernel that
// does not know the kind.
Request CreateIfb(const std::string& name, uint32_t queue_length);

struct Vxlan {
  std::string name;
  uint16_t port = 0;  // The UDP port of packets that are sent, and at which the device listens.
  uint32_t mtu = 0;   // The MTU of the packets inside, in bytes.
  // The first source port of the packets outside; there is one for each flow inside.
  uint16_t first_source_port = 32'768;
  uint16_t last_source_port = 60'999;
};

// Makes a device of kind vxlan, down, whose packets' far ends routes name (Route::encapsulation),
// and by which packets come in from whoever sends them to the port. What it carries is IP without
// Ethernet (VXLAN-GPE, draft-ietf-nvo3-vxlan-gpe), so that there are neither MACs nor neighbours.
// Refused with kAlreadyExists when the name is taken, or another device of the kind has the port.
// Refused with kUnimplemented by a kernel that does not know the kind.
Request CreateVxlan(const Vxlan& vxlan);

// Per-device settings, by their number in the kernel's headers.
struct LinkSettings {
  struct Value {
    uint16_t setting = 0;  // The number, IPV4_DEVCONF_* of linux/ip.h.
    uint32_t value = 0;
  };
  std::vector<Value> ipv4;
  // Sets the mode, IN6_ADDR_GEN_MODE_* of linux/if_link.h. Refused with kUnimplemented on a device
  // without IPv6: where the kernel has none, or the MTU is below 1280.
  std::optional<uint8_t> address_generation;
};

// Configures the link. This cannot go into the creation itself (the device has no IPv4 part
// yet), nor into one request with the settings (the change to up would come first).
Request ConfigureLink(int32_t index, const LinkSettings& settings);

Request SetLinkUp(int32_t index, bool up);

// Takes the link down and then puts it into `group`. With the link go its routes and neighbours,
// permanent ones included: the kernel keeps none on a device that is down. Refused with kNotFound
// when it is not there.
Request RetireLink(const std::string& name, uint32_t group);

// Removes every link of the group, whoever put it there: look first (Link.group). It takes one wait
// of the kernel's, where as many DeleteLink() take a wait each. Refused with kNotFound when there
// is none; `group` must not be 0, which is where links are born.
Request DeleteLinkGroup(uint32_t group);

// Removing one end of a veth removes both. A device that is not there is no error.
Request DeleteLink(int32_t index);
Request DeleteLink(const std::string& name);

// Errors: kNotFound; as GetOne().
absl::StatusOr<Link> GetLink(Socket& socket, const std::string& name);

// Returns every device of the socket's namespace whose name begins with `prefix`; empty means all.
// Errors: as Dump().
absl::StatusOr<std::vector<Link>> DumpLinks(Socket& socket, std::string_view prefix);

// More of what the kernel says about a device than link.h has, for those who look whether one is
// still as it was made; and requests that put single properties right. The request functions and
// ParseLinkState() are pure.

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
  // The settings accept_ra, of router advertisements, and disable_ipv6 (ip-sysctl.rst); nullopt: no
  // IPv6.
  std::optional<uint32_t> accept_ra;
  std::optional<uint32_t> disable_ipv6;

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

// Gives the namespace that the descriptor `netns` stands for a number in the socket's, which it
// keeps: the one asked for, or any. Refused with kAlreadyExists when it has one, or another
// namespace has that number.
Request NumberNetns(int netns, std::optional<int32_t> number = std::nullopt);

Request SetLinkMac(int32_t index, const ip::MacAddress& mac);
Request SetLinkMtu(int32_t index, uint32_t mtu);

}  // namespace spoke::netlink
