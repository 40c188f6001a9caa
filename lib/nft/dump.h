// What the kernel answers about nf_tables, read. Pure functions of a message's payload (nfgenmsg
// and attributes, linux/netfilter/nf_tables.h), safe on any input.
//
// Errors of all of them: kDataLoss (a length or a number is not as it must be).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/nft/ruleset.h"

namespace spoke::nft {

// Appends the elements of one NEWSETELEM message to `elements`, without the last keys of intervals,
// and to `ends` the first key behind each interval.
absl::Status AppendElements(std::span<const uint8_t> payload, std::vector<ElementReading>& elements,
                            std::vector<Bytes>& ends);

// Sorts the elements of a set with intervals, and gives each its last key: what is before the next
// end or the next beginning, or the last key there is.
void CloseIntervals(std::vector<ElementReading>& elements, std::vector<Bytes> ends);

// Removes the second one of what comes twice in sets that packets fill: the kernel's walk through a
// hash table that grows meanwhile may show an element twice.
void DropRepeated(std::vector<ElementReading>& elements);

// Returns a counter, or nullopt when the object is none or belongs to another table.
absl::StatusOr<std::optional<CounterReading>> ParseCounter(std::span<const uint8_t> payload,
                                                           const std::string& table);

// Returns a rule, or nullopt when it belongs to another table.
absl::StatusOr<std::optional<RuleReading>> ParseRule(std::span<const uint8_t> payload,
                                                     const std::string& table);

// Returns the NFTA_SET_FLAGS of a NEWSET message.
absl::StatusOr<uint32_t> ParseSetFlags(std::span<const uint8_t> payload);

// Returns the NFTA_GEN_ID of a NEWGEN message.
absl::StatusOr<uint32_t> ParseGeneration(std::span<const uint8_t> payload);

}  // namespace spoke::nft
