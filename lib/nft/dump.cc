#include "lib/nft/dump.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "lib/base/status.h"
#include "lib/netlink/message.h"

namespace spoke::nft {
namespace {

using netlink::Attribute;
using netlink::AttributeReader;

constexpr size_t kMostBytesOfData = 64;  // The number NFT_DATA_VALUE_MAXLEN.
// The number NFTNL_UDATA_RULE_COMMENT of libnftnl, which nft and iptables-nft write and show.
constexpr uint8_t kCommentType = 0;

absl::Status Malformed() { return absl::DataLossError("malformed nf_tables message"); }

// Reads a number in network order, of exactly sizeof(T) bytes.
template <typename T>
std::optional<T> BigEndian(const Attribute& attribute) {
  if (attribute.payload.size() != sizeof(T)) return std::nullopt;
  T number = 0;
  for (const uint8_t byte : attribute.payload) number = static_cast<T>(number << 8U | byte);
  return number;
}

struct Counts {
  uint64_t packets = 0;
  uint64_t bytes = 0;
};

// The two numbers have the same types in an expression and in a named counter.
static_assert(static_cast<int>(NFTA_COUNTER_BYTES) == 1 &&
              static_cast<int>(NFTA_COUNTER_PACKETS) == 2);

std::optional<Counts> ReadCounts(std::span<const uint8_t> data) {
  Counts counts;
  AttributeReader reader(data);
  while (const auto attribute = reader.Next()) {
    uint64_t* const number = attribute->type == NFTA_COUNTER_PACKETS ? &counts.packets
                             : attribute->type == NFTA_COUNTER_BYTES ? &counts.bytes
                                                                     : nullptr;
    if (number == nullptr) continue;
    const auto value = BigEndian<uint64_t>(*attribute);
    if (!value) return std::nullopt;
    *number = *value;
  }
  if (reader.malformed()) return std::nullopt;
  return counts;
}

// Reads one expression. Returns false for a malformed one. `counts` stays as it is when the
// expression is no counter.
bool ReadExpression(std::span<const uint8_t> expression, std::optional<Counts>& counts) {
  std::string_view name;
  std::span<const uint8_t> data;
  AttributeReader reader(expression);
  while (const auto attribute = reader.Next()) {
    if (attribute->type == NFTA_EXPR_NAME) name = attribute->Text();
    if (attribute->type == NFTA_EXPR_DATA) data = attribute->payload;
  }
  if (reader.malformed()) return false;
  if (name != "counter" || counts) return true;
  counts = ReadCounts(data);
  return counts.has_value();
}

bool ReadExpressions(std::span<const uint8_t> list, std::optional<Counts>& counts) {
  AttributeReader reader(list);
  while (const auto attribute = reader.Next()) {
    if (attribute->type == NFTA_LIST_ELEM && !ReadExpression(attribute->payload, counts)) {
      return false;
    }
  }
  return !reader.malformed();
}

std::optional<Verdict> ReadVerdict(std::span<const uint8_t> nest) {
  std::optional<VerdictKind> kind;
  std::string chain;
  AttributeReader reader(nest);
  while (const auto attribute = reader.Next()) {
    if (attribute->type == NFTA_VERDICT_CHAIN) chain = attribute->Text();
    if (attribute->type != NFTA_VERDICT_CODE) continue;
    const auto code = BigEndian<uint32_t>(*attribute);
    if (!code) return std::nullopt;
    switch (static_cast<int32_t>(*code)) {
      case NF_ACCEPT:
        kind = VerdictKind::kAccept;
        break;
      case NF_DROP:
        kind = VerdictKind::kDrop;
        break;
      case NFT_RETURN:
        kind = VerdictKind::kReturn;
        break;
      case NFT_JUMP:
        kind = VerdictKind::kJump;
        break;
      case NFT_GOTO:
        kind = VerdictKind::kGoto;
        break;
      default:
        return std::nullopt;
    }
  }
  if (reader.malformed() || !kind) return std::nullopt;
  return Verdict{*kind, std::move(chain)};
}

// Reads a key, a value or a verdict. Returns false for a malformed one.
bool ReadData(std::span<const uint8_t> nest, Bytes& bytes, std::optional<Verdict>* verdict) {
  AttributeReader reader(nest);
  while (const auto attribute = reader.Next()) {
    if (attribute->type == NFTA_DATA_VALUE) {
      if (attribute->payload.size() > kMostBytesOfData) return false;
      bytes.assign(attribute->payload.begin(), attribute->payload.end());
    } else if (attribute->type == NFTA_DATA_VERDICT && verdict != nullptr) {
      *verdict = ReadVerdict(attribute->payload);
      if (!*verdict) return false;
    }
  }
  return !reader.malformed();
}

// Returns false for malformed input.
bool AppendElement(std::span<const uint8_t> nest, std::vector<ElementReading>& elements,
                   std::vector<Bytes>& ends) {
  ElementReading& reading = elements.emplace_back();
  std::optional<Counts> counts;
  uint32_t flags = 0;
  AttributeReader reader(nest);
  while (const auto attribute = reader.Next()) {
    bool fine = true;
    switch (attribute->type) {
      case NFTA_SET_ELEM_KEY:
        fine = ReadData(attribute->payload, reading.element.key, nullptr);
        break;
      case NFTA_SET_ELEM_DATA:
        fine = ReadData(attribute->payload, reading.element.value, &reading.element.verdict);
        break;
      case NFTA_SET_ELEM_FLAGS: {
        const auto number = BigEndian<uint32_t>(*attribute);
        fine = number.has_value();
        flags = number.value_or(0);
        break;
      }
      case NFTA_SET_ELEM_EXPR:
        fine = ReadExpression(attribute->payload, counts);
        break;
      case NFTA_SET_ELEM_EXPRESSIONS:
        fine = ReadExpressions(attribute->payload, counts);
        break;
      default:
        break;
    }
    if (!fine) return false;
  }
  if (reader.malformed()) return false;
  if (counts) {
    reading.packets = counts->packets;
    reading.bytes = counts->bytes;
  }
  const bool is_end = (flags & NFT_SET_ELEM_INTERVAL_END) != 0;
  if (is_end) ends.push_back(std::move(reading.element.key));
  // The element without a key is the one for all other keys (Linux 5.13), which is none of ours.
  if (is_end || reading.element.key.empty()) elements.pop_back();
  return true;
}

void Decrement(Bytes& key) {
  for (size_t i = key.size(); i > 0; --i) {
    if (key[i - 1]-- != 0) return;
  }
}

struct HashOfKey {
  size_t operator()(const Bytes* key) const {
    return std::hash<std::string_view>()({reinterpret_cast<const char*>(key->data()), key->size()});
  }
};
struct SameKey {
  bool operator()(const Bytes* a, const Bytes* b) const { return *a == *b; }
};

// Returns the comment in a rule's user data: a run of type, length, value. Empty when there is
// none.
std::string ReadComment(std::span<const uint8_t> data) {
  while (data.size() >= 2) {
    const size_t length = data[1];
    if (data.size() - 2 < length) break;
    const std::span<const uint8_t> value = data.subspan(2, length);
    if (data[0] == kCommentType) {
      return std::string(value.begin(), std::find(value.begin(), value.end(), uint8_t{0}));
    }
    data = data.subspan(2 + length);
  }
  return {};
}

// Reads the one number that a message is asked for.
absl::StatusOr<uint32_t> ReadNumber(std::span<const uint8_t> payload, uint16_t type,
                                    std::optional<uint32_t> without) {
  std::optional<uint32_t> number = without;
  AttributeReader reader(payload, sizeof(nfgenmsg));
  while (const auto attribute = reader.Next()) {
    if (attribute->type != type) continue;
    number = BigEndian<uint32_t>(*attribute);
    if (!number) return Malformed();
  }
  if (reader.malformed() || !number) return Malformed();
  return *number;
}

}  // namespace

absl::Status AppendElements(std::span<const uint8_t> payload, std::vector<ElementReading>& elements,
                            std::vector<Bytes>& ends) {
  if (payload.size() < sizeof(nfgenmsg)) return Malformed();
  AttributeReader message(payload, sizeof(nfgenmsg));
  while (const auto attribute = message.Next()) {
    if (attribute->type != NFTA_SET_ELEM_LIST_ELEMENTS) continue;
    AttributeReader list(attribute->payload);
    while (const auto element = list.Next()) {
      if (!AppendElement(element->payload, elements, ends)) return Malformed();
    }
    if (list.malformed()) return Malformed();
  }
  return message.malformed() ? Malformed() : absl::OkStatus();
}

void CloseIntervals(std::vector<ElementReading>& elements, std::vector<Bytes> ends) {
  std::sort(elements.begin(), elements.end(),
            [](const auto& a, const auto& b) { return a.element.key < b.element.key; });
  std::sort(ends.begin(), ends.end());
  for (size_t i = 0; i < elements.size(); ++i) {
    Element& element = elements[i].element;
    const auto end = std::upper_bound(ends.begin(), ends.end(), element.key);
    const Bytes* behind = end == ends.end() ? nullptr : &*end;
    if (i + 1 < elements.size()) {
      const Bytes& next = elements[i + 1].element.key;
      if (behind == nullptr || next < *behind) behind = &next;
    }
    if (behind == nullptr) {
      element.last.assign(element.key.size(), 0xFF);
      continue;
    }
    element.last = *behind;
    Decrement(element.last);
  }
}

void DropRepeated(std::vector<ElementReading>& elements) {
  std::unordered_set<const Bytes*, HashOfKey, SameKey> seen;
  seen.reserve(elements.size());
  std::vector<bool> repeated(elements.size(), false);
  for (size_t i = 0; i < elements.size(); ++i) {
    repeated[i] = !seen.insert(&elements[i].element.key).second;
  }
  if (seen.size() == elements.size()) return;
  size_t kept = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (repeated[i]) continue;
    if (kept != i) elements[kept] = std::move(elements[i]);
    ++kept;
  }
  elements.resize(kept);
}

absl::StatusOr<std::optional<CounterReading>> ParseCounter(std::span<const uint8_t> payload,
                                                           const std::string& table) {
  if (payload.size() < sizeof(nfgenmsg)) return Malformed();
  CounterReading reading;
  std::string_view in_table;
  std::optional<uint32_t> type;
  std::optional<Counts> counts;
  AttributeReader reader(payload, sizeof(nfgenmsg));
  while (const auto attribute = reader.Next()) {
    if (attribute->type == NFTA_OBJ_TABLE) in_table = attribute->Text();
    if (attribute->type == NFTA_OBJ_NAME) reading.name = attribute->Text();
    if (attribute->type == NFTA_OBJ_TYPE) type = BigEndian<uint32_t>(*attribute);
    if (attribute->type == NFTA_OBJ_DATA) counts = ReadCounts(attribute->payload);
  }
  if (reader.malformed() || !type) return Malformed();
  if (*type != NFT_OBJECT_COUNTER || in_table != table) return std::nullopt;
  if (!counts || reading.name.empty()) return Malformed();
  reading.packets = counts->packets;
  reading.bytes = counts->bytes;
  return reading;
}

absl::StatusOr<std::optional<RuleReading>> ParseRule(std::span<const uint8_t> payload,
                                                     const std::string& table) {
  if (payload.size() < sizeof(nfgenmsg)) return Malformed();
  RuleReading reading;
  std::string_view in_table;
  std::optional<Counts> counts;
  AttributeReader reader(payload, sizeof(nfgenmsg));
  while (const auto attribute = reader.Next()) {
    switch (attribute->type) {
      case NFTA_RULE_TABLE:
        in_table = attribute->Text();
        break;
      case NFTA_RULE_CHAIN:
        reading.chain = attribute->Text();
        break;
      case NFTA_RULE_HANDLE: {
        const auto handle = BigEndian<uint64_t>(*attribute);
        if (!handle) return Malformed();
        reading.handle = *handle;
        break;
      }
      case NFTA_RULE_EXPRESSIONS:
        if (!ReadExpressions(attribute->payload, counts)) return Malformed();
        break;
      case NFTA_RULE_USERDATA:
        reading.comment = ReadComment(attribute->payload);
        break;
      default:
        break;
    }
  }
  if (reader.malformed() || reading.chain.empty()) return Malformed();
  if (in_table != table) return std::nullopt;
  if (counts) {
    reading.packets = counts->packets;
    reading.bytes = counts->bytes;
  }
  return reading;
}

absl::StatusOr<uint32_t> ParseSetFlags(std::span<const uint8_t> payload) {
  // A set without flags may come without the attribute.
  return ReadNumber(payload, NFTA_SET_FLAGS, 0);
}

absl::StatusOr<uint32_t> ParseGeneration(std::span<const uint8_t> payload) {
  return ReadNumber(payload, NFTA_GEN_ID, std::nullopt);
}

}  // namespace spoke::nft
