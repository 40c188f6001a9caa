#include "lib/nft/firewall_dump.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"

namespace spoke::nft {
namespace {

using netlink::Attribute;
using netlink::AttributeReader;

constexpr size_t kDeviceNameBytes = 16;  // The number IFNAMSIZ.

absl::Status Malformed() { return absl::DataLossError("malformed nf_tables message"); }

constexpr uint16_t MessageType(int message) {
  return static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | message);
}

std::optional<uint32_t> Number(const Attribute& attribute) {
  if (attribute.payload.size() != sizeof(uint32_t)) return std::nullopt;
  uint32_t number = 0;
  for (const uint8_t byte : attribute.payload) number = number << 8U | byte;
  return number;
}

std::string FamilyName(uint8_t number) {
  switch (number) {
    case NFPROTO_IPV4:
      return "ip";
    case NFPROTO_IPV6:
      return "ip6";
    case NFPROTO_INET:
      return "inet";
    default:
      return "";
  }
}

uint8_t FamilyNumberOf(const std::string& name) {
  if (name == "ip") return NFPROTO_IPV4;
  return name == "ip6" ? NFPROTO_IPV6 : NFPROTO_INET;
}

// The content of a rule up to the present expression.
struct Reading {
  RuleGist gist;
  // The kind of what the last expression has loaded that a comparison may be about.
  enum class Loaded : uint8_t { kOther, kDeviceName, kDeviceIndex, kState } loaded = Loaded::kOther;
};

// Returns the key that a "meta" expression loads; nullopt when it writes one.
void ReadMeta(std::span<const uint8_t> data, Reading& reading) {
  std::optional<uint32_t> key;
  bool loads = false;
  AttributeReader reader(data);
  while (const auto attribute = reader.Next()) {
    if (attribute->type == NFTA_META_KEY) key = Number(*attribute);
    if (attribute->type == NFTA_META_DREG) loads = true;
  }
  if (!loads) return;
  reading.loaded = Reading::Loaded::kOther;
  if (key == NFT_META_IIFNAME || key == NFT_META_OIFNAME) {
    reading.loaded = Reading::Loaded::kDeviceName;
  } else if (key == NFT_META_IIF || key == NFT_META_OIF) {
    reading.loaded = Reading::Loaded::kDeviceIndex;
  } else if (key == NFT_META_MARK) {
    reading.loaded = Reading::Loaded::kState;
  }
}

std::span<const uint8_t> ValueIn(std::span<const uint8_t> nest) {
  AttributeReader reader(nest);
  while (const auto attribute = reader.Next()) {
    if (attribute->type == NFTA_DATA_VALUE) return attribute->payload;
  }
  return {};
}

// Returns "docker0" for 16 bytes, "cali*" for fewer: nft compares the beginning only.
std::string DeviceText(std::span<const uint8_t> value) {
  const auto end = std::find(value.begin(), value.end(), uint8_t{0});
  std::string name(value.begin(), end);
  if (end == value.end() && value.size() < kDeviceNameBytes) name += '*';
  return name;
}

void ReadComparison(std::span<const uint8_t> data, Reading& reading) {
  reading.gist.conditional = true;
  if (reading.loaded == Reading::Loaded::kState) reading.gist.on_state = true;
  std::optional<uint32_t> operation;
  std::span<const uint8_t> value;
  AttributeReader reader(data);
  while (const auto attribute = reader.Next()) {
    if (attribute->type == NFTA_CMP_OP) operation = Number(*attribute);
    if (attribute->type == NFTA_CMP_DATA) value = ValueIn(attribute->payload);
  }
  if (operation != NFT_CMP_EQ || value.empty()) return;
  if (reading.loaded == Reading::Loaded::kDeviceName) {
    reading.gist.devices.push_back(DeviceText(value));
  } else if (reading.loaded == Reading::Loaded::kDeviceIndex) {
    const auto index = netlink::ReadStruct<uint32_t>(value);
    if (index) reading.gist.devices.push_back(fmt::format("#{}", *index));
  }
}

// Returns false for malformed input.
bool ReadVerdict(std::span<const uint8_t> nest, RuleGist& gist) {
  AttributeReader reader(nest);
  while (const auto attribute = reader.Next()) {
    if (attribute->type == NFTA_VERDICT_CHAIN) gist.target = attribute->Text();
    if (attribute->type != NFTA_VERDICT_CODE) continue;
    const auto code = Number(*attribute);
    if (!code) return false;
    switch (static_cast<int32_t>(*code)) {
      case NF_ACCEPT:
        gist.fate = Fate::kAccept;
        break;
      case NF_DROP:
        gist.fate = Fate::kDrop;
        break;
      case NFT_RETURN:
        gist.fate = Fate::kReturn;
        break;
      case NFT_JUMP:
        gist.fate = Fate::kJump;
        break;
      case NFT_GOTO:
        gist.fate = Fate::kGoto;
        break;
      default:  // This is a program's queue, and what later kernels have.
        break;
    }
  }
  return !reader.malformed();
}

bool ReadImmediate(std::span<const uint8_t> data, RuleGist& gist) {
  AttributeReader reader(data);
  while (const auto attribute = reader.Next()) {
    if (attribute->type != NFTA_IMMEDIATE_DATA) continue;
    AttributeReader nest(attribute->payload);
    while (const auto inner = nest.Next()) {
      if (inner->type == NFTA_DATA_VERDICT && !ReadVerdict(inner->payload, gist)) return false;
    }
    if (nest.malformed()) return false;
  }
  return !reader.malformed();
}

std::string_view NameIn(std::span<const uint8_t> data, uint16_t type) {
  AttributeReader reader(data);
  while (const auto attribute = reader.Next()) {
    if (attribute->type == type) return attribute->Text();
  }
  return {};
}

// Reads a match or target of iptables, which nf_tables carries.
void ReadMatch(std::string_view name, RuleGist& gist) {
  if (name == "comment") return;
  gist.conditional = true;
  if (name == "conntrack" || name == "state" || name == "mark" || name == "connmark") {
    gist.on_state = true;
  }
}

// Returns whether a lookup's map holds verdicts, or chains.
bool GivesVerdict(std::span<const uint8_t> data) {
  AttributeReader reader(data);
  while (const auto attribute = reader.Next()) {
    if (attribute->type == NFTA_LOOKUP_DREG) return Number(*attribute) == NFT_REG_VERDICT;
  }
  return false;
}

bool ReadExpression(std::string_view name, std::span<const uint8_t> data, Reading& reading) {
  RuleGist& gist = reading.gist;
  if (name == "meta") {
    ReadMeta(data, reading);
  } else if (name == "cmp") {
    ReadComparison(data, reading);
  } else if (name == "ct") {
    reading.loaded = Reading::Loaded::kState;
  } else if (name == "payload" || name == "fib" || name == "rt" || name == "socket") {
    reading.loaded = Reading::Loaded::kOther;
  } else if (name == "lookup" || name == "range") {
    gist.conditional = true;
    if (reading.loaded == Reading::Loaded::kState) gist.on_state = true;
    if (name == "lookup" && GivesVerdict(data)) gist.fate = Fate::kMap;
  } else if (name == "limit" || name == "quota" || name == "connlimit" || name == "dynset" ||
             name == "vmap") {
    gist.conditional = true;
  } else if (name == "immediate") {
    return ReadImmediate(data, gist);
  } else if (name == "reject") {
    gist.fate = Fate::kReject;
  } else if (name == "match") {
    ReadMatch(NameIn(data, NFTA_MATCH_NAME), gist);
  } else if (name == "target" && NameIn(data, NFTA_TARGET_NAME) == "REJECT") {
    gist.fate = Fate::kReject;
  }
  return true;
}

bool ReadExpressions(std::span<const uint8_t> list, Reading& reading) {
  AttributeReader reader(list);
  while (const auto element = reader.Next()) {
    if (element->type != NFTA_LIST_ELEM) continue;
    std::string_view name;
    std::span<const uint8_t> data;
    AttributeReader expression(element->payload);
    while (const auto attribute = expression.Next()) {
      if (attribute->type == NFTA_EXPR_NAME) name = attribute->Text();
      if (attribute->type == NFTA_EXPR_DATA) data = attribute->payload;
    }
    if (expression.malformed() || !ReadExpression(name, data, reading)) return false;
  }
  return !reader.malformed();
}

// Returns false for malformed input.
bool ReadHook(std::span<const uint8_t> nest, ChainGist& chain) {
  AttributeReader reader(nest);
  while (const auto attribute = reader.Next()) {
    if (attribute->type != NFTA_HOOK_HOOKNUM) continue;
    const auto number = Number(*attribute);
    if (!number) return false;
    chain.at_forward = *number == NF_INET_FORWARD;
  }
  return !reader.malformed();
}

netlink::Request Ask(std::string what, int message, uint8_t family) {
  nfgenmsg fixed{};
  fixed.nfgen_family = family;
  fixed.version = NFNETLINK_V0;
  return {std::move(what), MessageType(message), 0, fixed};
}

absl::Status ReadRules(netlink::Socket& socket, ChainGist& chain) {
  netlink::Request request = Ask(fmt::format("read chain {} of table {}", chain.name, chain.table),
                                 NFT_MSG_GETRULE, FamilyNumberOf(chain.family));
  request.PutText(NFTA_RULE_TABLE, chain.table).PutText(NFTA_RULE_CHAIN, chain.name);
  return netlink::Dump(
      socket, request, [&] { chain.rules.clear(); },
      [&](const netlink::Message& message) -> absl::Status {
        if (message.type != MessageType(NFT_MSG_NEWRULE)) return absl::OkStatus();
        ASSIGN_OR_RETURN(std::optional<RuleGist> rule, ParseRuleGist(message.payload, chain));
        if (rule && chain.rules.size() < kMaxRulesOfChain) chain.rules.push_back(*std::move(rule));
        return absl::OkStatus();
      });
}

}  // namespace

absl::StatusOr<std::optional<ChainGist>> ParseChainGist(std::span<const uint8_t> payload) {
  const auto header = netlink::ReadStruct<nfgenmsg>(payload);
  if (!header) return Malformed();
  ChainGist chain{.family = FamilyName(header->nfgen_family)};
  if (chain.family.empty()) return std::nullopt;
  AttributeReader reader(payload, sizeof(nfgenmsg));
  while (const auto attribute = reader.Next()) {
    if (attribute->type == NFTA_CHAIN_TABLE) chain.table = attribute->Text();
    if (attribute->type == NFTA_CHAIN_NAME) chain.name = attribute->Text();
    if (attribute->type == NFTA_CHAIN_HOOK && !ReadHook(attribute->payload, chain)) {
      return Malformed();
    }
    if (attribute->type == NFTA_CHAIN_POLICY) chain.drops = Number(*attribute) == NF_DROP;
  }
  if (reader.malformed() || chain.table.empty() || chain.name.empty()) return Malformed();
  return chain;
}

absl::StatusOr<std::optional<RuleGist>> ParseRuleGist(std::span<const uint8_t> payload,
                                                      const ChainGist& chain) {
  const auto header = netlink::ReadStruct<nfgenmsg>(payload);
  if (!header) return Malformed();
  Reading reading;
  std::string_view table;
  std::string_view name;
  AttributeReader reader(payload, sizeof(nfgenmsg));
  while (const auto attribute = reader.Next()) {
    if (attribute->type == NFTA_RULE_TABLE) table = attribute->Text();
    if (attribute->type == NFTA_RULE_CHAIN) name = attribute->Text();
    if (attribute->type == NFTA_RULE_EXPRESSIONS && !ReadExpressions(attribute->payload, reading)) {
      return Malformed();
    }
  }
  if (reader.malformed()) return Malformed();
  if (table != chain.table || name != chain.name) return std::nullopt;
  return reading.gist;
}

absl::StatusOr<std::vector<ChainGist>> ReadForwardChains(netlink::Socket& socket) {
  ASSIGN_OR_RETURN(
      const std::vector<ChainGist> all,
      netlink::DumpAs<ChainGist>(socket, Ask("read chains", NFT_MSG_GETCHAIN, NFPROTO_UNSPEC),
                                 MessageType(NFT_MSG_NEWCHAIN), &ParseChainGist));
  std::vector<ChainGist> found;
  std::set<const ChainGist*> taken;
  const auto take = [&](const ChainGist& chain) {
    if (found.size() < kMaxFirewallChains && taken.insert(&chain).second) found.push_back(chain);
  };
  for (const ChainGist& chain : all) {
    if (chain.at_forward) take(chain);
  }
  for (size_t i = 0; i < found.size(); ++i) {  // The list grows meanwhile.
    RETURN_IF_ERROR(ReadRules(socket, found[i]));
    const ChainGist chain = found[i];
    for (const RuleGist& rule : chain.rules) {
      const auto target = std::find_if(all.begin(), all.end(), [&](const ChainGist& other) {
        return other.family == chain.family && other.table == chain.table &&
               other.name == rule.target;
      });
      if (!rule.target.empty() && target != all.end()) take(*target);
    }
  }
  return found;
}

}  // namespace spoke::nft
