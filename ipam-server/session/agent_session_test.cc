#include "ipam-server/session/agent_session.h"

#include "gtest/gtest.h"
#include "ipam-server/ledger/decisions/hello.h"
#include "ipam-server/ledger/decisions/nic.h"
#include "ipam-server/ledger/decisions/reclaim.h"
#include "ipam-server/ledger/decisions/report.h"
#include "ipam-server/ledger/testing/hello_for_test.h"
#include "lib/node_checks/check_ids.h"

namespace spoke::ipam {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
const NodeKey kNode{"node1", "vm-1"};

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }
ip::Prefix One(std::string_view text) { return ip::Prefix::Host(A(text)); }

class NextDesiredTest : public testing::Test {
 protected:
  NextDesiredTest() {
    OnHello(fleet_, {.node = IdentityOf(kNode)}, kNow);
    OnNic(fleet_, kNode, {{"spoke-1", One("10.1.0.4")}, {"spoke-2", One("10.1.0.5")}}, kNow);
  }
  node_api::DesiredState Next(absl::Time now = kNow) {
    return NextDesired(fleet_, *fleet_.ledger.Find(kNode), now, session_);
  }

  Fleet fleet_{
      {{.name = "default", .cidr = ip::Prefix::Parse("10.1.0.0/28").value()}},
      {.target = {.min = 4, .batch = 4, .spare = 0, .max = 8}, .cooldown = absl::Seconds(30)}};
  Session session_;
};

TEST_F(NextDesiredTest, TheFirstIsFullAndHoldsWhatIsAttachedOnly) {
  const node_api::DesiredState desired = Next();
  EXPECT_TRUE(desired.full);
  EXPECT_EQ(desired.version, 1U);
  ASSERT_EQ(desired.added.size(), 2U);
  EXPECT_EQ(desired.added[0].range, One("10.1.0.4"));
  EXPECT_EQ(
      desired.pools,
      (std::vector<node_api::PoolState>{{"default", "10.1.0.0/28", 11, 4, 7, {}, A("10.1.0.15")}}));
}

TEST_F(NextDesiredTest, LaterOnesHoldTheDifference) {
  Next();
  OnNic(fleet_, kNode,
        {{"spoke-1", One("10.1.0.4")}, {"spoke-2", One("10.1.0.5")}, {"spoke-3", One("10.1.0.6")}},
        kNow);
  const node_api::DesiredState desired = Next();
  EXPECT_FALSE(desired.full);
  EXPECT_EQ(desired.version, 2U);
  ASSERT_EQ(desired.added.size(), 1U);
  EXPECT_EQ(desired.added[0].range, One("10.1.0.6"));
  EXPECT_TRUE(desired.removed.empty());
}

TEST_F(NextDesiredTest, WhatTheAgentGaveUpIsTakenFromItsListAtOnce) {
  Next();
  OnReclaimAnswer(fleet_, kNode, {.agreed = {One("10.1.0.5")}}, kNow);
  EXPECT_EQ(Next().removed, std::vector{One("10.1.0.5")});
}

TEST_F(NextDesiredTest, AFullOneSaysEverythingAnew) {
  Next();
  session_.full_due = true;
  const node_api::DesiredState desired = Next();
  EXPECT_TRUE(desired.full);
  EXPECT_EQ(desired.version, 2U);
  EXPECT_EQ(desired.added.size(), 2U);
  EXPECT_FALSE(session_.full_due);
}

TEST_F(NextDesiredTest, AFullOneHasWhatTheAgentIsAskedForIfItWasToldOfIt) {
  Next();
  session_.reclaim_asked = {One("10.1.0.4")};
  session_.full_due = true;
  EXPECT_EQ(Next().added.size(), 2U) << "what it gave up stays given up";
  session_.told = {One("10.1.0.5")};
  session_.full_due = true;
  const node_api::DesiredState desired = Next();
  EXPECT_TRUE(desired.full);
  ASSERT_EQ(desired.added.size(), 1U);
  EXPECT_EQ(desired.added[0].range, One("10.1.0.5"));
}

TEST_F(NextDesiredTest, AddressesOfTheLastBootAreInCooldownForTheRestOfTheirTime) {
  OnReport(fleet_, kNode, {.in_use = {{.address = A("10.1.0.4"), .generation = 1, .since = kNow}}},
           kNow);
  OnHello(fleet_, {.node = IdentityOf(kNode, "next")}, kNow);
  const node_api::DesiredState desired = Next(kNow + absl::Seconds(10));
  EXPECT_EQ(desired.added[0].cooldown, absl::Seconds(20));
  EXPECT_EQ(desired.added[1].cooldown, absl::ZeroDuration());
  session_.full_due = true;
  EXPECT_EQ(Next(kNow + absl::Seconds(30)).added[0].cooldown, absl::Milliseconds(1))
      << "else the agent would never say that it is over";
}

TEST(ReconnectWithin, AFleetComesBackAThousandASecondAndAFewNodesAsTheyLike) {
  EXPECT_EQ(ReconnectWithin(0), absl::ZeroDuration());
  EXPECT_EQ(ReconnectWithin(3000), absl::ZeroDuration());
  EXPECT_EQ(ReconnectWithin(7500), absl::Milliseconds(7500));
}

node_api::NodeFinding Found(std::string check, std::string object, bool blocking = false) {
  return {.check = std::move(check),
          .blocking = blocking,
          .object = std::move(object),
          .what = "is not well",
          .remedy = "mend it"};
}

TEST(WarningsOf, ACheckWarnsOnceAndSinceItsFirstFinding) {
  const size_t dns = node_checks::PlaceOfCheck("dns-node");
  const size_t mtu = node_checks::PlaceOfCheck("mtu");
  ASSERT_LT(dns, node_checks::kCheckIds.size());
  const auto first = WarningsOf({Found("forwarding", "net.ipv4.ip_forward", /*blocking=*/true),
                                 Found("dns-node", "10.0.0.1"), Found("dns-node", "10.0.0.2")},
                                {}, kNow);
  EXPECT_EQ(first, (std::vector<Warning>{{dns, kNow}}));
  const absl::Time later = kNow + absl::Minutes(5);
  const auto second =
      WarningsOf({Found("mtu", "eth0"), Found("dns-node", "10.0.0.2")}, first, later);
  EXPECT_EQ(second, (std::vector<Warning>{{mtu, later}, {dns, kNow}}));
  const auto third = WarningsOf({Found("mtu", "eth0")}, second, later + absl::Minutes(1));
  EXPECT_EQ(third, (std::vector<Warning>{{mtu, later}}));
  const absl::Time again = later + absl::Minutes(2);
  EXPECT_EQ(WarningsOf({Found("dns-node", "10.0.0.2")}, third, again),
            (std::vector<Warning>{{dns, again}}))
      << "what was over begins anew";
}

TEST(WarningsOf, ACheckThatIsNewHereWarnsSinceItsAgentFoundItFirst) {
  const size_t dns = node_checks::PlaceOfCheck("dns-node");
  auto younger = Found("dns-node", "10.0.0.1");
  younger.age = absl::Minutes(1);
  auto older = Found("dns-node", "10.0.0.2");
  older.age = absl::Minutes(40);
  // As after another server has begun to lead.
  EXPECT_EQ(WarningsOf({younger, older}, {}, kNow),
            (std::vector<Warning>{{dns, kNow - absl::Minutes(40)}}));
  // What is known stays, whatever the agent says later: its clock may have been set.
  EXPECT_EQ(WarningsOf({younger}, {{dns, kNow - absl::Minutes(40)}}, kNow + absl::Minutes(1)),
            (std::vector<Warning>{{dns, kNow - absl::Minutes(40)}}));
}

TEST(WarningsOf, ChecksThatAreNotKnownAreOne) {
  const size_t unknown = node_checks::kCheckIds.size();
  EXPECT_EQ(WarningsOf({Found("of-tomorrow", "a"), Found("of-today", "b")}, {}, kNow),
            (std::vector<Warning>{{unknown, kNow}}));
}

}  // namespace
}  // namespace spoke::ipam
