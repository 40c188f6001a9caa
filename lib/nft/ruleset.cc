#include "lib/nft/ruleset.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::nft {
namespace {

constexpr size_t kNameBytes = 16;
constexpr size_t kRegisterBytes = 4;

std::string NameOf(const TableKey& table) {
  constexpr std::array<std::string_view, 4> kFamilies = {"inet", "netdev", "ip", "ip6"};
  return fmt::format("{} {}", kFamilies[static_cast<size_t>(table.family)], table.name);
}

// The words for what a step does, and to what: "add rule" and "forward".
struct StepTitle {
  std::string_view verb;
  std::string_view object;
};

StepTitle TitleParts(const Change& change) {
  struct Namer {
    StepTitle operator()(const AddTable& /*none*/) { return {"add table", {}}; }
    StepTitle operator()(const DeleteTable& /*none*/) { return {"delete table", {}}; }
    StepTitle operator()(const AddChain& c) { return {"add chain", c.chain.name}; }
    StepTitle operator()(const FlushChain& c) { return {"flush chain", c.chain}; }
    StepTitle operator()(const DeleteChain& c) { return {"delete chain", c.chain}; }
    StepTitle operator()(const AddRule& c) { return {"add rule", c.rule.chain}; }
    StepTitle operator()(const DeleteRule& c) { return {"delete rule of", c.chain}; }
    StepTitle operator()(const AddSet& c) { return {"add set", c.set.name}; }
    StepTitle operator()(const DeleteSet& c) { return {"delete set", c.set}; }
    StepTitle operator()(const AddElements& c) { return {"add element", c.set}; }
    StepTitle operator()(const DeleteElements& c) { return {"delete element", c.set}; }
    StepTitle operator()(const FlushSet& c) { return {"flush set", c.set}; }
    StepTitle operator()(const AddCounter& c) { return {"add counter", c.name}; }
    StepTitle operator()(const DeleteCounter& c) { return {"delete counter", c.name}; }
  };
  return std::visit(Namer{}, change);
}

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

Bytes HostOrder(uint32_t value) {
  Bytes bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

Bytes NetworkOrder(uint16_t value) {
  return {static_cast<uint8_t>(value >> 8U), static_cast<uint8_t>(value & 0xFFU)};
}

Bytes NetworkOrder(const ip::Address& address) {
  const std::string bytes = address.ToBytes();
  return {bytes.begin(), bytes.end()};
}

Bytes DeviceName(std::string_view name) {
  Bytes bytes(kNameBytes, 0);
  std::copy_n(name.begin(), std::min(name.size(), kNameBytes - 1), bytes.begin());
  return bytes;
}

Bytes Join(std::initializer_list<Bytes> parts) {
  Bytes joined;
  for (const Bytes& part : parts) {
    joined.insert(joined.end(), part.begin(), part.end());
    joined.resize((joined.size() + kRegisterBytes - 1) / kRegisterBytes * kRegisterBytes, 0);
  }
  return joined;
}

std::string TitleOf(const Step& step) {
  const StepTitle title = TitleParts(step.change);
  std::string text = fmt::format("{} {}", title.verb, NameOf(step.table));
  if (!title.object.empty()) text += fmt::format(" {}", title.object);
  return text;
}

std::string TitleOf(const Transaction& transaction, size_t index) {
  return fmt::format("step {} of {}, {}", index + 1, transaction.steps.size(),
                     TitleOf(transaction.steps[index]));
}

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
