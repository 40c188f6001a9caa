// The loop with a cloud that chooses the addresses.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/audit/audit_job.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/loop/testing/fleet_loop_for_test.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kInstance = "/subscriptions/s/vm/1";

class ChoosingCloudTest : public FleetLoopTest {
 protected:
  ChoosingCloudTest() {
    settings_.fleet.cloud_chooses = true;
    cloud_.ChooseFrom(ip::Prefix::Parse("10.1.0.0/24").value());
    loop_ = NewLoop();
  }
  // The node looks at its NIC, wants two addresses, and gets them.
  void Join() {
    Greet(1);
    AnswerCloud();
    AnswerCloud();
    ASSERT_EQ(CountAddresses(Stored()), (AddressCounts{.available = 2}));
  }
  void List() {
    loop_->PostListing(cloud_.nics(), [](const std::string&) { return true; });
    Step();
  }
};

TEST_F(ChoosingCloudTest, LooksThenAsksByNameThenTellsTheAgent) {
  Greet(1);
  ASSERT_THAT(cloud_.waiting(), SizeIs(1));
  EXPECT_THAT(cloud_.waiting()[0].wanted, IsEmpty());
  EXPECT_EQ(cloud_.waiting()[0].instance, kInstance);
  EXPECT_EQ(cloud_.waiting()[0].lane, CloudLane::kBlocking);
  AnswerCloud();
  ASSERT_THAT(cloud_.waiting(), SizeIs(1));
  EXPECT_THAT(cloud_.waiting()[0].wanted,
              ElementsAre(WantedConfiguration{"spoke-1", ip::Family::kV4, 32},
                          WantedConfiguration{"spoke-2", ip::Family::kV4, 32}));
  EXPECT_THAT(Stored().wanted, SizeIs(2)) << "names are stored before the cloud is asked";
  AnswerCloud();
  EXPECT_THAT(SentTo<node_api::DesiredState>(1).back().added, SizeIs(2));
  EXPECT_THAT(Stored().wanted, IsEmpty());
}

TEST_F(ChoosingCloudTest, ALostAnswerIsFoundByNameAfterARestart) {
  Greet(1);
  AnswerCloud();
  ASSERT_TRUE(cloud_.Apply(cloud_.waiting()[0]).ok());  // It is done, but nobody heard of it.
  cloud_.TakeWaiting();
  loop_ = NewLoop();
  Greet(2);
  AnswersTo (*mailboxes_.back())(kNode, cloud_.Apply(NicOf(Stored())));
  Step();
  EXPECT_EQ(CountAddresses(Stored()), (AddressCounts{.available = 2}));
  EXPECT_THAT(cloud_.nics()[0].configurations, SizeIs(2)) << "and not four";
}

TEST_F(ChoosingCloudTest, ReleaseIsByName) {
  Join();
  loop_->PostChange(
      [this](ServerState& state, RawRecords&) -> absl::StatusOr<Effects> {
        return SetMode(state.fleet, "node1", NodeMode::kDraining, clock_.Now());
      },
      [](const absl::Status&) {});
  Step();
  const auto asked = SentTo<node_api::ReclaimRequest>(1);
  ASSERT_THAT(asked, SizeIs(1));
  loop_->PostFromAgent(ReclaimAnswerEvent{1, {.id = asked[0].id, .agreed = asked[0].ranges}});
  Step();
  ASSERT_THAT(cloud_.waiting(), SizeIs(1));
  EXPECT_THAT(cloud_.waiting()[0].removing, SizeIs(2));
  EXPECT_EQ(cloud_.waiting()[0].lane, CloudLane::kRelease);
  AnswerCloud();
  EXPECT_THAT(cloud_.nics()[0].configurations, IsEmpty());
}

TEST_F(ChoosingCloudTest, AListingThatDiffersOnlyMakesItLook) {
  Join();
  List();
  EXPECT_THAT(cloud_.waiting(), IsEmpty());
  cloud_.Plant(NicOf(Stored()),
               {"spoke-x", ip::Prefix::Host(ip::Address::Parse("10.1.0.77").value())});
  List();
  ASSERT_THAT(cloud_.waiting(), SizeIs(1));
  AnswerCloud();
  EXPECT_EQ(CountAddresses(Stored()).available, 2U) << "nobody asked for it: it may be on its way";
  clock_.Advance(settings_.fleet.cooldown);
  Step();
  ASSERT_THAT(cloud_.waiting(), SizeIs(1)) << "it looks again";
  AnswerCloud();
  EXPECT_EQ(CountAddresses(Stored()).available, 3U);
}

TEST_F(ChoosingCloudTest, AnEmptyListingTakesNothing) {
  Join();
  for (int i = 0; i < 3; ++i) {
    loop_->PostListing({}, [](const std::string&) { return true; });
    loop_->PostFromAgent(ClosedEvent{1});
    Step();
  }
  EXPECT_EQ(CountAddresses(Stored()).available, 2U) << "all nodes at once: releases freeze";
  EXPECT_EQ(log_.Count("releases_frozen"), 1);
}

TEST_F(ChoosingCloudTest, NothingFollowsForAVmThatAListingDoesNotCover) {
  Join();
  loop_->PostFromAgent(ClosedEvent{1});
  for (int i = 0; i < 3; ++i) {
    loop_->PostListing({}, [](const std::string& instance) { return instance != kInstance; });
    Step();
  }
  EXPECT_EQ(CountAddresses(Stored()).available, 2U);
  EXPECT_EQ(log_.Count("releases_frozen"), 0);
}

// A fleet that says hello to a new server would use up what the cloud grants.
TEST_F(ChoosingCloudTest, AHelloAfterAStartCostsNoCall) {
  Join();
  loop_->Stop();
  loop_->Run();
  loop_ = NewLoop();
  loop_->Begin();
  Step();
  Greet(2);
  EXPECT_THAT(cloud_.waiting(), IsEmpty());
}

// github.com/cilium/cilium/issues/16206: nodes with nothing to do cost no calls.
TEST_F(ChoosingCloudTest, ANodeThatHasItsTargetIsNotAskedForAgain) {
  Join();
  for (int i = 0; i < 600; ++i) {
    clock_.Advance(absl::Seconds(1));
    if (i % 300 == 0) List();
    Step();
    ASSERT_THAT(cloud_.waiting(), IsEmpty()) << "after " << i << " s";
  }
}

TEST_F(ChoosingCloudTest, WhatTheCloudForgotIsAskedAgain) {
  Greet(1);
  AnswerCloud();
  cloud_.TakeWaiting();  // They are lost.
  for (int i = 0; i < 70; ++i) {
    clock_.Advance(absl::Seconds(1));
    Step();
  }
  EXPECT_THAT(cloud_.waiting(), testing::Not(IsEmpty()));
}

// IPv6, which no server can see on the wire: the NIC's reading is all there is.
class ChoosingIpv6Test : public FleetLoopTest {
 protected:
  ChoosingIpv6Test() {
    settings_.fleet.cloud_chooses = true;
    settings_.pools = {{.name = "six", .cidr = ip::Prefix::Parse("fd00:10::/120").value()}};
    cloud_.ChooseFrom(settings_.pools[0].cidr);
    loop_ = NewLoop();
  }
  std::vector<ip::Prefix> AssignedIn(SessionId session) {
    std::vector<ip::Prefix> ranges;
    for (const node_api::DesiredState& desired : SentTo<node_api::DesiredState>(session)) {
      for (const auto& unit : desired.added) ranges.push_back(unit.range);
    }
    return ranges;
  }
  static node_api::Assignment Claim(std::string_view address) {
    return {.address = A(address),
            .generation = 1,
            .since = absl::UnixEpoch(),
            .lessee = {.container_id = "c", .ifname = "eth0"}};
  }
};

TEST_F(ChoosingIpv6Test, AnAddressIsAssignedOnceTheNicShowsIt) {
  Greet(1);
  AnswerCloud();
  ASSERT_THAT(Stored().wanted, SizeIs(2));
  EXPECT_THAT(AssignedIn(1), IsEmpty()) << "asked for, and not there yet";
  loop_ = NewLoop();
  Greet(2);
  EXPECT_THAT(AssignedIn(2), IsEmpty()) << "nor after a restart";
  AnswerCloud();
  EXPECT_THAT(AssignedIn(2), SizeIs(2));
}

TEST_F(ChoosingIpv6Test, WhatAnAgentClaimsIsNotAssignedBeforeTheNicShowsIt) {
  Greet(1, {Claim("fd00:10::77")});
  EXPECT_THAT(AssignedIn(1), IsEmpty());
  loop_ = NewLoop();
  Greet(2, {Claim("fd00:10::77")});
  EXPECT_THAT(AssignedIn(2), IsEmpty()) << "nor after a restart";
  cloud_.Plant(NicOf(Stored()), {"spoke-x", ip::Prefix::Host(A("fd00:10::77"))});
  AnswerCloud();
  EXPECT_THAT(AssignedIn(2), testing::Contains(ip::Prefix::Host(A("fd00:10::77"))));
}

}  // namespace
}  // namespace spoke::ipam
