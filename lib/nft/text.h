// Rules and transactions as text: for tests that compare, and for people. Pure.
//
// Near to what nft(8) writes, but with the registers, so that it says everything and is the same
// for the same rules. It is not parsed by anything.
#pragma once

#include <cstddef>
#include <string>

#include "lib/nft/ruleset.h"

namespace spoke::nft {

// "r0 = ip saddr; r0 in @pods4; accept". Values are written as what was loaded into the register
// they are compared with; where that is not known, as 0x and hex.
std::string TextOf(const Rule& rule);

// A line for each step, and for each element. Elements are written as what the set's description
// says, if that is in the same transaction, else in hex.
std::string TextOf(const Transaction& transaction);

// What a step does, in short, for errors: "add rule to inet spoke forward".
std::string TitleOf(const Step& step);
// The same with its number: "step 3 of 17, add rule to inet spoke forward".
std::string TitleOf(const Transaction& transaction, size_t index);

}  // namespace spoke::nft
