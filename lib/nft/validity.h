// What the kernel would refuse, or misunderstand, whatever its tables hold. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/nft/ruleset.h"

namespace spoke::nft {

// What the kernel takes (NFT_RULE_MAXEXPRS, a set's key; NFT_NAME_MAXLEN counts the NUL).
inline constexpr size_t kMaxExpressionsPerRule = 128;
inline constexpr size_t kMaxKeyBytes = 64;
inline constexpr size_t kMaxNameBytes = 255;
// Of a rule's comment, without the NUL.
inline constexpr size_t kMaxCommentBytes = 127;

// Bytes of a field as a packet or the kernel has it, and of a key, each of whose parts begins a
// register.
size_t BytesOf(Field field);
size_t BytesOf(const std::vector<Field>& key);

// All of them: kInvalidArgument, with the reason.

// Of a table, chain, set, counter or device.
absl::Status CheckName(const std::string& name);
absl::Status CheckRule(const Rule& rule);
// A description that contradicts itself.
absl::Status CheckSet(const Set& set);
// As far as can be told without the set.
absl::Status CheckElement(const Element& element);
// Lengths; an interval in a set without, or none in a set with.
absl::Status CheckFits(const Element& element, const Set& set);

}  // namespace spoke::nft
