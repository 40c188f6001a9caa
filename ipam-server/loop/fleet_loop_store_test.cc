// What happens when nothing can be stored, or what is stored cannot be read.
#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/ledger/decisions/reclaim.h"
#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/loop/testing/fleet_loop_for_test.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(FleetLoopTest, AnOperatorIsToldThatNothingWasChangedOnlyWhereThatIsKnown) {
  const auto refuse = [&](const absl::Status& why, int records) {
    store_.FailCommits(why);
    absl::Status refused;
    loop_->PostChange(
        [records](ServerState&, RawRecords& raw) -> absl::StatusOr<Effects> {
          for (int i = 0; i < records; ++i) raw.emplace(fmt::format("test/{}", i), "1");
          return Effects();
        },
        [&](const absl::Status& status) { refused = status; });
    Step();
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
    return std::string(refused.message());
  };
  EXPECT_THAT(refuse(absl::ResourceExhaustedError("disk full"), 1),
              testing::HasSubstr("nothing was changed: disk full"));
  loop_ = NewLoop();
  EXPECT_THAT(refuse(absl::UnavailableError("no answer"), 1),
              testing::HasSubstr("it is not known whether this was"));
  loop_ = NewLoop();
  EXPECT_THAT(refuse(absl::ResourceExhaustedError("disk full"), 150),
              testing::HasSubstr("it is not known whether this was"))
      << "a part of so many may be stored";
}

// So many are decoded on several threads.
TEST_F(FleetLoopTest, AStoreOfManyNodesIsReadWholeOrNamesWhatIsDamaged) {
  constexpr int kStored = 1500;
  std::vector<CompareAndPut> batch;
  for (int i = 0; i < kStored; ++i) {
    const NodeRecord record{.key = {fmt::format("n{}", i), fmt::format("vm-{}", i)}};
    batch.push_back({.key = StoreKeyOf(record.key), .value = EncodeNode(record)});
  }
  ASSERT_TRUE(store_.Commit(batch).ok());
  const auto loaded = LoadState(store_, settings_, clock_.Now());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->state.fleet.ledger.nodes().size(), kStored);

  const std::string damaged = StoreKeyOf(NodeKey{"n777", "vm-777"});
  const int64_t revision = store_.Get(damaged)->value().revision;
  batch = {{.key = damaged, .value = "no record", .expected = revision}};
  ASSERT_TRUE(store_.Commit(batch).ok());
  const auto refused = LoadState(store_, settings_, clock_.Now());
  EXPECT_THAT(refused.status().message(), testing::HasSubstr(damaged));
}

TEST_F(FleetLoopTest, WhatCannotBeStoredIsNotAcknowledgedAndLeavesNoTrace) {
  Greet(1);
  AnswerCloud();
  store_.FailCommits(absl::ResourceExhaustedError("disk full"));
  Report(1, AssignOne());
  std::vector<std::string> problems;
  uint64_t in_use = 99;
  loop_->PostQuery([&](const FleetView& view) {
    problems = view.ProblemTexts();
    in_use = CountAddresses(*view.fleet.ledger.Find(kNode)).in_use;
  });
  Step();
  EXPECT_TRUE(SentTo<node_api::ReportAck>(1).empty());
  EXPECT_EQ(agents_.closed[1].code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(in_use, 0U);
  EXPECT_THAT(problems, ElementsAre("nothing can be stored: disk full"));

  // Operators are refused with the reason, agents wait, and the store is tried again and again.
  absl::Status refused;
  loop_->PostChange([](ServerState&, RawRecords&) -> absl::StatusOr<Effects> { return Effects(); },
                    [&](const absl::Status& status) { refused = status; });
  loop_->PostHello(2, {.node = IdentityOf(kNode), .in_use = AssignOne().in_use});
  Step();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(SentTo<node_api::Welcome>(2).empty());

  store_.FailCommits(absl::OkStatus());
  clock_.Advance(absl::Seconds(2));
  Step();
  Step();
  EXPECT_EQ(SentTo<node_api::Welcome>(2).size(), 1U);
  EXPECT_EQ(CountAddresses(Stored()).in_use, 1U);
  EXPECT_EQ(log_.Count("problem_over"), 1);
}

// A nearly full disk takes an empty record, and not what agents have to say.
TEST_F(FleetLoopTest, ADiskWithRoomForLittleDoesNotLetAgentsInToThrowThemOutAgain) {
  Greet(1);
  AnswerCloud();
  store_.LimitCommits(100);
  Report(1, AssignOne());
  Step();
  ASSERT_TRUE(agents_.closed.contains(1));
  int welcomed = 0;
  for (SessionId session = 2; session < 62; ++session) {
    loop_->PostHello(session, {.node = IdentityOf(kNode), .in_use = AssignOne().in_use});
    clock_.Advance(absl::Seconds(1));
    Step();
    welcomed += SentTo<node_api::Welcome>(session).empty() ? 0 : 1;
  }
  EXPECT_EQ(welcomed, 0);
  EXPECT_EQ(agents_.closed.size(), 1U) << "nobody else is thrown out";
  store_.LimitCommits(0);
  clock_.Advance(absl::Seconds(30));
  for (int turn = 0; turn < 3; ++turn) Step();  // One turn is not enough for all.
  EXPECT_FALSE(SentTo<node_api::Welcome>(61).empty());
  bool probes_left = false;
  ASSERT_TRUE(
      store_.List("probe", [&](std::string_view, const StoredRecord&) { probes_left = true; })
          .ok());
  EXPECT_FALSE(probes_left);
}

TEST_F(FleetLoopTest, ACloudAnswerThatCannotBeStoredIsAskedForAgain) {
  Greet(1);
  store_.FailCommits(absl::ResourceExhaustedError("disk full"));
  AnswerCloud();
  EXPECT_EQ(CountAddresses(Stored()).attaching, 2U);
  store_.FailCommits(absl::OkStatus());
  clock_.Advance(absl::Seconds(6));
  Step();
  Step();
  ASSERT_EQ(cloud_.waiting().size(), 1U);
  AnswerCloud();
  EXPECT_EQ(CountAddresses(Stored()).available, 2U);
}

TEST_F(FleetLoopTest, WhatMayNeverHaveBeenStoredIsToldToNobody) {
  Greet(1);
  AnswerCloud();
  const size_t told = SentTo<BundleUpdate>(1).size();
  store_.FailCommits(absl::UnavailableError("no answer"));
  store_.FailReads(absl::UnavailableError("no answer"));
  PostTeam("blue", [](const absl::Status&) {});
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_EQ(SentTo<BundleUpdate>(1).size(), told);
  store_.FailCommits(absl::OkStatus());
  store_.FailReads(absl::OkStatus());
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(absl::Seconds(6));
    Step();
  }
  EXPECT_EQ(SentTo<BundleUpdate>(1).size(), told) << "it is not in the store";
}

// An operator's change may be stored and its answer lost; no session ends with it.
TEST_F(FleetLoopTest, WhatACommitStoredThoughItsAnswerWasLostIsTold) {
  Greet(1);
  AnswerCloud();
  agents_.sent.clear();
  loop_->PostChange(
      [&](ServerState& state, RawRecords&) {
        Effects effects;
        OnReclaimAnswer(state.fleet, kNode, {.agreed = {ip::Prefix::Host(A("10.1.0.4"))}},
                        clock_.Now());
        effects.changed.insert(kNode);
        effects.desired.insert(kNode);
        return absl::StatusOr<Effects>(std::move(effects));
      },
      [](const absl::Status& status) { EXPECT_FALSE(status.ok()); });
  store_.LoseNextAnswers(1);
  Step();
  clock_.Advance(absl::Seconds(2));
  Step();
  Step();
  ASSERT_EQ(Stored().configurations.at(A("10.1.0.4")).state, AddressState::kDetaching);
  const auto desired = SentTo<node_api::DesiredState>(1);
  ASSERT_EQ(desired.size(), 1U) << "its agent would assign an address that leaves its NIC";
  EXPECT_TRUE(desired[0].full);
}

}  // namespace
}  // namespace spoke::ipam
