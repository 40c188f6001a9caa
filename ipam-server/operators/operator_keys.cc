#include "ipam-server/operators/operator_keys.h"

#include <charconv>

#include "fmt/core.h"

namespace spoke::ipam {
namespace {

constexpr size_t kTimeDigits = 20;
constexpr size_t kNumberDigits = 10;

template <typename Number>
bool ParseNumber(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string StoreKeyOf(const OperatorLogKey& key) {
  return fmt::format("{}{:020}-{:010}", kOperatorLogPrefix, key.unix_ms, key.number);
}

std::optional<OperatorLogKey> ParseOperatorLogKey(std::string_view key) {
  if (!key.starts_with(kOperatorLogPrefix)) return std::nullopt;
  key.remove_prefix(kOperatorLogPrefix.size());
  OperatorLogKey out;
  if (key.size() != kTimeDigits + 1 + kNumberDigits || key[kTimeDigits] != '-' ||
      !ParseNumber(key.substr(0, kTimeDigits), out.unix_ms) ||
      !ParseNumber(key.substr(kTimeDigits + 1), out.number)) {
    return std::nullopt;
  }
  return out;
}

std::string PolicyHistoryPrefix(uint64_t version) {
  return fmt::format("{}{:020}/", kPolicyHistoryPrefix, version);
}

std::optional<uint64_t> ParsePolicyHistoryKey(std::string_view key) {
  if (!key.starts_with(kPolicyHistoryPrefix)) return std::nullopt;
  key.remove_prefix(kPolicyHistoryPrefix.size());
  uint64_t version = 0;
  if (key.size() <= kTimeDigits || key[kTimeDigits] != '/' ||
      !ParseNumber(key.substr(0, kTimeDigits), version)) {
    return std::nullopt;
  }
  return version;
}

}  // namespace spoke::ipam
