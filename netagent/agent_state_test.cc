#include "netagent/agent_state.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

class AgentStateTest : public testing::Test {
 protected:
  AgentStateTest() {
    HoldingsReplaced listed;
    for (const char* address : {"10.0.0.4", "10.0.0.5", "10.0.0.6"}) {
      listed.holdings.push_back({.address = A(address), .pool = "default"});
    }
    assignments_.Apply(listed);
    const Assignment pod{.key = {"c0ffee", "eth0"},
                         .pod = {.pod_namespace = "ml", .name = "train-\xFF"},
                         .addresses = {A("10.0.0.4")},
                         .generation = 7,
                         .since = absl::FromUnixSeconds(1'700'000'000)};
    assignments_.Apply(AssignmentBegun{pod});
    assignments_.Apply(AssignmentBuilt{pod.key});
    assignments_.Apply(WithdrawnSet{.addresses = {A("10.0.0.6")}, .withdrawn = true});
  }

  const node_api::NodeIdentity identity_{.node_name = "node1", .vm_id = "vm-1", .boot_id = "b"};
  Assignments assignments_{absl::Seconds(30)};
};

TEST_F(AgentStateTest, IsADocumentOfWhatItKnows) {
  const json state =
      json::parse(StateText({.identity = identity_,
                             .version = "1.2.3",
                             .not_serving = "no session",
                             .assignments = assignments_,
                             .findings = {{.check = "mtu", .object = "eth0", .what = "is 1400"}},
                             .maintenance = node_api::Maintenance{
                                 {{.id = "E", .kind = node_api::MaintenanceKind::kReboot}}}}));
  EXPECT_EQ(state["node"], "node1");
  EXPECT_EQ(state["version"], "1.2.3");
  EXPECT_EQ(state["not_serving"], "no session");
  EXPECT_EQ(state["pools"]["default"]["in_use"], 1);
  EXPECT_EQ(state["pools"]["default"]["unusable"], 1);
  ASSERT_EQ(state["pods"].size(), 1U);
  EXPECT_EQ(state["pods"][0]["addresses"][0], "10.0.0.4");
  EXPECT_EQ(state["pods"][0]["since"], "2023-11-14T22:13:20Z");
  EXPECT_THAT(state["pods"][0]["name"].get<std::string>(), HasSubstr("train-"));
  EXPECT_EQ(state["withdrawn"][0], "10.0.0.6");
  EXPECT_EQ(state["findings"][0]["check"], "mtu");
  EXPECT_EQ(state["maintenance"][0]["kind"], "Reboot");
}

TEST(AnswerNodeData, HasWhatIsAskedForOrAll) {
  const NodeDataParts parts = {{"log", [] { return std::string("a line\n"); }},
                               {"state", [] { return std::string("{}"); }}};
  const node_api::NodeDataPart log{"log", "a line\n"};
  const node_api::NodeDataPart state{"state", "{}"};
  EXPECT_THAT(AnswerNodeData({.id = 3}, parts).parts, ElementsAre(log, state));
  const auto one = AnswerNodeData({.id = 4, .parts = {"state"}}, parts);
  EXPECT_EQ(one.id, 4U);
  EXPECT_THAT(one.parts, ElementsAre(state));
  const auto wrong = AnswerNodeData({.id = 5, .parts = {"log", "keys"}}, parts);
  EXPECT_TRUE(wrong.parts.empty());
  EXPECT_EQ(wrong.error, "this agent has no part keys; there are: log, state");
}

}  // namespace
}  // namespace spoke::netagent
