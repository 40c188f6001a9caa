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

// Bits of enum ip_conntrack_status (linux/netfilter/nf_conntrack_common.h): the connection is in
// the table; its source, its destination is translated.
inline constexpr uint32_t kConfirmed = 8;
inline constexpr uint32_t kSourceNat = 16;
inline constexpr uint32_t kDestinationNat = 32;

// One after the other.
Expressions All(std::initializer_list<Expressions> parts);

// What ends the rule unless it holds. They use register 15, which nothing else may.
Expressions IsFamily(ip::Family family);
Expressions InterfaceIs(nft::MetaKey key, std::string_view name, bool equal = true);
// Of the host ends of pod links: the name begins so.
Expressions IsPodLink(nft::MetaKey key, bool is);
// The connection's mark under claims::kFlowMarkMask.
Expressions FlowMarkIs(uint32_t mark);
Expressions FlowMarkIsSet();
Expressions CtStateHas(uint32_t bits);
// `bits`: kConfirmed and so on.
Expressions CtStatusHas(uint32_t bits, bool has = true);
Expressions IsReply(bool is = true);
// Neither the connection tracking knows it, nor will a translation: its state is invalid, or it is
// not tracked.
Expressions IsUntracked();
// Of the protocol's number, with that port at the other end; never a later fragment.
Expressions DestinationPortIs(uint8_t protocol, uint16_t port);

// The connection's mark becomes `mark` under claims::kFlowMarkMask; and the packet's.
Expressions SetFlowMark(uint32_t mark);
Expressions SetPacketMark(uint32_t mark);
// The packet's priority, by way of `scratch`. Forwarding sets that of IPv4 anew.
Expressions SetPriority(uint32_t priority, nft::Register scratch);
Expressions LoadSource(ip::Family family, nft::Register to);
Expressions LoadDestination(ip::Family family, nft::Register to);
Expressions Number(uint32_t value, nft::Register to);

Expressions Accept();
Expressions Drop(const std::string& counter);
Expressions Goto(const std::string& chain);

// "4" or "6".
std::string Suffix(ip::Family family);
nft::Field AddressField(ip::Family family);
// Registers of 32 bits that an address takes.
nft::Register Width(ip::Family family);
nft::Element RangeElement(const ip::Address& first, const ip::Address& last);

}  // namespace spoke::netagent::rules
