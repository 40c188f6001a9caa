// What the kernel and nft(8) are told about a set, for encode.cc and connection.cc. Pure.
#pragma once

#include <libnftnl/set.h>

#include <cstdint>

#include "lib/nft/ruleset.h"

namespace spoke::nft {

// Returns the kernel's number (NFPROTO_INET).
uint8_t FamilyNumber(Family family);

// Fills in everything except names.
void Describe(const Set& set, nftnl_set& out);

}  // namespace spoke::nft
