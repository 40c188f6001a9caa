// Says where a packet has what the rules compare, and the cheapest way to compare it. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/nft/ruleset.h"

namespace spoke::netagent {

using Expressions = std::vector<nft::Expression>;

// The layout of one family's network header.
struct PacketLayout {
  ip::Family family = ip::Family::kV4;
  const char* suffix = "4";  // The suffix of the names of sets and chains.
  uint8_t source = 12;       // The offsets are in bytes.
  uint8_t destination = 16;
  uint8_t length = 4;     // The bytes of an address.
  uint8_t registers = 1;  // The registers that it takes.
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
Expressions Concat(std::initializer_list<Expressions> parts);

nft::Expression Jump(nft::VerdictKind kind, const std::string& chain);
nft::Expression Accept();
nft::Expression Drop();

}  // namespace spoke::netagent
