#include "netagent/iptables/nft_rule_text.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/address.h"
#include "lib/netlink/message.h"

namespace spoke::netagent {
namespace {

using netlink::Attribute;
using netlink::AttributeReader;
using Bytes = std::vector<uint8_t>;

constexpr size_t kDeviceNameBytes = 16;  // IFNAMSIZ
constexpr uint8_t kCommentUserData = 0;  // NFTNL_UDATA_RULE_COMMENT, of libnftnl/udata.h.

absl::Status Malformed() { return absl::DataLossError("malformed nf_tables message"); }

// The attributes of one nest, the last of each type.
using Attributes = std::map<uint16_t, Attribute>;

std::optional<Attributes> ReadAll(AttributeReader reader) {
  Attributes out;
  while (const auto attribute = reader.Next()) out.insert_or_assign(attribute->type, *attribute);
  if (reader.malformed()) return std::nullopt;
  return out;
}

const Attribute* Find(const Attributes& attributes, uint16_t type) {
  const auto found = attributes.find(type);
  return found == attributes.end() ? nullptr : &found->second;
}

// Returns the number; nf_tables has its numbers in network order.
uint32_t Number(const Attributes& attributes, uint16_t type) {
  const Attribute* found = Find(attributes, type);
  return found == nullptr ? 0 : ntohl(found->U32().value_or(0));
}

uint64_t LongNumber(const Attributes& attributes, uint16_t type) {
  const Attribute* found = Find(attributes, type);
  if (found == nullptr || found->payload.size() < sizeof(uint64_t)) return 0;
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(uint64_t); ++i) value = value << 8U | found->payload[i];
  return value;
}

std::string Text(const Attributes& attributes, uint16_t type) {
  const Attribute* found = Find(attributes, type);
  return found == nullptr ? "" : std::string(found->Text());
}

Attributes Nested(const Attributes& attributes, uint16_t type) {
  const Attribute* found = Find(attributes, type);
  if (found == nullptr) return {};
  return ReadAll(AttributeReader(found->payload)).value_or(Attributes());
}

Bytes Data(const Attributes& attributes, uint16_t type) {
  const Attributes data = Nested(attributes, type);
  const Attribute* value = Find(data, NFTA_DATA_VALUE);
  return value == nullptr ? Bytes() : Bytes(value->payload.begin(), value->payload.end());
}

// Returns how many leading bits are set; nullopt when others are as well.
std::optional<int> PrefixLength(const Bytes& mask) {
  int length = 0;
  bool ended = false;
  for (const uint8_t byte : mask) {
    const int ones = std::countl_one(byte);
    if (ended ? byte != 0 : static_cast<uint8_t>(byte << ones) != 0) return std::nullopt;
    length += ones;
    ended = ended || ones < 8;
  }
  return length;
}

std::string ProtocolName(uint8_t protocol) {
  switch (protocol) {
    case IPPROTO_TCP:
      return "tcp";
    case IPPROTO_UDP:
      return "udp";
    case IPPROTO_ICMP:
      return "icmp";
    case IPPROTO_ICMPV6:
      return "ipv6-icmp";
    case IPPROTO_SCTP:
      return "sctp";
    default:
      return fmt::format("{}", protocol);
  }
}

// Goes through the expressions of one rule and keeps what iptables would say of each.
class RuleWriter {
 public:
  explicit RuleWriter(bool v6) : v6_(v6) {}

  void Take(std::string_view name, const Attributes& data) {
    if (name == "payload") return TakePayload(data);
    if (name == "meta") return TakeMeta(data);
    if (name == "bitwise") return TakeBitwise(data);
    if (name == "cmp") return TakeCompare(data);
    if (name == "match") return TakeMatch(data);
    if (name == "counter") return TakeCounter(data);
    if (name == "immediate") return TakeVerdict(data);
    if (name == "target") verdict_ = fmt::format("-j {}", Text(data, NFTA_TARGET_NAME));
    rule_.abridged = true;
  }

  void SetComment(std::string comment) {
    if (!rule_.comment.empty()) return;
    rule_.comment = std::move(comment);
    matches_.push_back("-m comment --comment " + QuoteForIptables(rule_.comment));
  }

  IptablesRule Finish(std::string chain) {
    // These are in the order of iptables-save.
    for (const char* option : {"-s", "-d", "-i", "-o", "-p"}) {
      const auto found = options_.find(option);
      if (found != options_.end()) Add(found->second);
    }
    for (const std::string& match : matches_) Add(match);
    Add(verdict_);
    rule_.chain = std::move(chain);
    return std::move(rule_);
  }

 private:
  struct Loaded {
    std::string option;  // The option that it is compared for; empty: none we know.
    Bytes mask;          // The mask; empty: all of it is compared.
  };

  void Add(const std::string& part) {
    if (part.empty()) return;
    if (!rule_.text.empty()) rule_.text += ' ';
    rule_.text += part;
  }

  void TakePayload(const Attributes& data) {
    const uint32_t offset = Number(data, NFTA_PAYLOAD_OFFSET);
    Loaded loaded;
    if (Number(data, NFTA_PAYLOAD_BASE) == NFT_PAYLOAD_NETWORK_HEADER) {
      if (offset == (v6_ ? 8U : 12U)) loaded.option = "-s";
      if (offset == (v6_ ? 24U : 16U)) loaded.option = "-d";
    }
    loaded_.insert_or_assign(Number(data, NFTA_PAYLOAD_DREG), loaded);
    if (loaded.option.empty() || Find(data, NFTA_PAYLOAD_DREG) == nullptr) rule_.abridged = true;
  }

  void TakeMeta(const Attributes& data) {
    Loaded loaded;
    switch (Number(data, NFTA_META_KEY)) {
      case NFT_META_IIFNAME:
        loaded.option = "-i";
        break;
      case NFT_META_OIFNAME:
        loaded.option = "-o";
        break;
      case NFT_META_L4PROTO:
        loaded.option = "-p";
        break;
      default:
        break;
    }
    loaded_.insert_or_assign(Number(data, NFTA_META_DREG), loaded);
    if (loaded.option.empty() || Find(data, NFTA_META_DREG) == nullptr) rule_.abridged = true;
  }

  void TakeBitwise(const Attributes& data) {
    const auto found = loaded_.find(Number(data, NFTA_BITWISE_SREG));
    const Bytes toggle = Data(data, NFTA_BITWISE_XOR);
    const bool masks = Number(data, NFTA_BITWISE_OP) == NFT_BITWISE_BOOL &&
                       std::all_of(toggle.begin(), toggle.end(), [](uint8_t b) { return b == 0; });
    if (found == loaded_.end() || !masks || !found->second.mask.empty()) {
      rule_.abridged = true;
      return;
    }
    Loaded masked = found->second;
    masked.mask = Data(data, NFTA_BITWISE_MASK);
    loaded_.insert_or_assign(Number(data, NFTA_BITWISE_DREG), std::move(masked));
  }

  void TakeCompare(const Attributes& data) {
    const auto found = loaded_.find(Number(data, NFTA_CMP_SREG));
    const uint32_t how = Number(data, NFTA_CMP_OP);
    const Bytes value = Data(data, NFTA_CMP_DATA);
    std::optional<std::string> words;
    if (found != loaded_.end() && (how == NFT_CMP_EQ || how == NFT_CMP_NEQ)) {
      words = WordsFor(found->second, value);
    }
    if (!words || options_.contains(found->second.option)) {
      rule_.abridged = true;
      return;
    }
    options_[found->second.option] =
        fmt::format("{}{} {}", how == NFT_CMP_NEQ ? "! " : "", found->second.option, *words);
  }

  std::optional<std::string> WordsFor(const Loaded& loaded, const Bytes& value) const {
    if (loaded.option == "-s" || loaded.option == "-d") return BlockOf(value, loaded.mask);
    if (!loaded.mask.empty() || value.empty()) return std::nullopt;
    if (loaded.option == "-p" && value.size() == 1) return ProtocolName(value[0]);
    if ((loaded.option == "-i" || loaded.option == "-o") && value.size() <= kDeviceNameBytes) {
      const auto end = std::find(value.begin(), value.end(), 0);
      // Without the NUL behind it, the value is how a name begins.
      return std::string(value.begin(), end) + (end == value.end() ? "+" : "");
    }
    return std::nullopt;
  }

  // Returns the block. One whose length is whole bytes is compared without a mask, in that many
  // bytes.
  std::optional<std::string> BlockOf(Bytes value, const Bytes& mask) const {
    const size_t full = v6_ ? 16 : 4;
    if (value.empty() || value.size() > full || (!mask.empty() && mask.size() != value.size())) {
      return std::nullopt;
    }
    const auto length =
        mask.empty() ? std::optional(static_cast<int>(value.size() * 8)) : PrefixLength(mask);
    if (!length) return std::nullopt;
    value.resize(full);
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (::inet_ntop(v6_ ? AF_INET6 : AF_INET, value.data(), text.data(), text.size()) == nullptr) {
      return std::nullopt;
    }
    return fmt::format("{}/{}", text.data(), *length);
  }

  void TakeMatch(const Attributes& data) {
    const std::string name = Text(data, NFTA_MATCH_NAME);
    if (name == "comment") return SetComment(Text(data, NFTA_MATCH_INFO));
    matches_.push_back("-m " + name);
    rule_.abridged = true;
  }

  void TakeCounter(const Attributes& data) {
    if (counted_) return;
    counted_ = true;
    rule_.packets = LongNumber(data, NFTA_COUNTER_PACKETS);
    rule_.bytes = LongNumber(data, NFTA_COUNTER_BYTES);
  }

  void TakeVerdict(const Attributes& data) {
    const Attributes verdict = Nested(Nested(data, NFTA_IMMEDIATE_DATA), NFTA_DATA_VERDICT);
    if (verdict.empty()) {
      rule_.abridged = true;
      return;
    }
    const std::string chain = Text(verdict, NFTA_VERDICT_CHAIN);
    switch (static_cast<int32_t>(Number(verdict, NFTA_VERDICT_CODE))) {
      case NF_ACCEPT:
        verdict_ = "-j ACCEPT";
        break;
      case NF_DROP:
        verdict_ = "-j DROP";
        break;
      case NFT_RETURN:
        verdict_ = "-j RETURN";
        break;
      case NFT_JUMP:
        verdict_ = "-j " + chain;
        break;
      case NFT_GOTO:
        verdict_ = "-g " + chain;
        break;
      default:
        rule_.abridged = true;
    }
  }

  const bool v6_;
  std::map<uint32_t, Loaded> loaded_;  // The loaded fields, by register.
  // The options, each as it is written, by its letter.
  std::map<std::string, std::string> options_;
  std::vector<std::string> matches_;
  std::string verdict_;
  bool counted_ = false;
  IptablesRule rule_;
};

// Returns the comment in the user data, which is a run of type, length and value, a byte each for
// the first two (libnftnl/udata.h).
std::string CommentInUserData(std::span<const uint8_t> data) {
  while (data.size() >= 2) {
    const size_t length = data[1];
    if (data.size() < 2 + length) return "";
    if (data[0] == kCommentUserData) {
      const auto value = data.subspan(2, length);
      return {value.begin(), std::find(value.begin(), value.end(), 0)};
    }
    data = data.subspan(2 + length);
  }
  return "";
}

}  // namespace

absl::StatusOr<NftRuleMessage> ReadNftRule(std::span<const uint8_t> payload) {
  const auto fixed = netlink::ReadStruct<nfgenmsg>(payload);
  if (!fixed) return Malformed();
  const auto attributes = ReadAll(AttributeReader(payload, sizeof(nfgenmsg)));
  if (!attributes || Find(*attributes, NFTA_RULE_TABLE) == nullptr ||
      Find(*attributes, NFTA_RULE_CHAIN) == nullptr) {
    return Malformed();
  }
  RuleWriter writer(fixed->nfgen_family == AF_INET6);
  if (const Attribute* list = Find(*attributes, NFTA_RULE_EXPRESSIONS); list != nullptr) {
    AttributeReader expressions(list->payload);
    while (const auto expression = expressions.Next()) {
      const auto parts = ReadAll(AttributeReader(expression->payload));
      if (!parts) return Malformed();
      writer.Take(Text(*parts, NFTA_EXPR_NAME), Nested(*parts, NFTA_EXPR_DATA));
    }
    if (expressions.malformed()) return Malformed();
  }
  if (const Attribute* user = Find(*attributes, NFTA_RULE_USERDATA); user != nullptr) {
    std::string comment = CommentInUserData(user->payload);
    if (!comment.empty()) writer.SetComment(std::move(comment));
  }
  return NftRuleMessage{.table = Text(*attributes, NFTA_RULE_TABLE),
                        .rule = writer.Finish(Text(*attributes, NFTA_RULE_CHAIN)),
                        .handle = LongNumber(*attributes, NFTA_RULE_HANDLE)};
}

absl::StatusOr<NftChainMessage> ReadNftChain(std::span<const uint8_t> payload) {
  if (!netlink::ReadStruct<nfgenmsg>(payload)) return Malformed();
  const auto attributes = ReadAll(AttributeReader(payload, sizeof(nfgenmsg)));
  if (!attributes || Find(*attributes, NFTA_CHAIN_TABLE) == nullptr ||
      Find(*attributes, NFTA_CHAIN_NAME) == nullptr) {
    return Malformed();
  }
  NftChainMessage out{.table = Text(*attributes, NFTA_CHAIN_TABLE),
                      .chain = {.name = Text(*attributes, NFTA_CHAIN_NAME)}};
  if (Find(*attributes, NFTA_CHAIN_HOOK) != nullptr) {
    out.chain.policy = Number(*attributes, NFTA_CHAIN_POLICY) == NF_DROP ? "DROP" : "ACCEPT";
  }
  const Attributes counters = Nested(*attributes, NFTA_CHAIN_COUNTERS);
  out.chain.packets = LongNumber(counters, NFTA_COUNTER_PACKETS);
  out.chain.bytes = LongNumber(counters, NFTA_COUNTER_BYTES);
  return out;
}

}  // namespace spoke::netagent
