// Builds and reads what machines of one network say and ask of who has an address: ARP (RFC 826,
// RFC 5227) and Neighbour Discovery (RFC 4861, RFC 4862). Pure. Whole Ethernet frames without a
// tag.
//
// The frames are ours to build and to read, since a pod's address is on no device of the node: the
// kernel would neither ask about it nor notice that another machine has it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/ip/address.h"

namespace spoke::netagent {

struct NeighbourClaim {
  enum class Kind {
    kHas,   // The machine says that it has the address.
    kAsks,  // It is about to take it, and asks whether somebody has it.
  };
  Kind kind = Kind::kHas;
  ip::Address address;
  ip::MacAddress mac;     // The MAC of the machine that the frame speaks of.
  ip::MacAddress source;  // The MAC of the machine that sent the frame.

  bool operator==(const NeighbourClaim&) const = default;
};

// Returns what a frame claims: an ARP message whose sender has an address, an ARP probe (RFC 5227
// section 1.1), a neighbour advertisement (RFC 4861 section 4.4), or a neighbour solicitation for
// duplicate address detection (RFC 4862 section 5.4.2). nullopt: anything else, what is cut short,
// damaged, or for an address that no single machine has, and a MAC of none or of a group.
std::optional<NeighbourClaim> ParseNeighbourClaim(std::span<const uint8_t> frame);

// Returns the frame "Who has `address`?", from a machine that does not have it (yet) and changes
// nobody's tables: an ARP probe (RFC 5227 section 2.1.1), or a solicitation as above. The NIC is at
// `nic_mac`.
std::vector<uint8_t> BuildNeighbourQuestion(const ip::MacAddress& nic_mac,
                                            const ip::Address& address);

// Returns the frame "`address`, an IPv4 address, is at `nic_mac`", to the machine at `asker` alone,
// so that nobody else's table changes: the answer to an ARP probe.
std::vector<uint8_t> BuildArpAnswer(const ip::MacAddress& nic_mac, const ip::Address& address,
                                    const ip::MacAddress& asker);

}  // namespace spoke::netagent
