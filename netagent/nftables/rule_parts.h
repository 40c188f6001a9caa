// Pieces of rules that several chains need. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ip/address.h"
#include "lib/nft/ruleset.h"
#include "netagent/classes/traffic_class.h"

namespace spoke::netagent::rules {

using Expressions = std::vector<nft::Expression>;

// The bits of enum ip_conntrack_status (linux/netfilter/nf_conntrack_common.h): the connection is
// in the table; its source, its destination is translated.
inline constexpr uint32_t kConfirmed = 8;
inline constexpr uint32_t kSourceNat = 16;
inline constexpr uint32_t kDestinationNat = 32;

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
