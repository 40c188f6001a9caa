// What agents say, what is loaded, and that no address is ever held twice.
#include "ipam-server/ledger/fleet.h"

#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/conflict.h"
#include "ipam-server/ledger/decisions/demand.h"
#include "ipam-server/ledger/decisions/expire.h"
#include "ipam-server/ledger/decisions/hello.h"
#include "ipam-server/ledger/decisions/listing.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/ledger/decisions/plan.h"
#include "ipam-server/ledger/decisions/quarantine.h"
#include "ipam-server/ledger/decisions/reclaim.h"
#include "ipam-server/ledger/decisions/report.h"
#include "ipam-server/ledger/decisions/testing/fleet_for_test.h"
#include "tests/support/random_seed.h"

namespace spoke::ipam {
namespace {

TEST(Fleet, ANewNodeGetsItsTargetInOneStep) {
  Fleet fleet({Pool("default", "10.1.0.0/24")}, Policy());
  const Effects effects = OnHello(fleet, HelloOf(kNode1), kNow);
  EXPECT_EQ(effects.changed, std::set{kNode1});
  EXPECT_EQ(effects.attach, std::set{kNode1});
  EXPECT_TRUE(effects.desired.empty());  // Nothing is attached yet.
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)), (AddressCounts{.attaching = 4}));

  const Effects attached = Attach(fleet, kNode1);
  EXPECT_EQ(attached.desired, std::set{kNode1});
  EXPECT_EQ(attached.history.size(), 4U);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)), (AddressCounts{.available = 4}));
  EXPECT_TRUE(Attach(fleet, kNode1).changed.empty());
  EXPECT_TRUE(PlanNode(fleet, kNode1, kNow).changed.empty());
}

TEST(Fleet, AssignmentsRaiseTheTargetAndReleasesBeginACooldown) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  const Effects in_use =
      OnReport(fleet, kNode1,
               {.sequence = 1,
                .in_use = {AssignmentOf(A("10.1.0.4"), 1), AssignmentOf(A("10.1.0.5"), 2),
                           AssignmentOf(A("10.1.0.6"), 3)}},
               kNow);
  EXPECT_EQ(in_use.attach, std::set{kNode1});
  EXPECT_EQ(in_use.history.size(), 3U);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(kNode1)),
            (AddressCounts{.attaching = 4, .available = 1, .in_use = 3}));

  OnReport(fleet, kNode1, {.sequence = 2, .released = {{A("10.1.0.5"), 2}}}, kNow);
  EXPECT_EQ(SlotOf(fleet, kNode1, "10.1.0.5").use, Use::kCooldown);
  EXPECT_EQ(SlotOf(fleet, kNode1, "10.1.0.5").lessee, nullptr);
  OnReport(fleet, kNode1, {.sequence = 3, .cooled = {A("10.1.0.5")}}, kNow);
  EXPECT_EQ(SlotOf(fleet, kNode1, "10.1.0.5").use, Use::kAvailable);
  CheckInvariants(fleet.ledger);
}

TEST(Fleet, AStaleReportChangesNothing) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  OnReport(fleet, kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 7, "new")}}, kNow);
  const NodeRecord before = *fleet.ledger.Find(kNode1);
  const node_api::AssignmentReport stale{
      .in_use = {AssignmentOf(A("10.1.0.4"), 6, "old"), AssignmentOf(A("10.9.9.9"), 9)},
      .released = {{A("10.1.0.4"), 6}},
      .cooled = {A("10.1.0.4"), A("10.9.9.9")}};
  EXPECT_FALSE(OnReport(fleet, kNode1, stale, kNow + absl::Seconds(1)).Stores());
  EXPECT_EQ(*fleet.ledger.Find(kNode1), before);
  EXPECT_FALSE(OnReport(fleet, {"node1", "vm-other"}, stale, kNow).Stores());
}

TEST(Fleet, ARebootEndsAssignmentsAndBeginsTheirCooldown) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  OnReport(fleet, kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  OnHello(fleet, HelloOf(kNode1, "boot-2"), kNow);
  EXPECT_EQ(SlotOf(fleet, kNode1, "10.1.0.4").use, Use::kCooldown);
  // The fence is lowered so that the first assignment of the new boot is not stale.
  EXPECT_EQ(SlotOf(fleet, kNode1, "10.1.0.4").generation, 0U);
}

TEST(Fleet, AReconnectKeepsWhatTheAgentStillAssigns) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  OnReport(fleet, kNode1,
           {.in_use = {AssignmentOf(A("10.1.0.4"), 1), AssignmentOf(A("10.1.0.5"), 2, "c2"),
                       AssignmentOf(A("10.1.0.6"), 3, "c3")}},
           kNow);
  node_api::Hello hello = HelloOf(kNode1);
  hello.in_use = {AssignmentOf(A("10.1.0.4"), 1)};
  hello.cooldown = {A("10.1.0.5")};
  const uint64_t epoch = fleet.ledger.Find(kNode1)->session_epoch;
  OnHello(fleet, hello, kNow);
  EXPECT_EQ(SlotOf(fleet, kNode1, "10.1.0.4").use, Use::kInUse);
  EXPECT_EQ(SlotOf(fleet, kNode1, "10.1.0.5").use, Use::kCooldown);
  EXPECT_EQ(SlotOf(fleet, kNode1, "10.1.0.6").use, Use::kAvailable);
  EXPECT_EQ(fleet.ledger.Find(kNode1)->session_epoch, epoch + 1);
}

TEST(Fleet, AnUnknownButFreeAssignmentIsAdoptedAndAnothersIsReported) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  node_api::Hello hello = HelloOf(kNode2);
  hello.in_use = {AssignmentOf(A("10.1.0.200"), 5), AssignmentOf(A("10.1.0.4"), 6),
                  AssignmentOf(A("192.0.2.1"), 7)};
  const Effects effects = OnHello(fleet, hello, kNow);
  ASSERT_EQ(effects.findings.size(), 3U);
  EXPECT_EQ(effects.findings[0].kind, Finding::Kind::kAdopted);
  EXPECT_EQ(effects.findings[1].kind, Finding::Kind::kHeldElsewhere);
  EXPECT_EQ(effects.findings[2].kind, Finding::Kind::kForeign);
  EXPECT_EQ(HolderOf(fleet.ledger, A("10.1.0.200"))->key, kNode2);
  EXPECT_EQ(HolderOf(fleet.ledger, A("10.1.0.4"))->key, kNode1);
  EXPECT_EQ(SlotOf(fleet, kNode2, "10.1.0.200").use, Use::kInUse);
}

TEST(Fleet, ANewVmUnderAnOldNameRetiresTheOldOneWithoutTakingItsAddresses) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  const NodeKey replacement{"node1", "vm-new"};
  const Effects effects = OnHello(fleet, HelloOf(replacement, "boot-2"), kNow);
  EXPECT_EQ(effects.changed, (std::set{kNode1, replacement}));
  ASSERT_EQ(effects.findings.size(), 1U);
  EXPECT_EQ(effects.findings[0].kind, Finding::Kind::kReplaced);
  EXPECT_EQ(fleet.ledger.Find(kNode1)->mode, NodeMode::kRetired);
  EXPECT_EQ(FindByName(fleet.ledger, "node1")->key, replacement);
  EXPECT_EQ(HolderOf(fleet.ledger, A("10.1.0.4"))->key, kNode1);
  EXPECT_FALSE(PlanNode(fleet, kNode1, kNow).Stores());
  // A report of the old VM still counts for its own record only.
  OnReport(fleet, kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  EXPECT_EQ(CountAddresses(*fleet.ledger.Find(replacement)).in_use, 0U);
}

TEST(Fleet, AConflictPutsTheAddressIntoQuarantineAndAsksForIt) {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  const Effects effects = OnConflict(fleet, kNode1, A("10.1.0.4"), "00:0d:3a:00:00:09", kNow);
  EXPECT_EQ(effects.quarantined, std::set{A("10.1.0.4")});
  EXPECT_EQ(effects.reclaim.at(kNode1), std::vector{One("10.1.0.4")});
  EXPECT_NE(fleet.ledger.quarantine().entries.at(A("10.1.0.4")).reason.find("00:0d:3a:00:00:09"),
            std::string::npos);
  // What is none of its own an agent cannot put away.
  EXPECT_FALSE(OnConflict(fleet, kNode2, A("10.1.0.5"), "", kNow).Stores());

  OnReclaimAnswer(fleet, kNode1, {.agreed = {One("10.1.0.4")}}, kNow);
  Attach(fleet, kNode1);
  EXPECT_EQ(fleet.ledger.pools().Covering(A("10.1.0.4"))->pool.StateOf(A("10.1.0.4")),
            AddressPool::State::kQuarantined);
}

TEST(Fleet, LoadRefusesADoubledOrOrphanedAddress) {
  const Fleet source = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  NodeRecord record = *source.ledger.Find(kNode1);

  Fleet fleet({Pool("default", "10.1.0.0/24")}, Policy());
  ASSERT_TRUE(fleet.ledger.Upsert(record).ok());
  record.key = kNode2;
  EXPECT_EQ(fleet.ledger.Upsert(record).status().code(), absl::StatusCode::kFailedPrecondition);

  Fleet other({Pool("default", "10.2.0.0/24")}, Policy());
  const absl::Status orphaned = other.ledger.Upsert(record).status();
  EXPECT_EQ(orphaned.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(orphaned.message()).find("restore the pool \"default\""),
            std::string::npos);
}

// The clock of the server before may have been hours behind.
TEST(Fleet, WhatWasInCooldownByTheLastTimeStoredHasAWholeOneAfterAStart) {
  for (const absl::Duration behind : {absl::ZeroDuration(), absl::Seconds(10), absl::Hours(10)}) {
    const absl::Time last = kNow - behind;
    NodeRecord record{.key = kNode1, .mode = NodeMode::kRetired};
    record.released[One("10.1.0.4")] = last - absl::Seconds(29);
    record.released[One("10.1.0.5")] = last - absl::Seconds(30);
    record.released[One("10.1.0.6")] = last;
    Fleet fleet({Pool("default", "10.1.0.0/24")}, Policy());
    ASSERT_TRUE(fleet.ledger.Upsert(record).ok());
    EXPECT_EQ(FinishLoading(fleet, kNow), std::set{kNode1});
    EXPECT_EQ(fleet.ledger.Find(kNode1)->released[One("10.1.0.4")], kNow);
    const AddressPool& pool = fleet.ledger.pools()[0].pool;
    EXPECT_EQ(pool.StateOf(A("10.1.0.5")), AddressPool::State::kFree);
    Expire(fleet, kNow + absl::Seconds(29));
    EXPECT_EQ(pool.StateOf(A("10.1.0.4")), AddressPool::State::kCooldown);
    EXPECT_EQ(pool.StateOf(A("10.1.0.6")), AddressPool::State::kCooldown);
    Expire(fleet, kNow + absl::Seconds(30));
    EXPECT_EQ(pool.StateOf(A("10.1.0.4")), AddressPool::State::kFree);
    EXPECT_EQ(pool.StateOf(A("10.1.0.6")), AddressPool::State::kFree);
  }
}

// A server that attaches has seen that time, whatever it releases.
TEST(Fleet, WhatWasAttachedSinceShowsThatACooldownIsOver) {
  NodeRecord record = *WithAttachedNode({Pool("default", "10.1.0.0/24")}).ledger.Find(kNode1);
  record.released[One("10.1.0.200")] = kNow - absl::Seconds(30);
  Fleet fleet({Pool("default", "10.1.0.0/24")}, Policy());
  ASSERT_TRUE(fleet.ledger.Upsert(record).ok());
  FinishLoading(fleet, kNow + absl::Seconds(5));
  EXPECT_EQ(fleet.ledger.pools()[0].pool.StateOf(A("10.1.0.200")), AddressPool::State::kFree);
}

// A machine has booted, and its agent does not know what the pods before used: it is told when that
// may be assigned, by another server, whose clock may be hours ahead.
TEST(Fleet, WhatCoolsOnANodeHasAWholeCooldownAfterAStart) {
  for (const absl::Duration ahead : {absl::ZeroDuration(), absl::Seconds(10), absl::Hours(10)}) {
    NodeRecord record = *WithAttachedNode({Pool("default", "10.1.0.0/24")}).ledger.Find(kNode1);
    Slot& slot = record.configurations.begin()->second.slots.front();
    slot.use = Use::kCooldown;
    slot.since = kNow;
    Fleet fleet({Pool("default", "10.1.0.0/24")}, Policy());
    ASSERT_TRUE(fleet.ledger.Upsert(record).ok());
    FinishLoading(fleet, kNow + ahead);
    const NodeRecord& loaded = *fleet.ledger.Find(kNode1);
    EXPECT_EQ(loaded.configurations.begin()->second.slots.front().since, kNow + ahead);
  }
}

TEST(Fleet, AfterAStartACooldownGoesOnAndTheRecordOfAReplacedMachineStays) {
  NodeRecord record{.key = kNode1, .mode = NodeMode::kRetired};
  record.released[One("10.1.0.4")] = kNow - absl::Seconds(10);
  Fleet fleet({Pool("default", "10.1.0.0/24")}, Policy());
  ASSERT_TRUE(fleet.ledger.Upsert(record).ok());
  FinishLoading(fleet, kNow);
  EXPECT_EQ(fleet.ledger.pools()[0].pool.StateOf(A("10.1.0.4")), AddressPool::State::kCooldown);
  EXPECT_FALSE(Expire(fleet, kNow + absl::Seconds(29)).Stores());
  const Effects effects = Expire(fleet, kNow + absl::Seconds(30));
  EXPECT_EQ(effects.changed, std::set{kNode1});
  EXPECT_EQ(fleet.ledger.pools()[0].pool.StateOf(A("10.1.0.4")), AddressPool::State::kFree);
  ASSERT_NE(fleet.ledger.Find(kNode1), nullptr) << "the cloud has not said that it is gone";
  EXPECT_TRUE(fleet.ledger.Find(kNode1)->released.empty());
  const absl::Time end = kNow + fleet.policy.replaced_stays;
  EXPECT_FALSE(Expire(fleet, end - absl::Seconds(1)).Stores());
  EXPECT_EQ(Expire(fleet, end).changed, std::set{kNode1});
  EXPECT_EQ(fleet.ledger.Find(kNode1), nullptr);
}

TEST(Fleet, NoAddressIsEverHeldTwiceWhateverComes) {
  testing_support::Random random;
  PoolSpec blocks = Pool("blocks", "10.1.1.0/25");
  blocks.block_length = 28;
  blocks.node_labels = {{"blocks", "yes"}};
  Fleet fleet({Pool("default", "10.1.0.0/26"), blocks}, Policy());
  absl::Time now = kNow;
  for (int step = 0; step < testing_support::kRandomCases; ++step) {
    const NodeKey key{"node" + std::to_string(random.Between(0, 4)),
                      "vm" + std::to_string(random.Between(0, 1))};
    const ip::Address any = ip::Advance(A("10.1.0.0"), random.Between(0, 383));
    now += absl::Seconds(static_cast<int64_t>(random.Between(0, 40)));
    switch (random.Between(0, 9)) {
      case 0: {
        node_api::Hello hello = HelloOf(key, "boot" + std::to_string(random.Between(0, 1)));
        if (random.OneIn(2)) hello.node.labels = {{"blocks", "yes"}};
        if (random.OneIn(2)) hello.in_use = {AssignmentOf(any, random.Between(0, 8))};
        OnHello(fleet, hello, now);
        break;
      }
      case 1:
        OnReport(fleet, key,
                 {.in_use = {AssignmentOf(any, random.Between(0, 8))},
                  .released = {{any, random.Between(0, 8)}},
                  .cooled = {any}},
                 now);
        break;
      case 2:
        if (fleet.ledger.Find(key) != nullptr) Attach(fleet, key, now);
        break;
      case 3: {
        const Effects effects = ReviewNode(fleet, key, {.jitter = random.Fraction()}, now);
        for (const auto& [node, ranges] : effects.reclaim) {
          OnReclaimAnswer(fleet, node, {.agreed = ranges}, now);
        }
        break;
      }
      case 4:
        OnReclaimAnswer(fleet, key, {.agreed = {ip::Prefix::Host(any)}}, now);
        break;
      case 5:
        Expire(fleet, now);
        break;
      case 6:
        (void)SetMode(fleet, key.name, random.OneIn(2) ? NodeMode::kDraining : NodeMode::kActive,
                      now);
        break;
      case 7: {
        std::optional<Quarantine> quarantine;
        if (random.OneIn(2)) quarantine = {.reason = "test", .since = now};
        (void)SetQuarantine(fleet, any, quarantine, now);
        break;
      }
      case 8:
        OnDemand(fleet, key, {.waiting = {{"web", static_cast<uint32_t>(random.Between(0, 40))}}},
                 now);
        break;
      default: {
        std::set<NodeKey> present;
        for (const auto& [node, record] : fleet.ledger.nodes()) {
          if (!random.OneIn(4)) present.insert(node);
        }
        OnListing(fleet, present, {}, now);
        if (random.OneIn(4)) LiftFreeze(fleet, now);
      }
    }
    if (step % 16 == 0) CheckInvariants(fleet.ledger);
  }
}

}  // namespace
}  // namespace spoke::ipam
