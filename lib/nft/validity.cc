#include "lib/nft/validity.h"

#include <variant>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::nft {
namespace {

constexpr size_t kRegisterBytes = 4;

// Intervals are compared byte by byte, so numbers in the machine's order have none.
bool HasOrder(Field field) {
  return field != Field::kMark && field != Field::kInterfaceIndex && field != Field::kInterfaceName;
}

// Refuses what libnftnl would cut short in silence.
absl::Status CheckExpression(const Expression& expression) {
  if (const auto* compare = std::get_if<Compare>(&expression)) {
    if (compare->value.empty() || compare->value.size() > kMaxKeyBytes) {
      return absl::InvalidArgumentError("a comparison with nothing, or with too much");
    }
  }
  if (const auto* load = std::get_if<LoadImmediate>(&expression)) {
    if (load->value.empty() || load->value.size() > kMaxKeyBytes) {
      return absl::InvalidArgumentError("an immediate value of no bytes, or of too many");
    }
  }
  if (const auto* mask = std::get_if<MaskBits>(&expression)) {
    if (mask->mask.empty() || mask->mask.size() > kMaxKeyBytes ||
        mask->mask.size() != mask->toggle.size()) {
      return absl::InvalidArgumentError("a mask and what it toggles are not of one length");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckName(const std::string& name) {
  if (name.empty() || name.size() > kMaxNameBytes || name.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" cannot be a name", name));
  }
  return absl::OkStatus();
}

absl::Status CheckRule(const Rule& rule) {
  RETURN_IF_ERROR(CheckName(rule.chain));
  if (rule.expressions.size() > kMaxExpressionsPerRule) {
    return absl::InvalidArgumentError("too many expressions in a rule");
  }
  if (rule.comment.size() > kMaxCommentBytes) {
    return absl::InvalidArgumentError("the comment is too long");
  }
  for (const Expression& expression : rule.expressions) {
    RETURN_IF_ERROR(CheckExpression(expression));
  }
  return absl::OkStatus();
}

size_t BytesOf(Field field) {
  switch (field) {
    case Field::kIpv4:
    case Field::kMark:
    case Field::kInterfaceIndex:
      return 4;
    case Field::kIpv6:
    case Field::kInterfaceName:
      return 16;
    case Field::kPort:
      return 2;
    case Field::kProtocol:
      return 1;
  }
  return 4;
}

size_t BytesOf(const std::vector<Field>& key) {
  if (key.size() == 1) return BytesOf(key.front());
  size_t bytes = 0;
  for (const Field field : key) {
    bytes += (BytesOf(field) + kRegisterBytes - 1) / kRegisterBytes * kRegisterBytes;
  }
  return bytes;
}

absl::Status CheckSet(const Set& set) {
  if (set.key.empty() || BytesOf(set.key) > kMaxKeyBytes) {
    return absl::InvalidArgumentError("a key of nothing, or of too much");
  }
  if (set.value && set.verdicts) {
    return absl::InvalidArgumentError("a map has values or verdicts, not both");
  }
  if (set.intervals && (set.key.size() != 1 || !HasOrder(set.key.front()))) {
    return absl::InvalidArgumentError("intervals need one key part, in network order");
  }
  // The kernel counts both ends of an interval, or does not, depending on its version.
  if (set.intervals && (set.dynamic || set.size != 0)) {
    return absl::InvalidArgumentError("a set with intervals has no size and is not dynamic");
  }
  if (set.dynamic && set.size == 0) {
    return absl::InvalidArgumentError("a set that packets fill needs a size");
  }
  return absl::OkStatus();
}

absl::Status CheckElement(const Element& element) {
  if (element.key.empty() || element.key.size() > kMaxKeyBytes ||
      element.value.size() > kMaxKeyBytes) {
    return absl::InvalidArgumentError("an element's key or value cannot be so long");
  }
  if (!element.last.empty() &&
      (element.last.size() != element.key.size() || element.last < element.key)) {
    return absl::InvalidArgumentError("an interval ends before it begins");
  }
  if (element.verdict && element.verdict->chain.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError("the name of a verdict's chain is too long");
  }
  return absl::OkStatus();
}

absl::Status CheckFits(const Element& element, const Set& set) {
  if (element.key.size() != BytesOf(set.key)) {
    return absl::InvalidArgumentError(fmt::format("a key of {} bytes in a set with keys of {}",
                                                  element.key.size(), BytesOf(set.key)));
  }
  if (set.intervals == element.last.empty()) {
    return absl::InvalidArgumentError(set.intervals ? "an interval without its last key"
                                                    : "an interval in a set without");
  }
  if (!element.value.empty() && (!set.value || element.value.size() != BytesOf(*set.value))) {
    return absl::InvalidArgumentError("a value that the map does not hold");
  }
  if (element.verdict && !set.verdicts) {
    return absl::InvalidArgumentError("a verdict in a map without");
  }
  return absl::OkStatus();
}

}  // namespace spoke::nft
