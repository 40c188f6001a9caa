// Decides what the fabric does with one frame: as Azure's virtual network would, and as strictly as
// a router. Pure.
//
// - Every ARP request is answered with one MAC address, whatever it asks for: hosts of a virtual
//   network never see each other's. IPv6 neighbour solicitations likewise, for gateways as for
//   hosts.
// - An IP packet goes to the NIC that holds its destination address, behind a new Ethernet header,
//   and never back to the NIC it came from. Within a subnet the packet is not touched: not its TTL,
//   not its checksums. From one subnet to another it loses one hop.
// - What a router cannot forward (no NIC holds the destination, no hop is left, the packet is too
//   big) is dropped, and the gateway of the sender's subnet says so by ICMP. Without gateways
//   nobody says anything, as on Azure. Gateways answer nothing themselves: not a ping, as Azure's.
// - A NIC may send only from its own MAC and from addresses attached to it.
// - Frames with VLAN tags are dropped or, if so asked, go to the NIC that holds the address they
// are
//   for, with all their tags: a tag that leaves a host then shows at another one.
// - All else is dropped: broadcast, multicast, other ethertypes. A router solicitation gets no
//   answer, so hosts need their default route configured.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/ip/address.h"
#include "tests/fabric/gateways.h"
#include "tests/fabric/nic_table.h"

namespace spoke::fabric {

// The MAC at which every neighbour seems to be.
inline constexpr ip::MacAddress kFabricMac{{0x12, 0x34, 0x56, 0x78, 0x9A, 0xBC}};

struct Rules {
  Gateways gateways;
  uint16_t mtu = 0;  // The largest IP packet in bytes; 0: any size.
  bool delivers_tags = false;
};

enum class DropReason : uint8_t {
  kMalformed,           // The frame is truncated, or lengths and fields contradict each other.
  kEthertype,           // It is neither ARP nor IPv4 nor IPv6.
  kSourceMac,           // The source is not the NIC's; ARP sender MAC included.
  kSourceAddress,       // The source is not attached to the NIC; ARP sender address included.
  kUnknownDestination,  // No NIC holds it.
  kArpReply,            // Nobody asked: the fabric answers all requests itself.
  kVlanTag,             // It has one, and the fabric is not asked to deliver those.
  kBackToSender,        // The NIC it came from holds the destination.
  kToGateway,           // It is for the router itself.
  kHopLimit,            // Its TTL or hop limit ends here.
  kTooBig,              // It is larger than the fabric's MTU.
};
inline constexpr std::array kDropReasons{DropReason::kMalformed,
                                         DropReason::kEthertype,
                                         DropReason::kSourceMac,
                                         DropReason::kSourceAddress,
                                         DropReason::kUnknownDestination,
                                         DropReason::kArpReply,
                                         DropReason::kVlanTag,
                                         DropReason::kBackToSender,
                                         DropReason::kToGateway,
                                         DropReason::kHopLimit,
                                         DropReason::kTooBig};

// Returns "malformed", "source_mac" and so on.
std::string_view NameOf(DropReason reason);

struct Drop {
  DropReason reason = DropReason::kMalformed;

  bool operator==(const Drop&) const = default;
};

// The frame is dropped; `error`, an ICMP error, goes back to the NIC it came from.
struct Refuse {
  DropReason reason = DropReason::kMalformed;
  std::vector<uint8_t> error;

  bool operator==(const Refuse&) const = default;
};

// The answer to a question about neighbours, to the NIC that asked.
struct Reply {
  std::vector<uint8_t> frame;

  bool operator==(const Reply&) const = default;
};

// The frame goes to NIC number `nic` of the table, which is another one than the frame came from.
struct Forward {
  size_t nic = 0;
  std::vector<uint8_t> frame;
  bool tagged = false;

  bool operator==(const Forward&) const = default;
};

using Decision = std::variant<Drop, Refuse, Reply, Forward>;

// A frame that came from NIC number `nic` of the table.
struct Arrival {
  size_t nic = 0;
  std::span<const uint8_t> frame;
  // The size of the largest IP packet it is cut into on a wire; 0: it is not cut.
  size_t segment_bytes = 0;
};

// Returns the fate of `arrival`.
Decision Decide(const NicTable& table, const Rules& rules, const Arrival& arrival);

}  // namespace spoke::fabric
