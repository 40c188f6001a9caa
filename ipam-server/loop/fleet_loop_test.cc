#include "ipam-server/loop/fleet_loop.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/history/history_codec.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/ledger/decisions/reservations.h"
#include "ipam-server/ledger/testing/hello_for_test.h"
#include "ipam-server/loop/testing/fleet_loop_for_test.h"

namespace spoke::ipam {
namespace {

const ip::MacAddress kOtherMac = ip::MacAddress::Parse("02:00:00:00:00:99").value();

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(FleetLoopTest, HelloIsWelcomedAndAttachedAddressesFollow) {
  Greet(1);
  EXPECT_THAT(SentTo<node_api::Welcome>(1), ElementsAre(node_api::Welcome{.session_epoch = 1}));
  ASSERT_EQ(SentTo<node_api::DesiredState>(1).size(), 1U);
  EXPECT_TRUE(SentTo<node_api::DesiredState>(1)[0].full);
  EXPECT_TRUE(SentTo<node_api::DesiredState>(1)[0].added.empty());
  EXPECT_EQ(CountAddresses(Stored()).attaching, 2U);  // They are written before the cloud is asked.

  AnswerCloud();
  ASSERT_EQ(SentTo<node_api::DesiredState>(1).size(), 2U);
  EXPECT_EQ(SentTo<node_api::DesiredState>(1)[1].added.size(), 2U);
  EXPECT_EQ(CountAddresses(Stored()).available, 2U);
  EXPECT_EQ(agents_.read_next[1], 1);
}

TEST_F(FleetLoopTest, AReportIsAcknowledgedOnceItIsStored) {
  Greet(1);
  AnswerCloud();
  Report(1, AssignOne());
  Step();
  EXPECT_THAT(SentTo<node_api::ReportAck>(1), ElementsAre(node_api::ReportAck{.sequence = 1}));
  EXPECT_EQ(CountAddresses(Stored()).in_use, 1U);
}

// The time of day may be set at will with the clock of the programs.
TEST_F(FleetLoopTest, AClockThatIsSetByADayStopsNothing) {
  for (const absl::Duration set : {-absl::Hours(24), absl::Hours(24)}) {
    os::SimClock uptime;
    const os::SteadyClock steady(clock_, uptime);
    auto loaded = LoadState(store_, settings_, steady.Now());
    ASSERT_TRUE(loaded.ok());
    loop_ = std::make_unique<FleetLoop>(
        settings_, *std::move(loaded),
        FleetLoop::Edges{store_, agents_, cloud_, NewMailbox(), steady, log_});
    cloud_.TakeWaiting();
    Greet(1);
    cloud_.FailRequests(absl::UnavailableError("throttled"));
    AnswersTo (*mailboxes_.back())(kNode, absl::UnavailableError("throttled"));
    Step();
    cloud_.TakeWaiting();
    clock_.Advance(set);
    uptime.Advance(absl::Seconds(4));
    Step();
    EXPECT_TRUE(cloud_.waiting().empty()) << "not before its time";
    uptime.Advance(absl::Seconds(2));
    Step();
    EXPECT_EQ(cloud_.waiting().size(), 1U) << "the cloud is asked again";
    store_.FailCommits(absl::ResourceExhaustedError("disk full"));
    Greet(2);
    clock_.Advance(set);
    store_.FailCommits(absl::OkStatus());
    uptime.Advance(absl::Seconds(2));
    Step();
    Greet(3);
    EXPECT_FALSE(SentTo<node_api::Welcome>(3).empty()) << "the store is tried again";
    agents_.sent.clear();
  }
}

TEST_F(FleetLoopTest, WhatIsStoredAheadOfTheClockIsClamped) {
  Greet(1);
  AnswerCloud();
  loop_->PostChange(
      [&](ServerState& state, RawRecords&) {
        return Reserve(
            state.fleet,
            {.name = "job", .nodes = {"node1"}, .addresses_per_node = 1, .ttl = absl::Hours(1)},
            clock_.Now(), false);
      },
      [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
  Step();
  loop_->PostFromAgent(ConflictEvent{1, {A("10.1.0.4")}});
  Step();
  clock_.Advance(-absl::Hours(24));
  loop_ = NewLoop();
  clock_.Advance(absl::Hours(1));
  Step();
  size_t reservations = 99;
  size_t quarantined = 99;
  absl::Time latest = absl::InfiniteFuture();
  loop_->PostQuery([&](const FleetView& view) {
    reservations = view.fleet.reservations.all().size();
    quarantined = view.fleet.ledger.quarantine().entries.size();
    latest = view.fleet.ledger.Find(kNode)->Holding(A("10.1.0.4"))->AvailableSince();
  });
  Step();
  EXPECT_EQ(reservations, 0U) << "it lasts for an hour, not for a day and an hour";
  EXPECT_EQ(quarantined, 0U);
  EXPECT_LE(latest, clock_.Now());
  // Else it would be the latest time for a day, and end cooldowns that begin meanwhile.
  EXPECT_LE(Stored().configurations.at(A("10.1.0.4")).since, clock_.Now());
}

// Else the next server would count from before, by a third clock.
TEST_F(FleetLoopTest, ACooldownThatAStartProlongsIsStored) {
  Greet(1);
  const ip::Prefix range = ip::Prefix::Host(A("10.1.0.200"));
  loop_->PostChange(
      [&](ServerState& state, RawRecords&) {
        Effects effects;
        state.fleet.ledger.Find(kNode)->released[range] = clock_.Now();
        effects.changed.insert(kNode);
        return absl::StatusOr<Effects>(std::move(effects));
      },
      [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
  Step();
  const absl::Time before = Stored().released.at(range);
  clock_.Advance(absl::Seconds(7));
  loop_ = NewLoop();
  Step();
  EXPECT_EQ(Stored().released.at(range), before + absl::Seconds(7));
}

TEST_F(FleetLoopTest, AMachineWithAnotherVmIdIsToldOfAsGoneUnderTheOneBefore) {
  Greet(1);
  loop_->PostHello(2, {.node = IdentityOf({kNode.name, "vm-by-dmi"})});
  Step();
  EXPECT_THAT(gone_, ElementsAre(kNode));
  EXPECT_THAT(std::string(agents_.closed[1].message()), testing::HasSubstr("vm-by-dmi"));
  EXPECT_FALSE(SentTo<node_api::Welcome>(2).empty());
}

TEST_F(FleetLoopTest, AnAgentOnAnothersInstanceIsRefusedAndAnOperatorIsTold) {
  node_api::Hello owner{.node = IdentityOf(kNode)};
  owner.node.instance = "/subscriptions/s/instances/1";
  loop_->PostHello(1, owner);
  Step();
  node_api::Hello impostor = owner;
  impostor.node = IdentityOf({"node2", "vm-2"}, "b", owner.node.instance);
  impostor.in_use = {{.address = A("10.1.0.9"), .generation = 1}};
  loop_->PostHello(2, impostor);
  Step();
  EXPECT_TRUE(absl::IsPermissionDenied(agents_.closed[2])) << agents_.closed[2];
  EXPECT_TRUE(SentTo<node_api::Welcome>(2).empty());
  EXPECT_TRUE(agents_.closed.find(1) == agents_.closed.end());
  std::vector<std::string> problems;
  bool kept = false;
  const auto look = [&] {
    loop_->PostQuery([&](const FleetView& view) {
      problems = view.ProblemTexts();
      kept = view.fleet.ledger.quarantine().entries.contains(A("10.1.0.9"));
    });
    Step();
  };
  look();
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0], testing::HasSubstr("node node2 says that it is on instance"));
  EXPECT_TRUE(kept) << "a pod may use it all the same";
  EXPECT_EQ(log_.Count("node_identity_refused"), 1);
  impostor.node.instance = "";
  loop_->PostHello(3, impostor);
  Step();
  look();
  EXPECT_THAT(problems, testing::IsEmpty());
}

TEST_F(FleetLoopTest, AnotherMachineUnderTheNameEndsTheSessionOfTheOlder) {
  Greet(1);
  loop_->PostHello(2, {.node = IdentityOf({kNode.name, "vm-2"}, "b2")});
  Step();
  EXPECT_THAT(std::string(agents_.closed[1].message()),
              testing::HasSubstr("if this one, of VM vm-1, still runs"));
  EXPECT_THAT(SentTo<node_api::Welcome>(2).at(0).warning,
              testing::HasSubstr("of VM vm-1 and boot b"));
}

TEST_F(FleetLoopTest, TwoAgentsUnderOneIdentityAreBothToldAndAnOperatorIs) {
  std::vector<std::string> problems;
  const auto look = [&] {
    loop_->PostQuery([&](const FleetView& view) { problems = view.ProblemTexts(); });
    Step();
  };
  Greet(1);
  Greet(2);
  EXPECT_THAT(std::string(agents_.closed[1].message()), testing::HasSubstr("two machines use one"));
  EXPECT_THAT(SentTo<node_api::Welcome>(2).at(0).warning, testing::HasSubstr("and boot b"));
  look();
  EXPECT_THAT(problems, testing::IsEmpty()) << "a broken connection looks like this";
  Greet(3);
  Greet(4);
  look();
  EXPECT_THAT(problems, ElementsAre(testing::HasSubstr("two agents use one identity")));
  clock_.Advance(absl::Minutes(11));
  Step();
  look();
  EXPECT_THAT(problems, testing::IsEmpty());
}

TEST_F(FleetLoopTest, AnEventOfNoAddressNamesNone) {
  Greet(1);
  loop_->PostHello(2, {.node = IdentityOf({kNode.name, "vm-9"}, "c", "/subscriptions/s/vm/9")});
  Step();
  ASSERT_EQ(log_.Count("node_replaced"), 1);
  for (const std::string& line : log_.lines()) {
    EXPECT_THAT(line, testing::Not(testing::HasSubstr("address=0.0.0.0")));
  }
}

TEST_F(FleetLoopTest, ADoubledAddressIsAProblemThatNamesBothUntilItIsOver) {
  std::vector<std::string> problems;
  const auto look = [&] {
    loop_->PostQuery([&](const FleetView& view) { problems = view.ProblemTexts(); });
    Step();
  };
  Greet(1);
  AnswerCloud();
  loop_->PostFromAgent(ConflictEvent{1, {A("10.1.0.4"), kOtherMac}});
  look();
  EXPECT_THAT(problems,
              ElementsAre("10.1.0.4 is in two places: node node1 holds it, and 02:00:00:00:00:99 "
                          "answers for it. Delete the pod that uses it on one of them; see: "
                          "spokectl explain ip 10.1.0.4"));
  EXPECT_EQ(log_.Count("address_doubled"), 1);
  clock_.Advance(absl::Minutes(11));
  Step();
  look();
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_EQ(log_.Count("problem_over"), 1);
}

TEST_F(FleetLoopTest, ManyDoubledAddressesAreAFewProblems) {
  node_api::AssignmentReport all{.sequence = 1};
  for (uint64_t i = 0; i < 20; ++i) {
    all.in_use.push_back({.address = ip::Advance(A("10.1.0.4"), i),
                          .generation = i + 1,
                          .since = clock_.Now(),
                          .lessee = {.container_id = "c" + std::to_string(i), .ifname = "eth0"}});
  }
  Greet(1, all.in_use);
  AnswerCloud();
  for (const node_api::Assignment& assignment : all.in_use) {
    loop_->PostFromAgent(ConflictEvent{1, {assignment.address, kOtherMac}});
  }
  std::vector<std::string> problems;
  loop_->PostQuery([&](const FleetView& view) { problems = view.ProblemTexts(); });
  Step();
  EXPECT_THAT(problems, testing::SizeIs(9));
  EXPECT_THAT(problems, testing::Contains(testing::HasSubstr("12 more addresses are in two")));
}

TEST_F(FleetLoopTest, ARestartKeepsEverythingAndFinishesWhatWasUnderWay) {
  Greet(1);  // It is stored as attaching; the process ends before the cloud answers.
  loop_ = NewLoop();
  std::vector<NicAddresses> nics;
  loop_->PostQuery([&](const FleetView& view) { nics = AllNics(view.fleet); });
  Step();
  ASSERT_EQ(nics.size(), 1U);
  EXPECT_EQ(nics[0].configurations.size(), 2U);
  Greet(2);
  EXPECT_THAT(SentTo<node_api::Welcome>(2), ElementsAre(node_api::Welcome{.session_epoch = 2}));
}

TEST_F(FleetLoopTest, WhatTheCloudRefusesOfAMachineWhoseNameAnotherHasIsNoProblemOfThatOne) {
  std::map<std::string, std::string> problems;
  const auto look = [&] {
    loop_->PostQuery([&](const FleetView& view) { problems = view.problems; });
    Step();
  };
  Greet(1);
  loop_->PostFromAgent(CloudEvent{kNode, absl::NotFoundError("there is no such VM")});
  look();
  const NodeKey other{kNode.name, "vm-2"};
  ASSERT_TRUE(problems.contains(CloudTopicOf(kNode)));
  EXPECT_FALSE(problems.contains(CloudTopicOf(other)));

  // The first machine held nothing yet, and nothing is wanted for it any more.
  loop_->PostHello(2, {.node = IdentityOf(other, "b2", "/subscriptions/s/vm/2")});
  Step();
  look();
  EXPECT_THAT(problems, testing::IsEmpty());

  loop_->PostFromAgent(CloudEvent{kNode, absl::NotFoundError("there is no such VM")});
  look();
  EXPECT_THAT(problems, testing::IsEmpty()) << "the answer to an earlier request is late";
}

TEST_F(FleetLoopTest, WhatTheCloudRefusedOfAMachineIsNoProblemOnceItIsForgotten) {
  std::vector<std::string> problems;
  const auto look = [&] {
    loop_->PostQuery([&](const FleetView& view) { problems = view.ProblemTexts(); });
    Step();
  };
  Greet(1);
  const CloudEvent refused{kNode, absl::NotFoundError("there is no such VM")};
  loop_->PostFromAgent(refused);
  look();
  ASSERT_THAT(problems, ElementsAre(testing::HasSubstr("node node1 fails: there is no such VM")));
  loop_->PostClosed(1);
  Step();
  loop_->PostChange(
      [&](ServerState& state, RawRecords&) -> absl::StatusOr<Effects> {
        const NodeRecord* record = state.fleet.ledger.Find(kNode);
        auto forgotten =
            Forget(state.fleet, {.node = kNode.name, .silent = {{kNode, record->session_epoch}}},
                   clock_.Now());
        if (!forgotten.ok()) return forgotten.status();
        return std::move(forgotten->effects);
      },
      [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
  Step();
  look();
  EXPECT_THAT(problems, testing::IsEmpty());
}

// A cloud that knows machines by their names would take the other one's NIC for gone.
TEST_F(FleetLoopTest, NothingIsAskedForAMachineThatAnotherHasReplaced) {
  Greet(1);
  ASSERT_EQ(CountAddresses(Stored()).attaching, 2U) << "the cloud has yet to answer";
  loop_->PostHello(2, {.node = IdentityOf({kNode.name, "vm-2"}, "b2", "/subscriptions/s/vm/2")});
  Step();
  cloud_.TakeWaiting();
  const NodeKey successor{kNode.name, "vm-2"};
  loop_->PostChange(
      [&](ServerState&, RawRecords&) {
        return absl::StatusOr<Effects>(Effects{.attach = {kNode, successor}});
      },
      [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
  Step();
  const std::vector<NicRequest> asked = cloud_.waiting();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].node, successor);
}

TEST_F(FleetLoopTest, ACloudThatRefusesIsAskedAgainAndComplainedAboutOnce) {
  Greet(1);
  cloud_.FailRequests(absl::UnavailableError("throttled"));
  AnswerCloud();
  EXPECT_TRUE(cloud_.waiting().empty());
  clock_.Advance(absl::Seconds(6));
  Step();
  ASSERT_EQ(cloud_.waiting().size(), 1U);
  AnswerCloud();
  cloud_.FailRequests(absl::OkStatus());
  clock_.Advance(absl::Seconds(6));
  Step();
  AnswerCloud();
  EXPECT_EQ(CountAddresses(Stored()).available, 2U);
  EXPECT_EQ(log_.Count("cloud_apply_failed"), 1);
  EXPECT_EQ(log_.Count("problem_over"), 1);
}

TEST_F(FleetLoopTest, AnAnswerCountsOnlyForTheRequestOfThisSession) {
  Greet(1);
  AnswerCloud();
  absl::Status drained;
  loop_->PostChange(
      [&](ServerState& state, RawRecords&) {
        return SetMode(state.fleet, "node1", NodeMode::kDraining, clock_.Now());
      },
      [&](const absl::Status& status) { drained = status; });
  Step();
  ASSERT_TRUE(drained.ok());
  const auto asked = SentTo<node_api::ReclaimRequest>(1);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].ranges.size(), 2U);
  Greet(2);  // The stream broke; a late answer comes by the new one.
  loop_->PostFromAgent(ReclaimAnswerEvent{2, {.id = asked[0].id + 7, .agreed = asked[0].ranges}});
  Step();
  EXPECT_EQ(CountAddresses(Stored()).detaching, 0U);
  clock_.Advance(absl::Minutes(2));  // The review asks again.
  Step();
  const auto again = SentTo<node_api::ReclaimRequest>(2);
  ASSERT_EQ(again.size(), 1U);
  loop_->PostFromAgent(ReclaimAnswerEvent{2, {.id = again[0].id, .agreed = again[0].ranges}});
  Step();
  EXPECT_EQ(CountAddresses(Stored()).detaching, 2U);
  AnswerCloud();
  EXPECT_EQ(CountAddresses(Stored()).total(), 0U);
  EXPECT_EQ(Stored().released.size(), 2U);
}

TEST_F(FleetLoopTest, WhatIsToBeTakenBackWaitsForTheAnswerBefore) {
  Greet(1);
  AnswerCloud();
  const auto release = [&](const char* address) {
    loop_->PostChange(
        [=](ServerState& state, RawRecords&) { return Release(state.fleet, A(address), ""); },
        [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
    Step();
  };
  release("10.1.0.4");
  release("10.1.0.5");
  const auto first = SentTo<node_api::ReclaimRequest>(1);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].ranges, std::vector{ip::Prefix::Host(A("10.1.0.4"))});
  loop_->PostFromAgent(ReclaimAnswerEvent{1, {.id = first[0].id, .denied = first[0].ranges}});
  Step();
  const auto both = SentTo<node_api::ReclaimRequest>(1);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[1].ranges, std::vector{ip::Prefix::Host(A("10.1.0.5"))});
}

TEST_F(FleetLoopTest, ASessionThatEndedBeforeItsHelloWasReadIsNotThere) {
  loop_->PostHello(1, {.node = IdentityOf(kNode)});
  loop_->PostClosed(1);
  size_t sessions = 99;
  loop_->PostQuery([&](const FleetView& view) { sessions = view.sessions.size(); });
  Step();
  EXPECT_EQ(sessions, 0U);
  EXPECT_TRUE(agents_.sent.empty());
}

TEST_F(FleetLoopTest, EveryCommitLeavesItsHistory) {
  Greet(1);
  AnswerCloud();
  Report(1, AssignOne());
  Step();
  std::vector<std::string> words;
  ASSERT_TRUE(store_
                  .List(kHistoryPrefix,
                        [&](std::string_view, const StoredRecord& record) {
                          const auto entries = DecodeHistory(record.value);
                          ASSERT_TRUE(entries.ok());
                          for (const HistoryEntry& entry : *entries) {
                            words.emplace_back(NameOf(entry.event));
                          }
                        })
                  .ok());
  EXPECT_THAT(words, ElementsAre("attached", "attached", "in_use"));
}

TEST_F(FleetLoopTest, PolicyReachesThoseThatAreThereAndThoseThatComeBack) {
  Greet(1);
  ASSERT_EQ(SentTo<BundleUpdate>(1).size(), 1U);
  const uint64_t version = SentTo<BundleUpdate>(1)[0].to->version;
  loop_->PostFromAgent(PolicyAckEvent{1, {.version = version}});
  absl::Status applied;
  PostTeam("blue", [&](const absl::Status& status) { applied = status; });
  Step();
  ASSERT_TRUE(applied.ok()) << applied;
  ASSERT_EQ(SentTo<BundleUpdate>(1).size(), 2U);
  EXPECT_TRUE(SentTo<BundleUpdate>(1)[1].to->entries.contains("Team/blue"));
  loop_ = NewLoop();
  Greet(2);
  EXPECT_TRUE(SentTo<BundleUpdate>(2).at(0).to->entries.contains("Team/blue"));
}

TEST_F(FleetLoopTest, APolicyThatANodeHoldsBackIsSentAnewOnceAnOperatorSaysSo) {
  Greet(1);
  ASSERT_EQ(SentTo<BundleUpdate>(1).size(), 1U);
  const BundleUpdate first = SentTo<BundleUpdate>(1)[0];
  EXPECT_EQ(first.max_cut_permille, std::optional<uint32_t>(50));
  loop_->PostFromAgent(PolicyAckEvent{1,
                                      {.version = first.to->version,
                                       .error = "would end 40 of 90",
                                       .cut = node_api::CutCount{90, 40},
                                       .held = true}});
  Step();
  bool held = false;
  loop_->PostQuery([&](const FleetView& view) {
    const Session& session = view.sessions.at(kNode);
    held = session.policy_held && session.policy_cut == node_api::CutCount{90, 40};
  });
  Step();
  EXPECT_TRUE(held);
  EXPECT_EQ(SentTo<BundleUpdate>(1).size(), 1U) << "nobody has said anything yet";
  const auto accept = [&](uint64_t version) {
    loop_->PostChange(
        [&, version](ServerState& state, RawRecords&) -> absl::StatusOr<Effects> {
          state.cuts_accepted = version;
          return Effects();
        },
        [](const absl::Status&) {});
    Step();
    Step();
  };
  accept(first.to->version + 1);
  EXPECT_EQ(SentTo<BundleUpdate>(1).size(), 1U) << "of another version";
  accept(first.to->version);
  ASSERT_EQ(SentTo<BundleUpdate>(1).size(), 2U);
  EXPECT_EQ(SentTo<BundleUpdate>(1)[1].to->version, first.to->version);
  EXPECT_EQ(SentTo<BundleUpdate>(1)[1].max_cut_permille, std::nullopt);
  loop_->PostFromAgent(
      PolicyAckEvent{1, {.version = first.to->version, .cut = node_api::CutCount{90, 40}}});
  Step();
  // Who comes back is not limited by it either.
  Greet(2);
  EXPECT_EQ(SentTo<BundleUpdate>(2).at(0).max_cut_permille, std::nullopt);
}

TEST_F(FleetLoopTest, AnAgentThatStillCountedWhenAnOperatorSpokeIsNotLeftWaiting) {
  Greet(1);
  const uint64_t version = SentTo<BundleUpdate>(1).at(0).to->version;
  loop_->PostChange(
      [&](ServerState& state, RawRecords&) -> absl::StatusOr<Effects> {
        state.cuts_accepted = version;
        return Effects();
      },
      [](const absl::Status&) {});
  Step();
  const auto hold = [&] {
    loop_->PostFromAgent(
        PolicyAckEvent{1, {.version = version, .error = "would end 40 of 90", .held = true}});
    Step();
    Step();
  };
  hold();
  ASSERT_EQ(SentTo<BundleUpdate>(1).size(), 2U);
  EXPECT_EQ(SentTo<BundleUpdate>(1)[1].max_cut_permille, std::nullopt);
  hold();
  EXPECT_EQ(SentTo<BundleUpdate>(1).size(), 2U) << "one that holds back without a limit is broken";
}

TEST_F(FleetLoopTest, ANodeThatTheCloudSaysIsGoneIsToldOfOnceThatIsStored) {
  const NodeKey other{"node2", "vm-2"};
  Greet(1);
  loop_->PostHello(2, {.node = IdentityOf(other, "b", "/subscriptions/s/vm/2")});
  Step();
  AnswerCloud();
  loop_->PostFromAgent(ClosedEvent{1});
  const auto list = [&] {
    loop_->PostListing({{.node = other}}, [](const std::string&) { return true; });
    Step();
  };
  list();
  EXPECT_THAT(gone_, IsEmpty()) << "one list may lie";
  store_.FailCommits(absl::ResourceExhaustedError("disk full"));
  list();
  EXPECT_THAT(gone_, IsEmpty());
  store_.FailCommits(absl::OkStatus());
  clock_.Advance(absl::Seconds(2));
  Step();
  list();
  list();
  EXPECT_THAT(gone_, ElementsAre(kNode));
  list();
  EXPECT_THAT(gone_, ElementsAre(kNode));
}

TEST_F(FleetLoopTest, TheNewerSessionOfANodeWinsAndTheOlderIsMute) {
  Greet(1);
  AnswerCloud();
  Greet(2);
  EXPECT_EQ(agents_.closed[1].code(), absl::StatusCode::kAborted);
  Report(1, AssignOne());
  loop_->PostClosed(1);
  Step();
  EXPECT_EQ(CountAddresses(Stored()).in_use, 0U);
  size_t sessions = 0;
  loop_->PostQuery([&](const FleetView& view) { sessions = view.sessions.size(); });
  Step();
  EXPECT_EQ(sessions, 1U);
}

TEST_F(FleetLoopTest, AcksAreKeptWithinWhatWasSent) {
  Greet(1);
  loop_->PostFromAgent(DesiredAckEvent{1, 99});
  uint64_t acked = 0;
  loop_->PostQuery([&](const FleetView& view) { acked = view.sessions.at(kNode).acked_version; });
  Step();
  EXPECT_EQ(acked, 1U);
}

}  // namespace
}  // namespace spoke::ipam
