// Pieces of rules that several chains need. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/nft/ruleset.h"
#include "netagent/classes/traffic_class.h"

namespace spoke::netagent::rules {

using Expressions = std::vector<nft::Expression>;

// The bits of enum ip_conntrack_status (linux/netfilter/nf_conntrack_common.h): the connection is
// in the table; its source, its destination is translated.
inline constexpr uint32_t kConfirmed = 8;
inline constexpr uint32_t kSourceNat = 16;
inline constexpr uint32_t kDestinationNat = 32;

// Where one family's packets have what rules compare, and how its sets and chains are named.
struct PacketLayout {
  ip::Family family = ip::Family::kV4;
  const char* suffix = "4";  // The suffix of the names of sets and chains.
  uint8_t source = 12;       // The offsets in the network header are in bytes.
  uint8_t destination = 16;
  uint8_t length = 4;           // The bytes of an address.
  nft::Register registers = 1;  // The registers that it takes.
  nft::Field field = nft::Field::kIpv4;

  std::string Named(const char* name) const { return std::string(name) + suffix; }
};

const PacketLayout& LayoutOf(ip::Family family);

nft::Expression LoadAddress(const PacketLayout& layout, uint8_t offset, nft::Register to);

// Goes on if the address at `offset` is in `block`. Uses registers from `scratch` on, at most four.
// The kernel runs a load of 1, 2 or 4 bytes, a mask of 4, and a comparison of up to 4 for equality
// in line; all else costs a call each.
Expressions MatchBlock(uint8_t offset, const ip::Prefix& block, nft::Register scratch);

// Returns the parts, one after the other.
Expressions All(std::initializer_list<Expressions> parts);

// Return what ends the rule unless it holds. They use register 15, which nothing else may use.
Expressions IsFamily(ip::Family family);
Expressions InterfaceIs(nft::MetaKey key, std::string_view name, bool equal = true);
// Matches the host ends of pod links, whose names begin so.
Expressions IsPodLink(nft::MetaKey key, bool is);
// Match the connection's mark under claims::kFlowMarkMask.
Expressions FlowMarkIs(uint32_t mark);
Expressions FlowMarkIsSet();
Expressions CtStateHas(uint32_t bits);
// Matches the status; `bits` are kConfirmed and so on.
Expressions CtStatusHas(uint32_t bits, bool has = true);
Expressions IsReply(bool is = true);
// Matches a packet that neither connection tracking nor translation knows: its state is invalid, or
// it is not tracked.
Expressions IsUntracked();
// Matches the protocol's number, with that port at the other end; never a later fragment.
Expressions DestinationPortIs(uint8_t protocol, uint16_t port);

// Set the connection's mark, and the packet's, to `mark` under claims::kFlowMarkMask.
Expressions SetFlowMark(uint32_t mark);
Expressions SetPacketMark(uint32_t mark);
// Sets the packet's priority, by way of `scratch`. Forwarding sets that of IPv4 anew.
Expressions SetPriority(uint32_t priority, nft::Register scratch);
Expressions LoadSource(ip::Family family, nft::Register to);
Expressions LoadDestination(ip::Family family, nft::Register to);
Expressions Number(uint32_t value, nft::Register to);

Expressions Accept();
Expressions Drop(const std::string& counter);
Expressions Goto(const std::string& chain);

// Returns "4" or "6".
std::string Suffix(ip::Family family);
nft::Field AddressField(ip::Family family);
// Returns how many registers of 32 bits an address takes.
nft::Register Width(ip::Family family);
nft::Element RangeElement(const ip::Address& first, const ip::Address& last);

}  // namespace spoke::netagent::rules
