// Checks for what the kernel would refuse, or misunderstand, whatever its tables hold. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/nft/ruleset.h"

namespace spoke::nft {

// The most that the kernel takes (NFT_RULE_MAXEXPRS, a set's key; NFT_NAME_MAXLEN counts the NUL).
inline constexpr size_t kMaxExpressionsPerRule = 128;
inline constexpr size_t kMaxKeyBytes = 64;
inline constexpr size_t kMaxNameBytes = 255;
// The longest comment of a rule, without the NUL.
inline constexpr size_t kMaxCommentBytes = 127;

// Returns the bytes of a field as a packet or the kernel has it, and of a key, each of whose parts
// begins a register.
size_t BytesOf(Field field);
size_t BytesOf(const std::vector<Field>& key);

// All of these return kInvalidArgument, with the reason.

// Checks the name of a table, chain, set, counter or device.
absl::Status CheckName(const std::string& name);
absl::Status CheckRule(const Rule& rule);
// Refuses a description that contradicts itself.
absl::Status CheckSet(const Set& set);
// Checks an element as far as can be told without the set.
absl::Status CheckElement(const Element& element);
// Checks lengths, and that an interval is in a set with intervals, and no other element is.
absl::Status CheckFits(const Element& element, const Set& set);

}  // namespace spoke::nft
