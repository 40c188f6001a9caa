#include <cerrno>

#include "gtest/gtest.h"
#include "lib/netlink/message.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/testing/recorded_messages.h"

namespace spoke::netlink {
namespace {

Rule FromPod() {
  return {.family = ip::Family::kV4,
          .priority = 8310,
          .from = ip::Prefix::Host(ip::Address::V4(0x0A000109)),
          .table = 84'000,
          .protocol = 83,
          .suppress_prefix_length = {}};
}

Rule Suppressing(ip::Family family) {
  return {.family = family,
          .priority = 8300,
          .from = {},
          .table = RT_TABLE_MAIN,
          .protocol = 83,
          .suppress_prefix_length = 0};
}

Rule FromPodV6() {
  Rule rule = FromPod();
  rule.family = ip::Family::kV6;
  rule.from = ip::Prefix::Host(ip::Address::V6(0xFD00'0000'0000'0000, 9));
  return rule;
}

TEST(ParseRule, ReadsRulesAsTheKernelSentThem) {
  EXPECT_EQ(ParseRule(FromHex(kRuleV4)).value(), FromPod());
  EXPECT_EQ(ParseRule(FromHex(kRuleV6)).value(), FromPodV6());
  EXPECT_EQ(ParseRule(FromHex(kSuppressingRule)).value(), Suppressing(ip::Family::kV4));
}

TEST(ParseRule, SurvivesDamage) {
  for (const auto recorded : {kRuleV4, kRuleV6, kSuppressingRule}) {
    ExpectSurvivesDamage(recorded, &ParseRule);
  }
}

TEST(ParseRule, RefusesALengthTheFamilyDoesNotHave) {
  auto bytes = FromHex(kRuleV4);
  bytes[2] = 33;
  EXPECT_TRUE(absl::IsDataLoss(ParseRule(bytes).status()));
}

TEST(RuleRequests, AreReadBackAsTheyWereAsked) {
  for (const Rule& rule :
       {FromPod(), FromPodV6(), Suppressing(ip::Family::kV4), Suppressing(ip::Family::kV6)}) {
    const Request add = AddRule(rule);
    const auto message = MessageReader(add.bytes()).Next();
    EXPECT_EQ(message->type, RTM_NEWRULE);
    EXPECT_EQ(ParseRule(message->payload).value(), rule);
    EXPECT_TRUE(add.Tolerates(EEXIST));
    const Request remove = DeleteRule(rule);
    EXPECT_EQ(MessageReader(remove.bytes()).Next()->type, RTM_DELRULE);
    EXPECT_TRUE(remove.Tolerates(ENOENT));
  }
}

}  // namespace
}  // namespace spoke::netlink
