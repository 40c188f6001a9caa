#include "admin-cli/dashboard/page_json.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;

v1::NodeInfo NodeOf(const std::string& name) {
  v1::NodeInfo node;
  node.set_name(name);
  node.set_mode("active");
  node.set_connected(true);
  node.set_attached(16);
  node.set_in_use(10);
  node.set_cooldown(2);
  return node;
}

TEST(PageJsonTest, FamiliesAreApartAndOnlyThoseThatThereAre) {
  v1::GetStatusResponse status;
  status.mutable_ipv4()->set_free(7);
  status.mutable_ipv4()->set_cooldown(2);
  status.mutable_ipv4()->set_released(3);
  status.add_problems("the store cannot be written");
  const Json fleet = FleetJson(status, {});
  EXPECT_EQ(fleet["ipv4"]["free"], 7);
  EXPECT_EQ(fleet["ipv4"]["cooldown"], 5);
  EXPECT_FALSE(fleet.contains("ipv6"));
  EXPECT_EQ(fleet["problems"], Json::array({"the store cannot be written"}));
}

TEST(PageJsonTest, ARecoveryIsToldUntilItIsOver) {
  v1::RecoveryInfo recovery;
  recovery.set_phase("open");
  EXPECT_EQ(FleetJson({}, recovery)["recovery"], "");
  recovery.set_phase("proving");
  recovery.set_reason("the store was restored");
  EXPECT_EQ(FleetJson({}, recovery)["recovery"], "proving");
  EXPECT_EQ(FleetJson({}, recovery)["recovery_reason"], "the store was restored");
}

TEST(PageJsonTest, PoolsHaveTheFamilyOfTheirBlock) {
  v1::ListPoolsResponse pools;
  pools.add_pools()->set_cidr("10.1.0.0/24");
  pools.add_pools()->set_cidr("fd00::/64");
  pools.mutable_pools(1)->set_usable(4611686018427486161);
  const Json list = PoolsJson(pools);
  EXPECT_EQ(list[0]["family"], 4);
  EXPECT_EQ(list[1]["family"], 6);
  EXPECT_EQ(list[1]["usable"], 4611686018427486161);
}

TEST(PageJsonTest, FitnessIsTheWorstThatHolds) {
  v1::NodeInfo node = NodeOf("node1");
  EXPECT_EQ(FitnessOf(node), 'o');
  node.add_findings()->set_check("mtu");
  EXPECT_EQ(FitnessOf(node), 'w');
  node.set_mode("draining");
  EXPECT_EQ(FitnessOf(node), 'd');
  node.set_shortage("pool default is empty");
  EXPECT_EQ(FitnessOf(node), 's');
  node.add_findings()->set_blocking(true);
  EXPECT_EQ(FitnessOf(node), 'b');
  node.set_connected(false);
  EXPECT_EQ(FitnessOf(node), 'a');
  node.set_mode("retired");
  EXPECT_EQ(FitnessOf(node), 'd');
}

TEST(PageJsonTest, NodesAreColumnsOfOneLength) {
  std::vector<v1::NodeInfo> nodes = {NodeOf("node1"), NodeOf("node2")};
  nodes[1].set_cooldown(20);  // The counts are of one moment, and yet nothing may be below zero.
  const Json json = NodesJson(nodes, {{"node2", 1999.6}}, {});
  EXPECT_EQ(json["names"], Json::array({"node1", "node2"}));
  EXPECT_EQ(json["free"], Json::array({4, 0}));
  EXPECT_EQ(json["held"], Json::array({16, 16}));
  EXPECT_EQ(json["internet"], Json::array({0, 2000}));
  EXPECT_EQ(json["fitness"], "oo");
  EXPECT_EQ(json["waiting"]["total"], 0);
  EXPECT_EQ(json["gates"], Json::array());
}

TEST(PageJsonTest, WhoLosesPacketsIsSeenUnlessSomethingIsWorse) {
  std::vector<v1::NodeInfo> nodes = {NodeOf("node1"), NodeOf("node2"), NodeOf("node3")};
  nodes[1].set_connected(false);
  EXPECT_EQ(NodesJson(nodes, {}, {"node1", "node2"})["fitness"], "lao");
}

TEST(PageJsonTest, NodesWherePodsWaitComeFirstAndTheLongestOfThem) {
  std::vector<v1::NodeInfo> nodes = {NodeOf("short"), NodeOf("soon"), NodeOf("late"),
                                     NodeOf("unfit"), NodeOf("warm")};
  nodes[0].set_shortage("has 3 of 16 addresses: pool default is empty");
  for (const size_t i : {size_t{1}, size_t{2}, size_t{4}}) {
    nodes[i].set_cloud_lane(i == 4 ? "warm-up" : "blocking");
    nodes[i].set_cloud_waits_for("limit PutNic");
    nodes[i].set_cloud_eta_unix_ms(kNow + static_cast<int64_t>(i));
    nodes[i].set_pods_waiting(i == 4 ? 0 : i);
  }
  v1::NodeFinding& finding = *nodes[3].add_findings();
  finding.set_blocking(true);
  finding.set_check("forwarding");
  finding.set_object("net.ipv4.ip_forward");
  finding.set_what("is 0");
  const Json waiting = NodesJson(nodes, {}, {})["waiting"];
  EXPECT_EQ(waiting["total"], 4);
  EXPECT_EQ(waiting["pods"], 3) << "one on soon, two on late";
  EXPECT_EQ(waiting["nodes"][0]["pods"], 2);
  std::vector<std::string> names;
  for (const Json& node : waiting["nodes"]) names.push_back(node["node"]);
  EXPECT_THAT(names, testing::ElementsAre("late", "soon", "short", "unfit"));
  EXPECT_EQ(waiting["nodes"][0]["why"], "waits for limit PutNic");
  EXPECT_EQ(waiting["nodes"][2]["why"], "has 3 of 16 addresses: pool default is empty");
  EXPECT_EQ(waiting["nodes"][3]["why"], "its check forwarding finds: net.ipv4.ip_forward is 0");
}

TEST(PageJsonTest, ListsOfWaitingNodesAreBoundedAndTheirNumberIsNot) {
  std::vector<v1::NodeInfo> nodes;
  for (int i = 0; i < 150; ++i) {
    nodes.push_back(NodeOf("node" + std::to_string(i)));
    nodes.back().set_shortage("pool default is empty");
  }
  const Json waiting = NodesJson(nodes, {}, {})["waiting"];
  EXPECT_EQ(waiting["total"], 150);
  EXPECT_EQ(waiting["nodes"].size(), 100);
}

TEST(PageJsonTest, GatesCountNodesByWhatTheyWaitForAndByLane) {
  std::vector<v1::NodeInfo> nodes;
  for (int64_t i = 0; i < 4; ++i) {
    v1::NodeInfo node = NodeOf("node" + std::to_string(i));
    node.set_cloud_lane(i == 3 ? "release" : "blocking");
    node.set_cloud_waits_for("limit PutNic");
    node.set_cloud_eta_unix_ms(i == 0 ? 0 : kNow + i);
    nodes.push_back(node);
  }
  const Json gates = NodesJson(nodes, {}, {})["gates"];
  ASSERT_EQ(gates.size(), 2);
  EXPECT_EQ(gates[0]["lane"], "release");
  EXPECT_EQ(gates[0]["nodes"], 1);
  EXPECT_EQ(gates[1]["lane"], "blocking");
  EXPECT_EQ(gates[1]["nodes"], 3);
  EXPECT_EQ(gates[1]["first_eta"], kNow + 1);
  EXPECT_EQ(gates[1]["last_eta"], kNow + 2);
}

TEST(PageJsonTest, EventsAreNewestFirstWithTheirFieldsSorted) {
  std::vector<v1::EventInfo> events(2);
  events[0].set_unix_ms(1);
  events[1].set_unix_ms(2);
  events[1].set_event("node_joined");
  (*events[1].mutable_fields())["node"] = "n";
  (*events[1].mutable_fields())["a"] = "b";
  const Json list = EventsJson(events);
  EXPECT_EQ(Line(list[0]),
            R"({"time":2,"level":"","event":"node_joined","fields":{"a":"b","node":"n"}})");
  EXPECT_EQ(list[1]["time"], 1);
}

TEST(PageJsonTest, BudgetsHaveTheirTeams) {
  v1::GetBudgetsResponse budgets;
  v1::BudgetInfo& budget = *budgets.add_budgets();
  budget.set_name("internet");
  budget.set_capacity(1000);
  budget.set_usage(990);
  budget.add_teams()->set_name("vision");
  const Json list = BudgetsJson(budgets);
  EXPECT_EQ(list[0]["destination"], "Internet");
  EXPECT_EQ(list[0]["state"], "saturated");
  EXPECT_EQ(list[0]["teams"][0]["name"], "vision");
}

TEST(PageJsonTest, TheRolloutCountsThoseWhoAreBehind) {
  v1::GetRolloutResponse rollout;
  rollout.set_version(9);
  rollout.set_nodes_current(3);
  rollout.add_behind();
  rollout.set_nodes_held(1);
  const Json json = RolloutJson(rollout);
  EXPECT_EQ(json["version"], 9);
  EXPECT_EQ(json["current"], 3);
  EXPECT_EQ(json["behind"], 1);
  EXPECT_EQ(json["held"], 1);
}

TEST(PageJsonTest, TrafficIsWholeBits) {
  v1::GetTrafficCourseResponse course;
  course.add_classes("hub");
  v1::TrafficLine& line = *course.add_lines();
  line.set_name("web");
  for (const double rate : {0.4, 1.6}) line.add_bits_per_second(rate);
  for (const int64_t time : {1, 2}) course.add_times_unix_ms(time);
  EXPECT_EQ(Line(TrafficJson(course)),
            R"({"classes":["hub"],"times":[1,2],"lines":[{"name":"web","rates":[0,2]}]})");
}

TEST(PageJsonTest, NamesThatAreHtmlStayTextsAndBrokenBytesAreReplaced) {
  const std::string hostile = "<img src=x onerror=alert(1)>\"'</script>";
  v1::EventInfo event;
  event.set_event("add_failed");
  (*event.mutable_fields())["pod"] = hostile;
  (*event.mutable_fields())["raw"] = "\xff";
  const std::string line = Line(EventsJson({event}));
  const Json read = Json::parse(line, nullptr, false);
  ASSERT_FALSE(read.is_discarded()) << line;
  EXPECT_EQ(read[0]["fields"]["pod"], hostile);
  EXPECT_EQ(read[0]["fields"]["raw"], "\xef\xbf\xbd");
}

TEST(PageJsonTest, TheSubjectIsAnAddressAPodOrANode) {
  EXPECT_EQ(SubjectOf(" 10.1.0.5 ")->address(), "10.1.0.5");
  EXPECT_EQ(SubjectOf("fd00::1")->address(), "fd00::1");
  EXPECT_EQ(SubjectOf("web/frontend-1")->pod(), "web/frontend-1");
  EXPECT_EQ(SubjectOf("node1")->node(), "node1");
  for (const std::string& wrong :
       {std::string(), std::string("  "), std::string("/"), std::string("a/"), std::string("/b"),
        std::string("a/b/c"), std::string(513, 'a')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(SubjectOf(wrong).status())) << wrong;
  }
}

TEST(PageJsonTest, AStoryHasTheStepsOfEachAdd) {
  v1::ExplainRequest request;
  request.set_pod("web/frontend-1");
  v1::ExplainResponse response;
  response.set_summary("pod web/frontend-1 has an address");
  v1::AddTrace& add = *response.add_adds();
  add.set_pod_namespace("web");
  add.set_pod_name("frontend-1");
  add.add_steps()->set_name("kernel");
  add.mutable_steps(0)->set_took_us(31439);
  const Json story = StoryJson(request, response);
  EXPECT_EQ(story["kind"], "pod");
  EXPECT_EQ(story["name"], "web/frontend-1");
  EXPECT_EQ(story["adds"][0]["pod"], "web/frontend-1");
  EXPECT_EQ(story["adds"][0]["steps"][0]["took_us"], 31439);
}

TEST(PageJsonTest, ErrorsKeepTheirKindsApart) {
  EXPECT_EQ(HttpStatusOf(absl::UnavailableError("x")), 503);
  EXPECT_EQ(HttpStatusOf(absl::NotFoundError("x")), 404);
  EXPECT_EQ(HttpStatusOf(absl::PermissionDeniedError("x")), 403);
  EXPECT_EQ(HttpStatusOf(absl::InternalError("x")), 502);
  const Json error = ErrorJson(absl::DeadlineExceededError("it did not answer"));
  EXPECT_EQ(error["error"], "deadline_exceeded");
  EXPECT_EQ(error["message"], "it did not answer");
}

}  // namespace
}  // namespace spoke::ctl
