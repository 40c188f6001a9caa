// The rules of iptables as values, whichever back end holds them, and the text that
// `iptables-save -c` prints of them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace spoke::netagent {

enum class IptablesBackend : uint8_t { kNft, kLegacy };
// Returns "nft" or "legacy".
std::string_view NameOf(IptablesBackend backend);

// Every table that iptables has.
inline const std::vector<std::string> kIptablesTables = {"filter", "nat", "mangle", "raw",
                                                         "security"};

struct IptablesRule {
  std::string chain;
  // The text behind "-A CHAIN " in the output of iptables-save.
  std::string text;
  // Whether `text` leaves out what the reader has no words for: the rule is another than it says.
  bool abridged = false;
  std::string comment;  // The first comment, without quotes.
  uint64_t packets = 0;
  uint64_t bytes = 0;

  bool operator==(const IptablesRule&) const = default;
};

struct IptablesChain {
  std::string name;
  std::string policy = "-";  // The policy, "ACCEPT" or "DROP", of a chain at a hook.
  uint64_t packets = 0;      // The packets that the policy decided about.
  uint64_t bytes = 0;

  bool operator==(const IptablesChain&) const = default;
};

struct IptablesTable {
  std::string name;  // The name, such as "mangle".
  std::vector<IptablesChain> chains;
  // The rules, in the order in which packets meet those of one chain.
  std::vector<IptablesRule> rules;

  bool operator==(const IptablesTable&) const = default;
};

// Returns the table of that name, or nullptr.
const IptablesTable* FindTable(const std::vector<IptablesTable>& tables, std::string_view name);

// The most text that is read, so that a host's rules cannot use up the agent's memory.
inline constexpr size_t kMaxIptablesText = size_t{64} << 20U;  // In bytes.

// Reads what iptables-save prints, with -c or without. A comment may have any byte in it.
// Errors: kInvalidArgument (not such a text; the message names the line); kResourceExhausted (too
// long).
absl::StatusOr<std::vector<IptablesTable>> ParseIptablesSave(std::string_view text);

// Returns `text` as iptables-save prints an argument: in quotes, with backslashes, where it has to
// be.
std::string QuoteForIptables(std::string_view text);

// Merges the tables of both back ends as one host's. A rule that stands in both has seen the same
// packets twice: it is in the result once, with the greater counters.
std::vector<IptablesTable> MergeBackends(std::vector<IptablesTable> nft,
                                         const std::vector<IptablesTable>& legacy);

}  // namespace spoke::netagent
