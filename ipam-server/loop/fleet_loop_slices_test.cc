// A turn takes a part of what there is to do, whoever wants it, and the rest is done in the next
// ones.
#include <algorithm>

#include "absl/synchronization/notification.h"
#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/testing/hello_for_test.h"
#include "ipam-server/loop/background.h"
#include "ipam-server/loop/testing/fleet_loop_for_test.h"
#include "lib/telemetry/metrics.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kNodes = 1000;

class SlicesTest : public FleetLoopTest {
 protected:
  SlicesTest() {
    settings_.pools = {{.name = "default", .cidr = ip::Prefix::Parse("10.0.0.0/16").value()}};
    settings_.fleet.breaker.share = 1;
    loop_ = NewLoop();
  }
  // Makes the loop anew, so that it publishes to `metrics`.
  void NewLoopWith(ServerMetrics& metrics) {
    loop_ = std::make_unique<FleetLoop>(
        settings_, LoadState(store_, settings_, clock_.Now()).value(),
        FleetLoop::Edges{store_, agents_, cloud_, NewMailbox(), clock_, log_, &metrics});
  }
  static NodeKey KeyOf(int node) { return {fmt::format("node{:04}", node), "vm"}; }
  static SessionId SessionOf(int node) { return static_cast<SessionId>(node) + 1; }

  // Turns until nobody waits; the most records that one of them wrote.
  int64_t TurnsUntilDone(int& turns) {
    int64_t most = 0;
    turns = 0;
    bool more = true;
    while (more && turns < 1000) {
      const int64_t before = store_.Stats().records_written;
      Step();
      ++turns;
      most = std::max(most, store_.Stats().records_written - before);
      asked_ = std::max(asked_, cloud_.waiting().size());
      more = !cloud_.waiting().empty() ||
             loop_->mailbox().waiting_agents() + loop_->mailbox().waiting_hellos() > 0;
      cloud_.Answer();
    }
    return most;
  }
  void GreetAll() {
    for (int node = 0; node < kNodes; ++node) {
      loop_->PostHello(SessionOf(node), {.node = IdentityOf(KeyOf(node))});
    }
    int turns = 0;
    TurnsUntilDone(turns);
  }
  void ReportAll() {
    for (int node = 0; node < kNodes; ++node) {
      node_api::AssignmentReport report{.sequence = 1};
      const std::vector<node_api::DesiredState> told =
          SentTo<node_api::DesiredState>(SessionOf(node));
      for (const node_api::DesiredConfiguration& added : told.back().added) {
        report.in_use.push_back({.address = added.range.base(),
                                 .generation = 1,
                                 .since = clock_.Now(),
                                 .lessee = {.container_id = "c", .ifname = "eth0"}});
      }
      Report(SessionOf(node), std::move(report));
    }
  }

  size_t asked_ = 0;  // The most requests to the cloud that one turn made.
};

TEST_F(SlicesTest, ManyAgentsAtOnceAreDealtWithInTurnsOfBoundedWork) {
  for (int node = 0; node < kNodes; ++node) {
    loop_->PostHello(SessionOf(node), {.node = IdentityOf(KeyOf(node))});
  }
  int turns = 0;
  EXPECT_LE(TurnsUntilDone(turns), 600);
  EXPECT_GT(turns, 5);
  EXPECT_LE(asked_, 256U);
  ReportAll();
  EXPECT_LE(TurnsUntilDone(turns), 600);
  EXPECT_GT(turns, 1);
  for (int node = 0; node < kNodes; ++node) {
    ASSERT_THAT(SentTo<node_api::ReportAck>(SessionOf(node)),
                ElementsAre(node_api::ReportAck{.sequence = 1}))
        << node;
  }
}

TEST_F(SlicesTest, OperatorsAreAnsweredInTheFirstTurnAndSoAreAgentsWhenOperatorsAreMany) {
  GreetAll();
  ReportAll();
  bool changed = false;
  bool seen = false;
  loop_->PostChange([](ServerState&, RawRecords&) { return absl::StatusOr<Effects>(Effects()); },
                    [&](const absl::Status& status) { changed = status.ok(); });
  loop_->PostQuery([&](const FleetView&) { seen = true; });
  Step();
  EXPECT_TRUE(changed);
  EXPECT_TRUE(seen);
  EXPECT_GT(loop_->mailbox().waiting_agents(), 0U);

  // Each of them takes longer than operators have in one turn.
  int changes = 0;
  int queries = 0;
  for (int i = 0; i < 5; ++i) {
    loop_->PostChange(
        [&](ServerState&, RawRecords&) {
          clock_.Advance(absl::Milliseconds(20));
          return absl::StatusOr<Effects>(Effects());
        },
        [&](const absl::Status&) { ++changes; });
    loop_->PostQuery([&](const FleetView&) {
      clock_.Advance(absl::Milliseconds(20));
      ++queries;
    });
  }
  const size_t waited = loop_->mailbox().waiting_agents();
  Step();
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(queries, 1);
  EXPECT_LT(loop_->mailbox().waiting_agents(), waited);
  for (int i = 0; i < 4; ++i) Step();
  EXPECT_EQ(changes, 5);
  EXPECT_EQ(queries, 5);
}

// As a pool that comes or goes does.
TEST_F(SlicesTest, AnOperatorsChangeThatConcernsAllIsToldToSomeInEachTurn) {
  GreetAll();
  agents_.sent.clear();
  absl::Status changed = absl::UnknownError("not yet");
  loop_->PostChange(
      [](ServerState& state, RawRecords&) -> absl::StatusOr<Effects> {
        Effects effects;
        for (const auto& [key, record] : state.fleet.ledger.nodes()) effects.desired.insert(key);
        return effects;
      },
      [&](const absl::Status& status) { changed = status; });
  size_t most = 0;
  const auto told = [&] {
    size_t count = 0;
    for (int node = 0; node < kNodes; ++node) {
      count += SentTo<node_api::DesiredState>(SessionOf(node)).empty() ? 0 : 1;
    }
    return count;
  };
  int turns = 0;
  for (size_t before = 0; before < kNodes && turns < 100; ++turns) {
    Step();
    const size_t now = told();
    most = std::max(most, now - before);
    before = now;
  }
  EXPECT_TRUE(changed.ok()) << changed;
  EXPECT_EQ(told(), size_t{kNodes});
  EXPECT_LE(most, 100U);
  EXPECT_LT(turns, 30);
}

TEST_F(SlicesTest, ACloudThatCannotBeListedTwiceInARowIsAProblemUntilItCan) {
  const auto problems = [&] {
    std::vector<std::string> texts;
    loop_->PostQuery([&](const FleetView& view) { texts = view.ProblemTexts(); });
    Step();
    return texts;
  };
  const auto list = [&] {
    loop_->PostListing({}, [](const std::string&) { return false; });
    Step();
  };
  loop_->PostListingFailed(absl::PermissionDeniedError("403: no action read"));
  EXPECT_THAT(problems(), IsEmpty()) << "it may be for a moment";
  list();
  loop_->PostListingFailed(absl::PermissionDeniedError("403: no action read"));
  EXPECT_THAT(problems(), IsEmpty()) << "not in a row";
  loop_->PostListingFailed(absl::PermissionDeniedError("403: no action read"));
  EXPECT_THAT(problems(), ElementsAre(testing::HasSubstr("403: no action read")));
  list();
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(SlicesTest, AListingIsComparedInPartsAndJudgedOnceAsAWhole) {
  GreetAll();
  loop_->PostFromAgent(ClosedEvent{SessionOf(0)});
  std::vector<NicAddresses> nics;
  loop_->PostQuery([&](const FleetView& view) { nics = AllNics(view.fleet); });
  Step();
  ASSERT_EQ(nics.size(), static_cast<size_t>(kNodes));
  nics.erase(nics.begin());                    // The first node is no more,
  nics[kNodes / 2].configurations.pop_back();  // and another has lost an address.
  const NodeKey robbed = nics[kNodes / 2].node;
  for (int i = 0; i < 2; ++i) {
    loop_->PostListing(nics, [](const std::string&) { return true; });
    for (int turn = 0; turn < 3; ++turn) {
      Step();
      EXPECT_THAT(gone_, IsEmpty()) << "listing " << i << ", turn " << turn;
    }
    for (int turn = 0; turn < 20; ++turn) Step();
  }
  EXPECT_THAT(gone_, ElementsAre(KeyOf(0)));
  const std::vector<NicRequest> asked = cloud_.waiting();
  EXPECT_TRUE(std::any_of(asked.begin(), asked.end(),
                          [&](const NicRequest& nic) { return nic.node == robbed; }));
}

TEST_F(SlicesTest, MetricsCountEveryNodeThoughSomeAtATime) {
  telemetry::Metrics metrics(ServerMetricSpecs());
  ServerMetrics server_metrics(metrics, "1.0.0");
  NewLoopWith(server_metrics);
  GreetAll();
  clock_.Advance(absl::Seconds(11));
  Step();
  EXPECT_THAT(metrics.Render(),
              testing::Not(HasSubstr("spoke_ipam_nodes{mode=\"active\"} 1000\n")));
  for (int i = 0; i < 10; ++i) Step();
  EXPECT_THAT(metrics.Render(), HasSubstr("spoke_ipam_nodes{mode=\"active\"} 1000\n"));
  EXPECT_THAT(metrics.Render(), HasSubstr("spoke_ipam_connected_nodes 1000\n"));
  EXPECT_THAT(metrics.Render(),
              HasSubstr("spoke_ipam_cloud_calls_total{call=\"apply\",result=\"ok\"} 1000\n"));
}

TEST_F(SlicesTest, MetricsHaveTheNodesThatACheckWarnsOnAndForHowLong) {
  telemetry::Metrics metrics(ServerMetricSpecs());
  ServerMetrics server_metrics(metrics, "1.0.0");
  NewLoopWith(server_metrics);
  GreetAll();
  const auto warn = [&](int node, std::vector<node_api::NodeFinding> findings) {
    loop_->PostFromAgent(NodeFindingsEvent{SessionOf(node), {std::move(findings)}});
    Step();
  };
  const auto wait = [&](absl::Duration time) {
    clock_.Advance(time);
    for (int i = 0; i < 10; ++i) Step();
  };
  const node_api::NodeFinding silent{.check = "dns-node", .object = "10.0.0.1"};
  warn(0, {silent});
  wait(absl::Minutes(10));
  warn(0, {{.check = "mtu", .object = "eth0"}, silent});
  warn(1, {silent});
  wait(absl::Minutes(10));
  EXPECT_THAT(metrics.Render(),
              AllOf(HasSubstr("spoke_ipam_warned_nodes{check=\"dns-node\"} 2\n"),
                    HasSubstr("spoke_ipam_longest_warning_seconds{check=\"dns-node\"} 1200\n"),
                    HasSubstr("spoke_ipam_warned_nodes{check=\"mtu\"} 1\n"),
                    HasSubstr("spoke_ipam_longest_warning_seconds{check=\"mtu\"} 600\n")));
  warn(0, {});
  loop_->PostFromAgent(ClosedEvent{SessionOf(1)});
  wait(absl::Minutes(1));
  EXPECT_THAT(metrics.Render(),
              AllOf(HasSubstr("spoke_ipam_warned_nodes{check=\"dns-node\"} 0\n"),
                    HasSubstr("spoke_ipam_longest_warning_seconds{check=\"dns-node\"} 0\n")));
}

// A store that can be read when the test allows it.
class SlowlyRead final : public Store {
 public:
  explicit SlowlyRead(Store& store) : store_(store) {}

  void Hold() { held_ = std::make_shared<absl::Notification>(); }
  void LetGo() { held_->Notify(); }

  using Store::List;
  absl::Status List(const ListOptions& options, const Visit& visit) override {
    if (held_ != nullptr) held_->WaitForNotification();
    return store_.List(options, visit);
  }
  absl::StatusOr<std::optional<StoredRecord>> Get(std::string_view key) override {
    return store_.Get(key);
  }
  absl::StatusOr<std::vector<int64_t>> Commit(std::span<const CompareAndPut> batch) override {
    return store_.Commit(batch);
  }
  absl::StatusOr<BackupInfo> Backup(const std::string& path) override {
    return store_.Backup(path);
  }
  absl::Status CheckIntegrity() override { return store_.CheckIntegrity(); }
  StoreStats Stats() const override { return store_.Stats(); }
  std::string Describe() const override { return store_.Describe(); }

 private:
  Store& store_;
  std::shared_ptr<absl::Notification> held_;
};

TEST_F(FleetLoopTest, WhileTheStoreIsReadAnewTheLoopTurnsAndShowsNothingThatIsNotStored) {
  SlowlyRead slow(store_);
  Background background;
  loop_ = std::make_unique<FleetLoop>(settings_, LoadState(slow, settings_, clock_.Now()).value(),
                                      FleetLoop::Edges{slow, agents_, cloud_, NewMailbox(), clock_,
                                                       log_, nullptr, nullptr, &background});
  Greet(1);
  AnswerCloud();
  slow.Hold();
  store_.FailNextCommits(1, absl::ResourceExhaustedError("disk full"));
  Report(1, AssignOne());
  Step();
  EXPECT_EQ(agents_.closed[1].code(), absl::StatusCode::kUnavailable);
  uint64_t in_use = 99;
  absl::Status refused;
  loop_->PostQuery([&](const FleetView& view) {
    in_use = CountAddresses(*view.fleet.ledger.Find(kNode)).in_use;
  });
  loop_->PostChange([](ServerState&, RawRecords&) { return absl::StatusOr<Effects>(Effects()); },
                    [&](const absl::Status& status) { refused = status; });
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(absl::Seconds(1));
    Step();
  }
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << "the loop turned";
  EXPECT_EQ(in_use, 99U) << "memory has an assignment that was never stored";
  slow.LetGo();
  while (in_use == 99) Step();
  EXPECT_EQ(in_use, 0U);
  clock_.Advance(absl::Minutes(1));
  Step();
  Greet(2, AssignOne().in_use);
  EXPECT_FALSE(SentTo<node_api::Welcome>(2).empty());
  EXPECT_EQ(CountAddresses(Stored()).in_use, 1U);
}

TEST_F(FleetLoopTest, AStoreThatCannotBeReadEitherIsReadAgainUntilItCan) {
  Greet(1);
  AnswerCloud();
  Background background;
  loop_ =
      std::make_unique<FleetLoop>(settings_, LoadState(store_, settings_, clock_.Now()).value(),
                                  FleetLoop::Edges{store_, agents_, cloud_, NewMailbox(), clock_,
                                                   log_, nullptr, nullptr, &background});
  Greet(2);
  store_.FailNextCommits(1, absl::ResourceExhaustedError("disk full"));
  store_.FailReads(absl::UnavailableError("disk gone"));
  Report(2, AssignOne());
  std::vector<std::string> problems;
  const auto look = [&](std::string_view part) {
    const auto named = [&] {
      return std::any_of(problems.begin(), problems.end(), [&](const std::string& problem) {
        return problem.find(part) != std::string::npos;
      });
    };
    for (int i = 0; i < 100000 && !named(); ++i) {
      loop_->PostQuery([&](const FleetView& view) { problems = view.ProblemTexts(); });
      Step();
    }
    return named();
  };
  EXPECT_TRUE(look("may never have been stored"));
  store_.FailReads(absl::OkStatus());
  for (int i = 0; i < 100000 && SentTo<node_api::Welcome>(3).empty(); ++i) {
    clock_.Advance(absl::Milliseconds(100));
    if (i == 0) loop_->PostHello(3, {.node = IdentityOf(kNode), .in_use = AssignOne().in_use});
    Step();
  }
  EXPECT_FALSE(SentTo<node_api::Welcome>(3).empty());
  EXPECT_EQ(CountAddresses(Stored()).in_use, 1U);
}

// Each look at a NIC is calls that all nodes share.
TEST_F(SlicesTest, AnAgentThatSaysItBootsAllTheTimeLeavesTheCloudToOthers) {
  settings_.fleet.cloud_chooses = true;
  cloud_.ChooseFrom(settings_.pools[0].cidr);
  loop_ = NewLoop();
  const NodeKey hostile = KeyOf(1);
  const auto greet = [&](SessionId session, const NodeKey& key, int boot) {
    loop_->PostHello(session, {.node = IdentityOf(key, fmt::format("boot-{}", boot))});
    Step();
  };
  greet(1, hostile, 0);
  cloud_.Answer();
  Step();
  size_t asked = 0;
  constexpr int kSeconds = 60;
  for (int i = 1; i <= 10 * kSeconds; ++i) {
    clock_.Advance(absl::Milliseconds(100));
    greet(static_cast<SessionId>(i + 1), hostile, i);
    asked += cloud_.waiting().size();
    cloud_.Answer();
  }
  EXPECT_GE(asked, static_cast<size_t>(FleetLoop::kCloudRequests.burst));
  EXPECT_LE(asked, static_cast<size_t>(FleetLoop::kCloudRequests.burst) + kSeconds / 2 + 1);
  greet(10'000, KeyOf(2), 0);
  EXPECT_EQ(cloud_.waiting().size(), 1U) << "another is asked for at once";
}

// A commit to three machines costs all of them much, and what agents say rarely hurries.
TEST_F(FleetLoopTest, WhatAgentsSayGathersAfterACommit) {
  settings_.gather = absl::Milliseconds(10);
  loop_ = NewLoop();
  Greet(1);
  AnswerCloud();
  clock_.Advance(absl::Milliseconds(10));
  Step();
  ASSERT_EQ(CountAddresses(Stored()).available, 2U) << "the cloud's answer gathers too";
  Report(1, AssignOne());
  Step();
  EXPECT_TRUE(SentTo<node_api::ReportAck>(1).empty());
  clock_.Advance(absl::Milliseconds(9));
  Step();
  EXPECT_TRUE(SentTo<node_api::ReportAck>(1).empty());
  clock_.Advance(absl::Milliseconds(1));
  Step();
  EXPECT_EQ(SentTo<node_api::ReportAck>(1).size(), 1U);
}

TEST_F(FleetLoopTest, OperatorsDoNotWaitForWhatGathers) {
  settings_.gather = absl::Milliseconds(10);
  loop_ = NewLoop();
  Greet(1);
  bool asked = false;
  absl::Status changed = absl::UnknownError("not yet");
  loop_->PostQuery([&](const FleetView&) { asked = true; });
  loop_->PostChange([](ServerState&, RawRecords&) { return Effects{}; },
                    [&](const absl::Status& status) { changed = status; });
  Step();
  EXPECT_TRUE(asked);
  EXPECT_TRUE(changed.ok()) << changed;
}

// Each of an operator's changes is a commit of its own.
TEST_F(FleetLoopTest, OperatorsWhoseChangesDoNotEndHoldUpNoAgent) {
  settings_.gather = absl::Milliseconds(10);
  loop_ = NewLoop();
  Greet(1);
  Report(1, {.sequence = 1});
  for (int i = 0; i < 4; ++i) {
    clock_.Advance(absl::Milliseconds(4));
    absl::Status changed = absl::UnknownError("not yet");
    const int64_t before = store_.Stats().records_written;
    loop_->PostChange(
        [](ServerState&, RawRecords&) {
          Effects effects;
          effects.changed.insert(kNode);
          return effects;
        },
        [&](const absl::Status& status) { changed = status; });
    Step();
    ASSERT_TRUE(changed.ok()) << changed;
    ASSERT_GT(store_.Stats().records_written, before);
  }
  EXPECT_EQ(SentTo<node_api::ReportAck>(1).size(), 1U);
}

TEST_F(FleetLoopTest, EnoughForACommitDoesNotWaitForMore) {
  settings_.gather = absl::Milliseconds(10);
  loop_ = NewLoop();
  Greet(1);
  for (int i = 0; i < 64; ++i) Report(1, {.sequence = 1});
  Step();
  EXPECT_FALSE(SentTo<node_api::ReportAck>(1).empty());
}

// A clock that is set back must not hold up anything.
TEST_F(FleetLoopTest, NothingGathersByAClockThatWasSetBack) {
  settings_.gather = absl::Milliseconds(10);
  loop_ = NewLoop();
  Greet(1);
  clock_.Advance(-absl::Hours(1));
  Report(1, AssignOne());
  Step();
  EXPECT_FALSE(SentTo<node_api::ReportAck>(1).empty());
}

}  // namespace
}  // namespace spoke::ipam
