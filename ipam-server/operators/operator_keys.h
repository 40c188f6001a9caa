// Under which keys the store has what operators have changed. Pure.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spoke::ipam {

inline constexpr std::string_view kOperatorLogPrefix = "operator-log/";
inline constexpr std::string_view kPolicyHistoryPrefix = "policy-history/";

// The key of a record of the log, sorted by time, then by number.
struct OperatorLogKey {
  int64_t unix_ms = 0;
  uint64_t number = 0;

  auto operator<=>(const OperatorLogKey&) const = default;
};

// Returns "operator-log/<unix ms, 20 digits>-<number, 10 digits>".
std::string StoreKeyOf(const OperatorLogKey& key);

// Returns the parts; nullopt when `key` is none of ours.
std::optional<OperatorLogKey> ParseOperatorLogKey(std::string_view key);

// Returns the prefix of the pieces of one version: "policy-history/<version, 20 digits>/".
std::string PolicyHistoryPrefix(uint64_t version);

// Returns the version in a key of a piece; nullopt when `key` is none of ours.
std::optional<uint64_t> ParsePolicyHistoryKey(std::string_view key);

}  // namespace spoke::ipam
