#include "ipam-server/nodes/fleet_facts.h"

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "ipam-server/ledger/testing/hello_for_test.h"
#include "ipam-server/loop/testing/fleet_loop_for_test.h"
#include "ipam-server/policy/object_codec.h"
#include "ipam-server/policy/policy_file.h"

namespace spoke::ipam {
namespace {

class FleetFactsTest : public FleetLoopTest {
 protected:
  // Asks while the loop turns on another thread.
  FleetFacts Read() {
    std::thread turning([this] { loop_->Run(); });
    auto facts = ReadFleetFacts(*loop_, "zone", absl::Seconds(60));
    loop_->Stop();
    turning.join();
    EXPECT_TRUE(facts.ok()) << facts.status();
    return facts.ok() ? *std::move(facts) : FleetFacts();
  }
};

TEST_F(FleetFactsTest, AnAgentHasAddressesOnceItHasTakenThem) {
  loop_ = NewLoop();
  Greet(1);
  AnswerCloud();
  Step();
  loop_->PostFromAgent(DesiredAckEvent{1, SentTo<node_api::DesiredState>(1).back().version});
  Step();
  const FleetFacts facts = Read();
  ASSERT_EQ(facts.nodes.count("node1"), 1U);
  const FitnessFacts& node = facts.nodes.at("node1");
  EXPECT_TRUE(node.connected);
  EXPECT_TRUE(node.told);
  EXPECT_GT(node.usable, 0U);
  EXPECT_EQ(node.exhausted, "");
  EXPECT_EQ(facts.frozen, "");
}

TEST_F(FleetFactsTest, ThePolicySaysWhatBecomesOfPodsAndALabelSaysTheFaultDomain) {
  loop_ = NewLoop();
  node_api::Hello hello{.node = IdentityOf(kNode, "b", "/subscriptions/s/vm/1")};
  hello.node.labels["zone"] = "zone-2";
  loop_->PostHello(1, hello);
  Step();
  const ParsedFiles files = ParsePolicyFiles(std::vector<PolicyFileText>{
      {"f",
       "apiVersion: spoke/v1\nkind: NodeRemedy\nmetadata: {name: nodes}\n"
       "spec: {unfit: {effect: NoExecute, evictAfter: 10m}}\n"}});
  absl::Status applied = absl::UnknownError("not applied");
  loop_->PostChange(
      [&](ServerState& state, RawRecords& raw) -> absl::StatusOr<Effects> {
        const auto plan = PlanApply(state.objects, files, {}, clock_.Now());
        if (!plan.ok()) return plan.status();
        state.objects = plan->next;
        for (const PolicyWrite& write : EncodePlan(*plan)) raw[write.key] = write.value;
        return Effects();
      },
      [&](const absl::Status& status) { applied = status; });
  Step();
  ASSERT_TRUE(applied.ok()) << applied;
  const FleetFacts facts = Read();
  EXPECT_EQ(facts.remedies.unfit,
            (Remedy{.effect = TaintEffect::kNoExecute, .evict_after = absl::Minutes(10)}));
  EXPECT_EQ(facts.remedies.maintenance, Remedy());
  EXPECT_EQ(facts.nodes.at("node1").domain, "zone-2");
}

TEST_F(FleetFactsTest, WhatBlocksANodeIsKnownUntilItIsOverOrTheAgentGoes) {
  loop_ = NewLoop();
  Greet(1);
  AnswerCloud();
  std::string blocked;
  std::string warned;
  std::vector<std::string> problems;
  const auto look = [&] {
    loop_->PostQuery([&](const FleetView& view) {
      problems = view.ProblemTexts();
      const auto session = view.sessions.find(kNode);
      const FitnessFacts facts =
          FactsOf(view.fleet, *view.fleet.ledger.Find(kNode),
                  session == view.sessions.end() ? nullptr : &session->second, view.now);
      blocked = facts.blocked;
      warned = facts.warned;
    });
    Step();
  };
  const auto say = [&](bool blocking) {
    loop_->PostFromAgent(NodeFindingsEvent{1,
                                           {{{.check = "forwarding",
                                              .blocking = blocking,
                                              .object = "net.ipv4.ip_forward",
                                              .what = "is 0",
                                              .remedy = "sysctl -w net.ipv4.ip_forward=1"}}}});
    look();
  };
  say(/*blocking=*/true);
  EXPECT_EQ(blocked,
            "forwarding: net.ipv4.ip_forward is 0. Remedy: sysctl -w net.ipv4.ip_forward=1");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0], testing::HasSubstr("1 node has what keeps pods from working, node1"));
  say(/*blocking=*/false);
  EXPECT_EQ(blocked, "") << "a warning keeps no pods away";
  EXPECT_EQ(warned, "") << "it may pass";
  clock_.Advance(kWarnedFor);
  look();
  EXPECT_EQ(warned,
            "forwarding: net.ipv4.ip_forward is 0. Remedy: sysctl -w net.ipv4.ip_forward=1");
  EXPECT_TRUE(problems.empty());
  say(/*blocking=*/true);
  loop_->PostClosed(1);
  look();
  EXPECT_EQ(blocked, "");
  EXPECT_TRUE(problems.empty()) << "it is away, which is said elsewhere";
}

TEST_F(FleetFactsTest, AnAgentThatIsAwayHasNotBeenTold) {
  loop_ = NewLoop();
  Greet(1);
  AnswerCloud();
  loop_->PostClosed(1);
  Step();
  const FleetFacts facts = Read();
  ASSERT_EQ(facts.nodes.count("node1"), 1U);
  EXPECT_FALSE(facts.nodes.at("node1").connected);
  EXPECT_FALSE(facts.nodes.at("node1").told);
}

TEST_F(FleetFactsTest, AProblemOfOthersIsListedUntilItIsOver) {
  loop_ = NewLoop();
  std::vector<std::string> problems;
  const auto look = [&] {
    loop_->PostQuery([&](const FleetView& view) { problems = view.ProblemTexts(); });
    Step();
  };
  loop_->PostProblem("kubernetes", "it is away");
  loop_->PostProblem("kubernetes", "it is busy");
  look();
  EXPECT_EQ(problems, std::vector<std::string>{"it is busy"});
  loop_->PostProblem("kubernetes", "");
  look();
  EXPECT_TRUE(problems.empty());
}

// A node that uses all that it has, of a pool of its own.
class FactsOfTest : public testing::Test {
 protected:
  explicit FactsOfTest(const std::string& cidr = "10.1.0.0/29")
      : fleet_({{.name = "a",
                 .cidr = ip::Prefix::Parse(cidr).value(),
                 .reserve_first = 4,
                 .reserve_last = 0}},
               {.target = {.min = 1, .batch = 1, .spare = 0.5, .max = 8}}) {
    NodeRecord record{.key = {"node1", "vm-1"}};
    record_ = fleet_.ledger.Upsert(std::move(record)).value();
  }
  Configuration& Take(Use use) {
    Configuration* taken = fleet_.ledger.Take(*record_, 0, now_);
    fleet_.ledger.SetState(*taken, AddressState::kAttached, now_);
    Slot slot{.use = use, .since = now_};
    if (use == Use::kInUse) {
      slot.lessee = std::make_shared<const node_api::Lessee>(node_api::Lessee{.container_id = "c"});
    }
    fleet_.ledger.SetSlot(*taken, taken->range.base(), std::move(slot));
    return *taken;
  }
  FitnessFacts Facts() { return FactsOf(fleet_, *record_, nullptr, absl::UnixEpoch()); }

  Fleet fleet_;
  NodeRecord* record_ = nullptr;
  const absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

TEST_F(FactsOfTest, ANodeIsExhaustedWhenItsPoolsAreAndAllIsInUse) {
  EXPECT_EQ(Facts().exhausted, "") << "the pool has some";
  Take(Use::kInUse);
  Take(Use::kInUse);
  EXPECT_EQ(Facts().exhausted, "");
  EXPECT_EQ(Facts().usable, 2U);
  Take(Use::kInUse);
  EXPECT_EQ(Facts().exhausted, "") << "one is left";
  Take(Use::kInUse);
  EXPECT_NE(Facts().exhausted, "");
}

TEST_F(FactsOfTest, AnAddressThatIsAvailableIsRoom) {
  for (int i = 0; i < 3; ++i) Take(Use::kInUse);
  Take(Use::kAvailable);
  EXPECT_EQ(Facts().exhausted, "");
}

TEST_F(FactsOfTest, ANodeThatDrainsLacksNothing) {
  for (int i = 0; i < 4; ++i) Take(Use::kInUse);
  record_->mode = NodeMode::kDraining;
  EXPECT_TRUE(Facts().leaving);
  EXPECT_EQ(Facts().exhausted, "");
}

TEST(AddSuspicions, GoToTheNodesThatAreThere) {
  FleetFacts facts;
  facts.nodes["node1"] = {.connected = true};
  facts.nodes["node2"] = {.connected = true, .told = true, .usable = 8};
  Reachability reachability;
  reachability.nodes = {{.node = {.name = "gone"}, .suspicion = "it loses"},
                        {.node = {.name = "node1"}},
                        {.node = {.name = "node2"}, .suspicion = "18 of 90 were lost"}};
  reachability.at = absl::FromUnixSeconds(1000);
  reachability.window = absl::Minutes(3);
  const ReachabilitySettings settings;
  AddSuspicions(&reachability, settings, reachability.at, facts);
  EXPECT_EQ(facts.nodes.size(), 2U);
  EXPECT_EQ(facts.nodes["node1"].loses, "");
  EXPECT_EQ(facts.nodes["node2"].loses, "18 of 90 were lost");
  EXPECT_EQ(Judge(&facts.nodes["node2"]).reason, "PacketsLost");
  EXPECT_EQ(MessageOf(&facts.nodes["node2"]), "18 of 90 were lost.");
  EXPECT_FALSE(facts.nodes["node1"].reach_unknown);
}

TEST(AddSuspicions, WhatIsOldOrOfTooShortATimeIsNotKnown) {
  const ReachabilitySettings settings;
  Reachability judged{.at = absl::FromUnixSeconds(1000), .window = absl::Seconds(165)};
  judged.nodes = {{.node = {.name = "node1"}, .suspicion = "it loses"}};
  const auto add = [&](const Reachability* reachability, absl::Duration age) {
    FleetFacts facts;
    facts.nodes["node1"] = {.connected = true};
    AddSuspicions(reachability, settings, judged.at + age, facts);
    return facts.nodes["node1"];
  };
  EXPECT_FALSE(add(&judged, absl::Seconds(70)).reach_unknown);
  EXPECT_EQ(add(&judged, absl::Seconds(70)).loses, "it loses");
  EXPECT_TRUE(add(&judged, absl::Seconds(90)).reach_unknown) << "rounds fail";
  EXPECT_EQ(add(&judged, absl::Seconds(90)).loses, "");
  EXPECT_TRUE(add(nullptr, absl::ZeroDuration()).reach_unknown);
  judged.window = absl::Seconds(60);
  EXPECT_TRUE(add(&judged, absl::ZeroDuration()).reach_unknown) << "others may still be unheard";
  EXPECT_EQ(add(&judged, absl::ZeroDuration()).loses, "it loses") << "enough for an accusation";
  judged.window = settings.window;
  judged.unjudged = "too much is lost";
  EXPECT_TRUE(add(&judged, absl::ZeroDuration()).reach_unknown);
}

}  // namespace
}  // namespace spoke::ipam
