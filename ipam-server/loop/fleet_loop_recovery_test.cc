// What a loop does and leaves alone while its store may be an old one.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/ledger/testing/hello_for_test.h"
#include "ipam-server/loop/testing/fleet_loop_for_test.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class LoopRecoveryTest : public FleetLoopTest {
 protected:
  LoopRecoveryTest() { StartWith("boot-1"); }
  // A server starts on what is in the store and beside it.
  void StartWith(const std::string& boot) {
    loop_.reset();
    witness_.emplace(StoreWitness::Open(dir_.path(), boot).value());
    auto loaded = LoadState(store_, settings_, clock_.Now());
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    loop_ = std::make_unique<FleetLoop>(
        settings_, *std::move(loaded),
        FleetLoop::Edges{.store = store_,
                         .agents = agents_,
                         .cloud = cloud_,
                         .mailbox = NewMailbox(),
                         .clock = clock_,
                         .log = log_,
                         .witness = &*witness_,
                         .on_known_nodes = [this](const auto& nodes) { known_.push_back(nodes); }});
    cloud_.TakeWaiting();
  }
  void GreetWith(SessionId session, std::string token) {
    loop_->PostHello(session, {.node = IdentityOf(kNode), .store_token = std::move(token)});
    Step();
  }
  std::string Ahead(uint64_t epoch, uint64_t nodes = 1) {
    return witness_->Sign({.store_id = settings_.new_store_id, .epoch = epoch, .nodes = nodes});
  }
  void SetModeOf(const std::string& node, NodeMode mode) {
    loop_->PostChange(
        [=, this](ServerState& state, RawRecords&) {
          return SetMode(state.fleet, node, mode, clock_.Now());
        },
        [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
    Step();
  }
  std::string PhaseNow() {
    std::string phase;
    loop_->PostQuery(
        [&](const FleetView& view) { phase = std::string(NameOf(view.state.recovery.phase())); });
    Step();
    return phase;
  }

  const testing_support::TempDir dir_;
  std::optional<StoreWitness> witness_;
  std::vector<std::vector<NodeKey>> known_;  // What was said of them, each time.
};

TEST_F(LoopRecoveryTest, NodesAreToldHowFarTheStoreHadCome) {
  GreetWith(1, "");
  AnswerCloud();
  const auto desired = SentTo<node_api::DesiredState>(1);
  ASSERT_FALSE(desired.empty());
  const auto mark = witness_->Verify(desired.back().store_token);
  ASSERT_TRUE(mark.ok()) << mark.status();
  const uint64_t before = mark->epoch;
  Report(1, AssignOne());
  Step();
  GreetWith(2, desired.back().store_token);
  EXPECT_EQ(PhaseNow(), "open") << "what the store knows is nothing new";
  EXPECT_GT(witness_->Verify(SentTo<node_api::DesiredState>(2).back().store_token)->epoch, before);
}

TEST_F(LoopRecoveryTest, ATokenAheadOfTheStoreStopsEverythingUntilTheNodeHasSpoken) {
  GreetWith(1, Ahead(1000));
  EXPECT_EQ(PhaseNow(), "recovering");
  EXPECT_THAT(SentTo<node_api::DesiredState>(1), IsEmpty());
  EXPECT_THAT(cloud_.waiting(), IsEmpty());
  const auto asked = SentTo<node_api::InventoryRequest>(1);
  ASSERT_THAT(asked, SizeIs(1));
  clock_.Advance(absl::Hours(24));
  EXPECT_EQ(PhaseNow(), "recovering") << "time does not help";
  loop_->PostFromAgent(InventoryEvent{1, {.id = asked[0].id, .held = {A("10.1.0.77")}}});
  Step();
  clock_.Advance(Recovery::kLeastTime);
  EXPECT_EQ(PhaseNow(), "open");
  Step();
  const auto desired = SentTo<node_api::DesiredState>(1);
  ASSERT_FALSE(desired.empty());
  EXPECT_TRUE(desired[0].full);
  ASSERT_THAT(desired[0].added, SizeIs(1));
  EXPECT_EQ(desired[0].added[0].range.base(), A("10.1.0.77"));
  EXPECT_GT(witness_->Verify(desired[0].store_token)->epoch, 1000U) << "what was shown is old now";
  EXPECT_FALSE(cloud_.waiting().empty());
}

// A node's pods may have had it until the node booted, of which such a store knows nothing.
TEST_F(LoopRecoveryTest, WhatAnOldStoreTakesForFreeRestsOnceItIsOpen) {
  GreetWith(1, Ahead(1000));
  loop_->PostFromAgent(InventoryEvent{1, {.id = 1, .held = {A("10.1.0.77")}}});
  Step();
  clock_.Advance(Recovery::kLeastTime);
  EXPECT_EQ(PhaseNow(), "open");
  const auto state_of = [&](std::string_view address) {
    AddressPool::State state{};
    loop_->PostQuery([&](const FleetView& view) {
      state = view.fleet.ledger.pools().Covering(A(address))->pool.StateOf(A(address));
    });
    Step();
    return state;
  };
  EXPECT_EQ(state_of("10.1.0.77"), AddressPool::State::kHeld);
  EXPECT_EQ(state_of("10.1.0.78"), AddressPool::State::kCooldown);
  clock_.Advance(settings_.fleet.cooldown + absl::Seconds(1));
  Step();
  EXPECT_NE(state_of("10.1.0.78"), AddressPool::State::kCooldown);
}

TEST_F(LoopRecoveryTest, GoesOnAfterARestartUntilEnoughHaveSpoken) {
  GreetWith(1, Ahead(1000, /*nodes=*/2));
  StartWith("boot-1");
  EXPECT_EQ(PhaseNow(), "recovering");
  GreetWith(2, Ahead(1000, /*nodes=*/2));
  loop_->PostFromAgent(InventoryEvent{2, {.id = 1}});
  Step();
  clock_.Advance(Recovery::kLeastTime);
  EXPECT_EQ(PhaseNow(), "recovering") << "there was another node";
  absl::Status confirmed;
  for (const uint64_t silent : {uint64_t{0}, uint64_t{1}}) {
    loop_->PostChange([&](ServerState& state,
                          RawRecords&) { return ConfirmRecovery(state, silent, clock_.Now()); },
                      [&](const absl::Status& status) { confirmed = status; });
    Step();
    EXPECT_EQ(confirmed.ok(), silent == 1) << confirmed;
  }
  EXPECT_EQ(PhaseNow(), "open");
  StartWith("boot-1");
  EXPECT_EQ(PhaseNow(), "open") << "that it is over is stored";
}

TEST_F(LoopRecoveryTest, EachNodeThatTheStoreKnowsIsWaitedForAndThoseThatAreForgottenAreNot) {
  std::vector<NodeKey> others;
  for (SessionId session = 2; session <= 4; ++session) {
    others.push_back({fmt::format("other-{}", session), fmt::format("vm-{}", session)});
    loop_->PostHello(session, {.node = IdentityOf(others.back())});
    Step();
    AnswerCloud();
  }
  GreetWith(1, Ahead(1000));
  const auto speaks = [&](SessionId session) {
    loop_->PostFromAgent(InventoryEvent{session, {.id = 1}});
    Step();
  };
  speaks(1);
  speaks(3);
  clock_.Advance(Recovery::kLeastTime);
  EXPECT_EQ(PhaseNow(), "recovering") << "the first and the last are waited for";
  speaks(2);
  EXPECT_EQ(PhaseNow(), "recovering") << "the last is waited for";
  loop_->PostChange(
      [&](ServerState& state, RawRecords&) -> absl::StatusOr<Effects> {
        state.fleet.ledger.Unload(others.back());
        Effects effects;
        effects.changed.insert(others.back());
        return effects;
      },
      [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
  Step();
  EXPECT_EQ(PhaseNow(), "open");
}

// It came in the turn in which the recovery ended, while another node had the address here.
TEST_F(LoopRecoveryTest, WhatIsToBeSaidAnewIsNotAcknowledged) {
  loop_->PostHello(2, {.node = IdentityOf({"other", "vm-2"})});
  Step();
  AnswerCloud();
  GreetWith(1, Ahead(1000, 2));
  loop_->PostFromAgent(InventoryEvent{1, {.id = 1, .held = {A("10.1.0.4")}}});
  Step();
  clock_.Advance(absl::Seconds(16));
  ASSERT_EQ(PhaseNow(), "recovering") << "the other one has not spoken";
  Report(1, AssignOne());
  loop_->PostFromAgent(InventoryEvent{2, {.id = 1}});
  Step();
  EXPECT_EQ(PhaseNow(), "open");
  EXPECT_TRUE(agents_.closed.contains(1));
  EXPECT_THAT(SentTo<node_api::ReportAck>(1), IsEmpty());
}

TEST_F(LoopRecoveryTest, ANodeWhoseTokenCannotBeVerifiedIsRefusedAlone) {
  GreetWith(1, "");
  loop_->PostHello(2,
                   {.node = IdentityOf({"liar", "vm-2"}),
                    .in_use = {{.address = A("10.1.0.99"),
                                .generation = 1,
                                .lessee = {.container_id = "c", .ifname = "eth0"}}},
                    .store_token = SignMark({.store_id = "new", .epoch = 1'000'000}, "own key")});
  Step();
  EXPECT_EQ(agents_.closed[2].code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(PhaseNow(), "open") << "one node cannot stop the others";
  std::vector<std::string> problems;
  bool kept = false;
  loop_->PostQuery([&](const FleetView& view) {
    problems = view.ProblemTexts();
    kept = view.fleet.ledger.quarantine().entries.contains(A("10.1.0.99"));
    EXPECT_EQ(view.fleet.ledger.Find({"liar", "vm-2"}), nullptr);
  });
  Step();
  EXPECT_TRUE(kept) << "what its pods may use is not given to others";
  EXPECT_THAT(problems, ElementsAre(HasSubstr("liar")));
}

TEST_F(LoopRecoveryTest, ARefusalIsOverOnceItsMachineIsReplacedOrStaysAway) {
  const auto problems = [&] {
    std::vector<std::string> texts;
    loop_->PostQuery([&](const FleetView& view) { texts = view.ProblemTexts(); });
    Step();
    return texts;
  };
  const auto refuse = [&](SessionId session) {
    loop_->PostHello(session, {.node = IdentityOf({"liar", "vm-2"}),
                               .store_token = SignMark({.store_id = "new"}, "own key")});
    Step();
    EXPECT_THAT(problems(), ElementsAre(HasSubstr("liar")));
  };
  refuse(1);
  loop_->PostHello(2, {.node = IdentityOf({"liar", "vm-3"})});
  Step();
  EXPECT_THAT(problems(), IsEmpty()) << "another machine has the name";
  refuse(3);
  clock_.Advance(Recovery::kRefusedTime);
  Step();
  EXPECT_THAT(problems(), IsEmpty()) << "nobody is there any more";
}

// Such a cloud is told all that is to be on a NIC, and takes off what the store does not name.
TEST_F(LoopRecoveryTest, TheNicOfANodeThatHasNotSpokenIsLeftAsItIs) {
  GreetWith(1, "");
  ASSERT_FALSE(cloud_.waiting().empty()) << "there is something to ask for";
  loop_->Stop();
  loop_->Run();
  StartWith("boot-2");
  clock_.Advance(Recovery::kProvingTime);
  ASSERT_EQ(PhaseNow(), "open") << "it did not speak";
  Step();
  EXPECT_THAT(cloud_.waiting(), IsEmpty()) << "it may have been told more than the store knows";
  GreetWith(2, "");
  clock_.Advance(absl::Minutes(1));
  Step();
  EXPECT_FALSE(cloud_.waiting().empty());
}

// Also after a start that nobody doubts: its pods may use what the store cannot name.
TEST_F(LoopRecoveryTest, AfterAnyStartItIsLeftUntilItHasSpoken) {
  GreetWith(1, "");
  ASSERT_FALSE(cloud_.waiting().empty());
  loop_->Stop();
  loop_->Run();
  StartWith("boot-1");
  ASSERT_EQ(PhaseNow(), "open");
  loop_->Begin();
  Step();
  EXPECT_THAT(cloud_.waiting(), IsEmpty());
  GreetWith(2, "");
  EXPECT_FALSE(cloud_.waiting().empty()) << "now it has";
}

TEST_F(LoopRecoveryTest, ANodeThatHadNothingMayHaveBeenToldMore) {
  GreetWith(1, "");
  loop_->PostHello(2, {.node = IdentityOf({"drained", "vm-2"})});
  Step();
  AnswerCloud();
  SetModeOf("drained", NodeMode::kDraining);
  const auto asked = SentTo<node_api::ReclaimRequest>(2);
  ASSERT_THAT(asked, SizeIs(1));
  loop_->PostFromAgent(ReclaimAnswerEvent{2, {.id = asked[0].id, .agreed = asked[0].ranges}});
  Step();
  AnswerCloud();
  loop_->Stop();
  loop_->Run();
  StartWith("boot-2");
  GreetWith(3, Ahead(0));
  clock_.Advance(Recovery::kLeastTime);
  ASSERT_EQ(PhaseNow(), "open") << "all that have addresses have spoken";
  cloud_.TakeWaiting();
  SetModeOf("drained", NodeMode::kActive);
  EXPECT_THAT(cloud_.waiting(), IsEmpty()) << "its NIC would lose what this store does not know";
  loop_->PostHello(4, {.node = IdentityOf({"drained", "vm-2"})});
  clock_.Advance(absl::Minutes(1));
  Step();
  EXPECT_FALSE(cloud_.waiting().empty());
}

TEST_F(LoopRecoveryTest, AfterABootNodesHaveAMinute) {
  GreetWith(1, "");
  AnswerCloud();
  loop_->Stop();
  loop_->Run();  // Ends at once, and leaves the mark.
  StartWith("boot-2");
  EXPECT_EQ(PhaseNow(), "proving");
  agents_.sent.clear();
  loop_->PostHello(5, {.node = IdentityOf({"fresh", "vm-9"})});
  Step();
  EXPECT_THAT(cloud_.waiting(), IsEmpty());
  EXPECT_THAT(SentTo<node_api::DesiredState>(5), IsEmpty());
  GreetWith(6, Ahead(0));
  clock_.Advance(absl::Seconds(14));
  Step();
  EXPECT_EQ(PhaseNow(), "proving") << "another may be on its way that the store does not know";
  clock_.Advance(Recovery::kLeastTime);
  Step();
  EXPECT_EQ(PhaseNow(), "open") << "all that the store knows have spoken";
  Step();
  EXPECT_FALSE(SentTo<node_api::DesiredState>(6).empty());
}

// It was reimaged: what it was told since a backup nobody knows, if this is one.
TEST_F(LoopRecoveryTest, WhoRemembersNothingVouchesForNothing) {
  GreetWith(1, "");
  AnswerCloud();
  loop_->Stop();
  loop_->Run();
  StartWith("boot-2");
  GreetWith(2, "");
  clock_.Advance(Recovery::kProvingTime - absl::Seconds(1));
  EXPECT_EQ(PhaseNow(), "proving") << "others may still show that it was told more";
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(PhaseNow(), "open");
  Step();
  const auto desired = SentTo<node_api::DesiredState>(2);
  ASSERT_FALSE(desired.empty());
  EXPECT_THAT(desired[0].added, IsEmpty()) << "its NIC may not have that any more";
  AnswerCloud();
  const auto told = SentTo<node_api::DesiredState>(2).back().added;
  ASSERT_THAT(told, Not(IsEmpty()));
  EXPECT_EQ(told[0].cooldown, settings_.fleet.cooldown) << "a pod may just have had it";
  loop_->PostQuery([&](const FleetView& view) {
    const PoolEntry* pool = view.fleet.ledger.pools().Covering(A("10.1.0.77"));
    EXPECT_EQ(pool->pool.StateOf(A("10.1.0.77")), AddressPool::State::kCooldown)
        << "its pods may have had it until then";
  });
  Step();
}

// A new machine need not have been told anything.
TEST_F(LoopRecoveryTest, WhoIsNewHoldsNothingUp) {
  GreetWith(1, "");
  AnswerCloud();
  loop_->Stop();
  loop_->Run();
  StartWith("boot-2");
  GreetWith(2, Ahead(0));
  loop_->PostHello(3, {.node = IdentityOf({"fresh", "vm-9"})});
  clock_.Advance(Recovery::kLeastTime);
  EXPECT_EQ(PhaseNow(), "open");
}

// Both may run, and each may have been told more than the store knows.
TEST_F(LoopRecoveryTest, AMachineWhoseNameAnotherHasIsWaitedFor) {
  GreetWith(1, "");
  AnswerCloud();
  loop_->PostHello(
      2, {.node = IdentityOf({kNode.name, "vm-9"}, "another"), .store_token = Ahead(1000)});
  Step();
  ASSERT_EQ(PhaseNow(), "recovering");
  loop_->PostFromAgent(InventoryEvent{2, {.id = 1}});
  Step();
  clock_.Advance(absl::Minutes(10));
  EXPECT_EQ(PhaseNow(), "recovering");
  GreetWith(3, Ahead(1000));
  loop_->PostFromAgent(InventoryEvent{3, {.id = 1}});
  Step();
  EXPECT_EQ(PhaseNow(), "open");
}

TEST_F(LoopRecoveryTest, OnceTheCloudHasThatOneNoMoreItIsNot) {
  GreetWith(1, "");
  AnswerCloud();
  const NodeKey successor{kNode.name, "vm-9"};
  loop_->PostHello(2, {.node = IdentityOf(successor, "another"), .store_token = Ahead(1000)});
  Step();
  loop_->PostFromAgent(InventoryEvent{2, {.id = 1}});
  Step();
  clock_.Advance(Recovery::kLeastTime);
  for (const bool first : {true, false}) {
    EXPECT_EQ(PhaseNow(), "recovering") << (first ? "" : "a list may be an old one");
    loop_->PostListing({{.node = successor}}, [](const std::string&) { return true; });
    Step();
  }
  Step();
  EXPECT_EQ(PhaseNow(), "open");
}

// What a store that was behind knows of are not all that another server may have told something.
TEST_F(LoopRecoveryTest, SaysWhichNodesThereAreOnlyOfAStoreThatWasNotBehind) {
  GreetWith(1, "");
  AnswerCloud();
  EXPECT_THAT(known_, ElementsAre(IsEmpty())) << "there were none at the start";
  loop_->Stop();
  loop_->Run();
  StartWith("boot-2");
  EXPECT_EQ(PhaseNow(), "proving");
  EXPECT_THAT(known_, SizeIs(1)) << "nobody has had the time to contradict";
  GreetWith(6, Ahead(0));
  clock_.Advance(Recovery::kLeastTime);
  EXPECT_EQ(PhaseNow(), "open");
  EXPECT_THAT(known_, ElementsAre(IsEmpty(), ElementsAre(kNode)));
  loop_->Stop();
  loop_->Run();
  StartWith("boot-3");
  GreetWith(7, Ahead(1000));
  EXPECT_EQ(PhaseNow(), "recovering");
  loop_->PostFromAgent(InventoryEvent{7, {.id = 1, .held = {}}});
  Step();
  clock_.Advance(Recovery::kLeastTime);
  EXPECT_EQ(PhaseNow(), "open");
  EXPECT_THAT(known_, SizeIs(2));
}

// As etcd may be from a snapshot, while its servers run.
TEST_F(LoopRecoveryTest, AStoreThatIsRestoredUnderTheLoopIsNotedAndStrangersSayHelloAgain) {
  GreetWith(1, "");
  AnswerCloud();
  std::map<std::string, std::string> backup;
  const auto save = [&](std::string_view key, const StoredRecord& record) {
    backup.emplace(key, record.value);
  };
  ASSERT_TRUE(store_.List("", save).ok());
  loop_->PostHello(2, {.node = IdentityOf({"fresh", "vm-9"})});
  Step();
  AnswerCloud();
  clock_.Advance(absl::Seconds(2));
  Report(1, AssignOne());  // With that the mark counts two nodes.
  Step();

  std::vector<CompareAndPut> restore;
  const auto put_back = [&](std::string_view key, const StoredRecord& record) {
    const auto saved = backup.find(std::string(key));
    restore.push_back({.key = std::string(key), .expected = record.revision});
    if (saved != backup.end()) restore.back().value = saved->second;
  };
  ASSERT_TRUE(store_.List("", put_back).ok());
  ASSERT_TRUE(store_.Commit(restore).ok());
  agents_.sent.clear();
  loop_->PostChange(
      [](ServerState&, RawRecords&) {
        return absl::StatusOr<Effects>(Effects{.changed = {kNode}});
      },
      [](const absl::Status& status) { EXPECT_FALSE(status.ok()); });
  Step();
  EXPECT_EQ(PhaseNow(), "recovering");
  EXPECT_THAT(SentTo<node_api::InventoryRequest>(1), SizeIs(1));
  ASSERT_TRUE(agents_.closed.contains(2)) << "its inventory would be of a node that nobody knows";
  clock_.Advance(absl::Seconds(2));
  Step();
  loop_->PostFromAgent(InventoryEvent{1, {.id = 1, .held = {A("10.1.0.4"), A("10.1.0.5")}}});
  Step();
  EXPECT_EQ(PhaseNow(), "recovering") << "there was one more";
}

}  // namespace
}  // namespace spoke::ipam
