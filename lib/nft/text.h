// The steps of a transaction in words, for errors. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "lib/nft/ruleset.h"

namespace spoke::nft {

// Returns what a step does, in short: "add rule inet spoke forward".
std::string TitleOf(const Step& step);
// Returns the same with its number: "step 3 of 17, add rule inet spoke forward".
std::string TitleOf(const Transaction& transaction, size_t index);

}  // namespace spoke::nft
