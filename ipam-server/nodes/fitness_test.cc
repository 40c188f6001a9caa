#include "ipam-server/nodes/fitness.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

struct Case {
  std::string name;
  FitnessFacts facts;
  bool ready;
  std::string reason;
  bool no_addresses = false;
};

class JudgeTest : public testing::TestWithParam<Case> {};

TEST_P(JudgeTest, SaysWhatKeepsPodsAway) {
  const Case& c = GetParam();
  const Fitness fitness = Judge(&c.facts);
  EXPECT_EQ(fitness.ready, c.ready);
  EXPECT_EQ(fitness.reason, c.reason);
  EXPECT_EQ(fitness.no_addresses, c.no_addresses);
  EXPECT_FALSE(MessageOf(&c.facts).empty());
}

constexpr const char* kFull = "pool a has no address left";

INSTANTIATE_TEST_SUITE_P(
    Cases, JudgeTest,
    testing::Values(
        Case{"Ready", {.connected = true, .told = true, .usable = 1}, true, "AgentReady"},
        Case{"Away", {.told = true, .usable = 9}, false, "AgentAway"},
        Case{"Starting", {.connected = true, .usable = 9}, false, "AgentStarting"},
        Case{"WithoutAddress", {.connected = true, .told = true}, false, "NoAddress"},
        Case{"WithoutAddressForLong",
             {.connected = true, .told = true, .exhausted = kFull},
             false,
             "NoAddress",
             true},
        Case{"Exhausted",
             {.connected = true, .told = true, .usable = 9, .exhausted = kFull},
             true,
             "AddressesExhausted",
             true},
        Case{"ExhaustedAndAway",
             {.told = true, .usable = 9, .exhausted = kFull},
             false,
             "AgentAway",
             true},
        Case{"RefusedPolicy",
             {.connected = true, .told = true, .usable = 9, .policy_error = "no room"},
             true,
             "PolicyRefused"},
        Case{"Warned",
             {.connected = true, .told = true, .usable = 9, .warned = "dns-node: is silent"},
             true,
             "NodeCheckWarned"},
        Case{"WarnedAndExhausted",
             {.connected = true,
              .told = true,
              .usable = 9,
              .exhausted = kFull,
              .warned = "dns-node: is silent"},
             true,
             "AddressesExhausted",
             true},
        Case{"WarnedAndAway",
             {.told = true, .usable = 9, .warned = "dns-node: is silent"},
             false,
             "AgentAway"},
        Case{"Blocked",
             {.connected = true, .told = true, .usable = 9, .blocked = "forwarding: is 0"},
             false,
             "NodeCheckFailed"},
        Case{"BlockedAndExhausted",
             {.connected = true,
              .told = true,
              .usable = 9,
              .exhausted = kFull,
              .blocked = "forwarding: is 0"},
             false,
             "NodeCheckFailed",
             true},
        Case{"BlockedAndWithoutAddress",
             {.connected = true, .told = true, .blocked = "forwarding: is 0"},
             false,
             "NoAddress"},
        Case{"LosesPackets",
             {.connected = true, .told = true, .usable = 9, .loses = "18 of 90 were lost"},
             false,
             "PacketsLost"},
        Case{"LosesPacketsAndBlocked",
             {.connected = true,
              .told = true,
              .usable = 9,
              .blocked = "forwarding: is 0",
              .loses = "18 of 90 were lost"},
             false,
             "NodeCheckFailed"},
        Case{"Draining",
             {.connected = true, .told = true, .leaving = true, .exhausted = kFull},
             false,
             "Draining"}),
    [](const auto& test) { return test.param.name; });

TEST(Judge, ANodeWithoutAnAgentIsNotReady) {
  const Fitness fitness = Judge(nullptr);
  EXPECT_FALSE(fitness.ready);
  EXPECT_EQ(fitness.reason, "AgentNotSeen");
  EXPECT_FALSE(fitness.no_addresses);
  EXPECT_FALSE(MessageOf(nullptr).empty());
}

TEST(MessageOf, SaysWhatIsMissing) {
  const FitnessFacts full{.connected = true, .told = true, .exhausted = kFull};
  EXPECT_EQ(MessageOf(&full), kFull);
  const FitnessFacts refused{
      .connected = true, .told = true, .usable = 1, .policy_error = "no room for it"};
  EXPECT_EQ(MessageOf(&refused), "The agent keeps its last policy: no room for it");
  const FitnessFacts warned{
      .connected = true, .told = true, .usable = 1, .warned = "dns-node: 10.0.0.1 is silent"};
  EXPECT_EQ(MessageOf(&warned), "dns-node: 10.0.0.1 is silent");
}

}  // namespace
}  // namespace spoke::ipam
