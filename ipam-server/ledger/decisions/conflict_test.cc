// Addresses that two have at once.
#include "ipam-server/ledger/decisions/conflict.h"

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/expire.h"
#include "ipam-server/ledger/decisions/hello.h"
#include "ipam-server/ledger/decisions/quarantine.h"
#include "ipam-server/ledger/decisions/reclaim.h"
#include "ipam-server/ledger/decisions/report.h"
#include "ipam-server/ledger/decisions/testing/fleet_for_test.h"

namespace spoke::ipam {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kMac2 = "00:0d:3a:00:00:02";

ip::MacAddress Mac(std::string_view text) { return ip::MacAddress::Parse(text).value(); }

// Both nodes have said hello and have addresses: node1 from 10.1.0.4 on, node2 from 10.1.0.8 on.
Fleet WithTwoNodes() {
  Fleet fleet = WithAttachedNode({Pool("default", "10.1.0.0/24")});
  node_api::Hello hello = HelloOf(kNode2);
  hello.nic.mac = Mac(kMac2);
  OnHello(fleet, hello, kNow);
  Attach(fleet, kNode2);
  return fleet;
}

TEST(FleetConflicts, AReportNamesTheNodeAndWhoseNicAnswers) {
  Fleet fleet = WithTwoNodes();
  OnConflict(fleet, kNode1, A("10.1.0.4"), kMac2, kNow);
  ASSERT_THAT(fleet.doubled, SizeIs(1));
  const DoubledAddress& doubled = fleet.doubled.at(A("10.1.0.4"));
  EXPECT_EQ(doubled.holders,
            "node node1 holds it, and 00:0d:3a:00:00:02 (the NIC of node node2) answers for it");
  EXPECT_EQ(fleet.ledger.quarantine().entries.at(A("10.1.0.4")).reason, doubled.holders);

  OnConflict(fleet, kNode1, A("10.1.0.5"), "02:00:00:00:00:99", kNow);
  EXPECT_EQ(fleet.doubled.at(A("10.1.0.5")).holders,
            "node node1 holds it, and 02:00:00:00:00:99 answers for it");
  OnConflict(fleet, kNode1, A("10.1.0.6"), "", kNow);
  EXPECT_THAT(fleet.doubled.at(A("10.1.0.6")).holders, HasSubstr("another NIC answers"));
  OnConflict(fleet, kNode1, A("10.1.0.8"), kMac2, kNow);
  EXPECT_THAT(fleet.doubled, SizeIs(3)) << "it speaks of what is not its own";
}

TEST(FleetConflicts, ItIsOverWithItsQuarantine) {
  Fleet fleet = WithTwoNodes();
  OnConflict(fleet, kNode1, A("10.1.0.4"), kMac2, kNow);
  OnConflict(fleet, kNode1, A("10.1.0.4"), kMac2, kNow + absl::Minutes(5));
  Expire(fleet, kNow + absl::Minutes(14));
  EXPECT_THAT(fleet.doubled, SizeIs(1));
  Expire(fleet, kNow + absl::Minutes(15));
  EXPECT_THAT(fleet.doubled, IsEmpty());
  EXPECT_THAT(fleet.ledger.quarantine().entries, IsEmpty());

  OnConflict(fleet, kNode1, A("10.1.0.4"), kMac2, kNow);
  ASSERT_TRUE(SetQuarantine(fleet, A("10.1.0.4"), std::nullopt, kNow).ok());
  EXPECT_THAT(fleet.doubled, IsEmpty()) << "an operator has looked at it";
}

TEST(FleetConflicts, WhatIsNotPutAwayIsNamedAllTheSameAndEnds) {
  Fleet fleet({Pool("default", "10.1.0.0/24")}, Policy());
  node_api::Hello hello = HelloOf(kNode1);
  for (uint64_t i = 0; i < 30; ++i) {
    hello.in_use.push_back(
        AssignmentOf(ip::Advance(A("10.1.0.4"), i), i + 1, fmt::format("c{}", i)));
  }
  OnHello(fleet, hello, kNow);
  Attach(fleet, kNode1);
  for (const node_api::Assignment& assignment : hello.in_use)
    OnConflict(fleet, kNode1, assignment.address, kMac2, kNow);
  EXPECT_THAT(fleet.ledger.quarantine().entries, SizeIs(Policy().conflict.per_node));
  EXPECT_THAT(fleet.doubled, SizeIs(30));
  Expire(fleet, kNow + absl::Minutes(10));
  EXPECT_THAT(fleet.doubled, IsEmpty());
}

TEST(FleetConflicts, ItOutlivesARestartAsLongAsItsQuarantineDoes) {
  Fleet fleet = WithTwoNodes();
  OnConflict(fleet, kNode1, A("10.1.0.4"), kMac2, kNow);
  Fleet next({Pool("default", "10.1.0.0/24")}, Policy());
  for (const auto& [address, quarantine] : fleet.ledger.quarantine().entries) {
    next.ledger.SetQuarantine(address, quarantine);
  }
  FinishLoading(next, kNow);
  EXPECT_EQ(next.doubled.at(A("10.1.0.4")).holders, fleet.doubled.at(A("10.1.0.4")).holders);
  Expire(next, kNow + absl::Minutes(10));
  EXPECT_THAT(next.doubled, IsEmpty());
}

TEST(FleetConflicts, TwoNodesThatSayTheyHaveItAreBothNamed) {
  Fleet fleet = WithTwoNodes();
  OnReport(fleet, kNode1, {.in_use = {AssignmentOf(A("10.1.0.4"), 1)}}, kNow);
  node_api::Hello hello = HelloOf(kNode2);
  hello.in_use = {AssignmentOf(A("10.1.0.4"), 7)};
  OnHello(fleet, hello, kNow);
  EXPECT_EQ(fleet.doubled.at(A("10.1.0.4")).holders,
            "node node1 holds it for a pod, and node node2 has a pod that uses it");
  EXPECT_FALSE(fleet.ledger.quarantine().entries.contains(A("10.1.0.4")));
  OnConflict(fleet, kNode1, A("10.1.0.4"), "02:00:00:00:00:99", kNow);
  EXPECT_THAT(fleet.doubled.at(A("10.1.0.4")).holders, HasSubstr("node2")) << "it says more";
  Expire(fleet, kNow + absl::Hours(24));
  EXPECT_THAT(fleet.doubled, SizeIs(1)) << "as long as it says so";

  OnReport(fleet, kNode2, {.released = {{.address = A("10.1.0.4"), .generation = 7}}}, kNow);
  EXPECT_THAT(fleet.doubled, IsEmpty());
}

TEST(FleetConflicts, AClaimEndsWithTheSessionThatSaidItOrWithEitherNode) {
  Fleet fleet = WithTwoNodes();
  node_api::Hello hello = HelloOf(kNode2);
  hello.in_use = {AssignmentOf(A("10.1.0.4"), 7)};
  OnHello(fleet, hello, kNow);
  EXPECT_THAT(fleet.doubled, SizeIs(1));
  OnHello(fleet, HelloOf(kNode2), kNow);
  EXPECT_THAT(fleet.doubled, IsEmpty());

  OnReport(fleet, kNode2, {.in_use = {AssignmentOf(A("10.1.0.4"), 8)}}, kNow);
  EXPECT_THAT(fleet.doubled, SizeIs(1));
  OnReclaimAnswer(fleet, kNode1, {.agreed = {One("10.1.0.4")}}, kNow);
  Attach(fleet, kNode1);
  Expire(fleet, kNow + absl::Seconds(1));
  EXPECT_THAT(fleet.doubled, IsEmpty()) << "node1 does not hold it any more";
}

TEST(FleetConflicts, AnAgentThatClaimsEverythingHidesNobody) {
  Fleet fleet({Pool("default", "10.1.0.0/24")}, Policy());
  node_api::Hello first = HelloOf(kNode1);
  node_api::Hello liar = HelloOf(kNode2);
  for (uint64_t i = 0; i < 100; ++i) {
    first.in_use.push_back(
        AssignmentOf(ip::Advance(A("10.1.0.4"), i), i + 1, fmt::format("c{}", i)));
  }
  liar.in_use = first.in_use;
  OnHello(fleet, first, kNow);
  OnHello(fleet, liar, kNow);
  EXPECT_THAT(fleet.doubled, SizeIs(16));
  OnConflict(fleet, kNode1, A("10.1.0.103"), "02:00:00:00:00:99", kNow);
  EXPECT_THAT(fleet.doubled.at(A("10.1.0.103")).holders,
              AllOf(HasSubstr("node1"), HasSubstr("02:00:00:00:00:99")));
}

TEST(FleetConflicts, WhatAgentsSaidOutlivesAStoreThatIsReadAgain) {
  Fleet fleet = WithTwoNodes();
  OnConflict(fleet, kNode1, A("10.1.0.4"), kMac2, kNow);
  Fleet loaded = WithTwoNodes();
  TakeUnstored(loaded, fleet);
  EXPECT_EQ(loaded.doubled, fleet.doubled);
}

}  // namespace
}  // namespace spoke::ipam
