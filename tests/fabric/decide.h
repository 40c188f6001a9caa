// What the fabric does with one frame, as Azure's virtual network would. Pure.
//
// - Every ARP request is answered with one MAC address, whatever it asks for: hosts of a virtual
//   network never see each other's. IPv6 neighbour solicitations likewise.
// - An IP packet goes to the NIC that holds its destination address, behind a new Ethernet header.
//   The packet is not touched: not its TTL, not its checksums.
// - A NIC may send only from its own MAC and from addresses attached to it.
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
#include "tests/fabric/nic_table.h"

namespace spoke::fabric {

// Where every neighbour seems to be.
inline constexpr ip::MacAddress kFabricMac{{0x12, 0x34, 0x56, 0x78, 0x9A, 0xBC}};

enum class DropReason : uint8_t {
  kMalformed,           // Truncated, or lengths and fields that contradict each other.
  kEthertype,           // Neither ARP nor IPv4 nor IPv6.
  kSourceMac,           // Not the NIC's; ARP sender MAC included.
  kSourceAddress,       // Not attached to the NIC; ARP sender address included.
  kUnknownDestination,  // No NIC holds it.
  kArpReply,            // Nobody asked: the fabric answers all requests itself.
};
inline constexpr std::array kDropReasons{
    DropReason::kMalformed,     DropReason::kEthertype,          DropReason::kSourceMac,
    DropReason::kSourceAddress, DropReason::kUnknownDestination, DropReason::kArpReply};

// "malformed", "source_mac" and so on.
std::string_view NameOf(DropReason reason);

struct Drop {
  DropReason reason = DropReason::kMalformed;

  bool operator==(const Drop&) const = default;
};

// Back to the NIC it came from.
struct Reply {
  std::vector<uint8_t> frame;

  bool operator==(const Reply&) const = default;
};

// To NIC number `nic` of the table; it may be the one the frame came from.
struct Forward {
  size_t nic = 0;
  std::vector<uint8_t> frame;

  bool operator==(const Forward&) const = default;
};

using Decision = std::variant<Drop, Reply, Forward>;

// The fate of `frame`, which came from NIC number `from` of `table`.
Decision Decide(const NicTable& table, size_t from, std::span<const uint8_t> frame);

}  // namespace spoke::fabric
