#include "lib/netlink/rule.h"

#include <linux/fib_rules.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>

#include "fmt/core.h"
#include "lib/netlink/exchange.h"
#include "lib/netlink/message.h"

namespace spoke::netlink {
namespace {

// The number by which the kernel says that it suppresses nothing.
constexpr uint32_t kNotSuppressed = 0xFFFFFFFF;

absl::Status Malformed() { return absl::DataLossError("malformed netlink rule message"); }

Request RuleRequest(std::string_view verb, uint16_t type, uint16_t flags, const Rule& rule) {
  fib_rule_hdr fixed{};
  fixed.family = FamilyNumber(rule.family);
  fixed.src_len = rule.from ? static_cast<uint8_t>(rule.from->length()) : uint8_t{0};
  // Table ids above a byte go into FRA_TABLE alone.
  fixed.table = rule.table < 256 ? static_cast<uint8_t>(rule.table) : uint8_t{RT_TABLE_UNSPEC};
  fixed.action = FR_ACT_TO_TBL;
  Request request(fmt::format("{} rule {} from {}", verb, rule.priority,
                              rule.from ? rule.from->ToString() : "all"),
                  type, flags, fixed);
  if (rule.from) request.PutAddress(FRA_SRC, rule.from->base());
  request.PutU32(FRA_PRIORITY, rule.priority).PutU32(FRA_TABLE, rule.table);
  if (rule.suppress_prefix_length) {
    request.PutU32(FRA_SUPPRESS_PREFIXLEN, *rule.suppress_prefix_length);
  }
  if (rule.mark) request.PutU32(FRA_FWMARK, rule.mark->value).PutU32(FRA_FWMASK, rule.mark->mask);
  request.PutU8(FRA_PROTOCOL, rule.protocol);
  return request;
}

}  // namespace

absl::StatusOr<Rule> ParseRule(std::span<const uint8_t> payload) {
  const auto fixed = ReadStruct<fib_rule_hdr>(payload);
  if (!fixed || (fixed->family != AF_INET && fixed->family != AF_INET6)) return Malformed();
  Rule rule;
  rule.family = fixed->family == AF_INET ? ip::Family::kV4 : ip::Family::kV6;
  rule.table = fixed->table;
  std::optional<ip::Address> source;
  std::optional<uint32_t> mark;
  std::optional<uint32_t> mask;
  AttributeTable<FRA_PROTOCOL> table(AttributeReader(payload, sizeof(fib_rule_hdr)));
  table.Read(FRA_SRC, rule.family, source);
  table.Read(FRA_PRIORITY, rule.priority);
  table.Read(FRA_TABLE, rule.table);
  table.Read(FRA_SUPPRESS_PREFIXLEN, rule.suppress_prefix_length);
  table.Read(FRA_FWMARK, mark);
  table.Read(FRA_FWMASK, mask);
  table.Read(FRA_PROTOCOL, rule.protocol);
  if (table.malformed()) return Malformed();
  if (rule.suppress_prefix_length == kNotSuppressed) rule.suppress_prefix_length.reset();
  if (mark || mask) rule.mark = {mark.value_or(0), mask.value_or(PacketMark().mask)};
  if (source) {
    const auto prefix = ip::Prefix::Of(*source, fixed->src_len);
    if (!prefix.ok()) return Malformed();
    rule.from = *prefix;
  }
  return rule;
}

Request AddRule(const Rule& rule) {
  Request request = RuleRequest("add", RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, rule);
  request.Tolerate(EEXIST);
  return request;
}

Request DeleteRule(const Rule& rule) {
  Request request = RuleRequest("delete", RTM_DELRULE, 0, rule);
  request.Tolerate(ENOENT);
  return request;
}

absl::StatusOr<std::vector<Rule>> DumpRules(Socket& socket, ip::Family family, uint8_t protocol) {
  fib_rule_hdr fixed{};
  fixed.family = FamilyNumber(family);
  const Request request("list rules", RTM_GETRULE, 0, fixed);
  return DumpAs<Rule>(
      socket, request, RTM_NEWRULE,
      [=](std::span<const uint8_t> payload) -> absl::StatusOr<std::optional<Rule>> {
        const auto head = ReadStruct<fib_rule_hdr>(payload);
        // A kernel without the family answers for all the others instead.
        if (head && (head->family != FamilyNumber(family) || head->action != FR_ACT_TO_TBL)) {
          return std::nullopt;
        }
        absl::StatusOr<Rule> rule = ParseRule(payload);
        if (!rule.ok()) return rule.status();
        if (protocol != RTPROT_UNSPEC && rule->protocol != protocol) return std::nullopt;
        return *rule;
      });
}

}  // namespace spoke::netlink
