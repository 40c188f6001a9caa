#include "admin-cli/pool/rank_order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace spoke::ctl {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The parts of a name as "node-9" and "node-10" are to be compared: text, or a number by its length
// and its digits.
using NameKey = std::vector<std::tuple<std::string, size_t, std::string>>;

NameKey KeyOf(std::string_view name) {
  NameKey key;
  size_t at = 0;
  while (at < name.size()) {
    const size_t begin = at;
    while (at < name.size() && !IsDigit(name[at])) ++at;
    const size_t number = at;
    while (at < name.size() && IsDigit(name[at])) ++at;
    std::string_view digits = name.substr(number, at - number);
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    key.emplace_back(name.substr(begin, number - begin), digits.size(), digits);
  }
  return key;
}

// Returns the number that is the part with that number from the end; nullopt: it is none.
std::optional<uint32_t> IndexOf(const std::string& pod, size_t from_end) {
  const std::vector<std::string> parts = absl::StrSplit(pod, '-');
  if (parts.size() <= from_end + 1) return std::nullopt;
  const std::string& part = parts[parts.size() - 1 - from_end];
  uint32_t index = 0;
  if (part.empty() || !std::all_of(part.begin(), part.end(), IsDigit) ||
      !absl::SimpleAtoi(part, &index)) {
    return std::nullopt;
  }
  return index;
}

// Returns the pods by the index that each has at that place; empty: one has none of its own.
std::map<uint32_t, const RankedPod*> ByIndex(const std::vector<RankedPod>& pods, size_t from_end) {
  std::map<uint32_t, const RankedPod*> by_index;
  for (const RankedPod& pod : pods) {
    const std::optional<uint32_t> index = IndexOf(pod.pod_name, from_end);
    if (!index || !by_index.emplace(*index, &pod).second) return {};
  }
  return by_index;
}

}  // namespace

void SortByRank(std::vector<RankedPod>& pods) {
  for (const size_t from_end : {size_t{0}, size_t{1}}) {
    const auto by_index = ByIndex(pods, from_end);
    if (by_index.empty()) continue;
    std::vector<RankedPod> sorted;
    for (const auto& [index, pod] : by_index) sorted.push_back(*pod);
    pods = std::move(sorted);
    return;
  }
  std::sort(pods.begin(), pods.end(), [](const RankedPod& a, const RankedPod& b) {
    return std::tuple(KeyOf(a.node), a.node, a.address) <
           std::tuple(KeyOf(b.node), b.node, b.address);
  });
}

}  // namespace spoke::ctl
