#include "ipam-server/admin/policy_probe.h"

#include <ostream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/policy/policy_file.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ObjectSet Networks(const std::string& spec) {
  const std::string text =
      "apiVersion: spoke/v1\nkind: ClusterNetwork\nmetadata: {name: main}\nspec: " + spec + "\n";
  const auto plan = PlanApply({}, ParsePolicyFiles(std::vector<PolicyFileText>{{"f", text}}), {},
                              absl::FromUnixSeconds(1));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? plan->next : ObjectSet();
}

node_api::ProbeTarget Target(const std::string& address, uint16_t port = 0) {
  return {.address = *ip::Address::Parse(address), .port = port};
}

struct TargetCase {
  const char* name;
  const char* text;
  const char* address;  // Empty: refused.
  uint16_t port;
};
std::ostream& operator<<(std::ostream& out, const TargetCase& c) { return out << c.name; }

class ParseTargetTest : public testing::TestWithParam<TargetCase> {};

TEST_P(ParseTargetTest, TakesAddressesWithAndWithoutAPort) {
  const TargetCase& c = GetParam();
  const auto target = ParseTarget(c.text);
  if (*c.address == '\0') {
    EXPECT_EQ(target.status().code(), absl::StatusCode::kInvalidArgument);
    return;
  }
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(*target, Target(c.address, c.port));
}

INSTANTIATE_TEST_SUITE_P(Cases, ParseTargetTest,
                         testing::Values(TargetCase{"V4", "10.0.0.1", "10.0.0.1", 0},
                                         TargetCase{"V4Port", "10.0.0.1:443", "10.0.0.1", 443},
                                         TargetCase{"V6", "fd00::1", "fd00::1", 0},
                                         TargetCase{"V6Port", "[fd00::1]:443", "fd00::1", 443},
                                         TargetCase{"PortZero", "10.0.0.1:0", "", 0},
                                         TargetCase{"PortTooLarge", "10.0.0.1:65536", "", 0},
                                         TargetCase{"NoPort", "10.0.0.1:", "", 0},
                                         TargetCase{"Name", "example.com:443", "", 0},
                                         TargetCase{"BracketedV4", "[10.0.0.1]:443", "", 0},
                                         TargetCase{"Empty", "", "", 0},
                                         TargetCase{"Brackets", "[]:1", "", 0}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(PlanProbes, TriesTheFirstAddressOfEachBlock) {
  const auto plan =
      PlanProbes(Networks("{cluster: [10.1.0.0/16], hub: [10.8.0.0/16], peerSpoke: [10.32.0.0/11, "
                          "10.9.0.9/32]}"),
                 {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->targets,
              ElementsAre(Target("10.8.0.1"), Target("10.9.0.9"), Target("10.32.0.1")));
  EXPECT_EQ(plan->hubs, 1U);
  EXPECT_EQ(plan->timeout, kProbeTimeout);
}

TEST(PlanProbes, TriesWhatIsNamedInstead) {
  v1::VerifyPolicyRequest request;
  request.add_hub_targets("10.8.0.7:443");
  request.set_timeout_ms(500);
  const auto plan =
      PlanProbes(Networks("{hub: [10.8.0.0/16], peerSpoke: [10.32.0.0/11]}"), request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->targets, ElementsAre(Target("10.8.0.7", 443), Target("10.32.0.1")));
  EXPECT_EQ(plan->timeout, absl::Milliseconds(500));
}

TEST(PlanProbes, NeedsAPromiseToTry) {
  EXPECT_EQ(PlanProbes({}, {}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(PlanProbes(Networks("{cluster: [10.1.0.0/16]}"), {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(PlanProbes, TriesWhatIsNamedWithoutAnyPolicy) {
  v1::VerifyPolicyRequest request;
  request.add_hub_targets("10.1.0.7");
  const auto reached = PlanProbes({}, request);
  ASSERT_TRUE(reached.ok()) << reached.status();
  EXPECT_THAT(reached->targets, ElementsAre(Target("10.1.0.7")));
  EXPECT_EQ(reached->hubs, 1U);
  request.clear_hub_targets();
  request.add_spoke_targets("10.32.0.7:443");
  const auto not_reached = PlanProbes({}, request);
  ASSERT_TRUE(not_reached.ok()) << not_reached.status();
  EXPECT_THAT(not_reached->targets, ElementsAre(Target("10.32.0.7", 443)));
  EXPECT_EQ(not_reached->hubs, 0U);
}

TEST(PlanProbes, RefusesTooMuch) {
  const ObjectSet objects = Networks("{hub: [10.8.0.0/16]}");
  v1::VerifyPolicyRequest many;
  for (size_t i = 0; i <= node_api::kMaxProbeTargets; ++i) many.add_hub_targets("10.8.0.1");
  EXPECT_EQ(PlanProbes(objects, many).status().code(), absl::StatusCode::kInvalidArgument);
  v1::VerifyPolicyRequest slow;
  slow.set_timeout_ms(6000);
  EXPECT_EQ(PlanProbes(objects, slow).status().code(), absl::StatusCode::kInvalidArgument);
  v1::VerifyPolicyRequest wrong;
  wrong.add_spoke_targets("nowhere");
  EXPECT_THAT(std::string(PlanProbes(objects, wrong).status().message()),
              HasSubstr("\"nowhere\" is no target"));
}

TEST(ChooseNodes, TakesThemFarFromEachOther) {
  EXPECT_THAT(ChooseNodes({}), IsEmpty());
  EXPECT_THAT(ChooseNodes({"a", "b"}), ElementsAre("a", "b"));
  EXPECT_THAT(ChooseNodes({"a", "b", "c", "d", "e"}), ElementsAre("a", "c", "e"));
}

TEST(DescribeProbes, SaysOfEachTargetWhatWasExpectedAndWhatCame) {
  const ProbePlan plan{
      .targets = {Target("10.8.0.1", 443), Target("10.32.0.1"), Target("10.33.0.1")},
      .hubs = 1,
      .timeout = kProbeTimeout};
  const node_api::ProbeAnswer answer{
      .id = 1,
      .results = {{.target = plan.targets[1], .outcome = node_api::ProbeOutcome::kTimedOut},
                  {.target = plan.targets[0],
                   .outcome = node_api::ProbeOutcome::kRefused,
                   .took = absl::Microseconds(300),
                   .detail = "Connection refused"}}};
  const auto response = DescribeProbes("n1", plan, answer);
  EXPECT_EQ(response.node(), "n1");
  ASSERT_THAT(response.probes(), SizeIs(3));
  EXPECT_EQ(response.probes(0).target(), "10.8.0.1:443");
  EXPECT_EQ(response.probes(0).traffic_class(), "hub");
  EXPECT_TRUE(response.probes(0).expected());
  EXPECT_TRUE(response.probes(0).reached()) << "a refusal comes from the target itself";
  EXPECT_EQ(response.probes(0).took_us(), 300U);
  EXPECT_FALSE(response.probes(1).expected());
  EXPECT_FALSE(response.probes(1).reached());
  EXPECT_EQ(response.probes(1).outcome(), "timed out");
  EXPECT_EQ(response.probes(2).outcome(), "not tried");
}

TEST(DescribeProbes, SaysWhyANodeDidNotTry) {
  const ProbePlan plan{.targets = {Target("10.8.0.1")}, .hubs = 1, .timeout = kProbeTimeout};
  EXPECT_EQ(DescribeProbes("n", plan, absl::UnavailableError("lost")).error(), "lost");
  EXPECT_EQ(DescribeProbes("n", plan, node_api::ProbeAnswer{.id = 1, .error = "busy"}).error(),
            "busy");
}

}  // namespace
}  // namespace spoke::ipam
