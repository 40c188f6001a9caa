#include "netagent/verification/conflict_detector.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/attach/attachments_fixture.h"
#include "netagent/verification/testing/fake_neighbour_watch.h"

namespace spoke::netagent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr ip::MacAddress kTheirs{{0, 0x0D, 0x3A, 1, 2, 3}};
const AttachmentKey kPodA{"aaa", "eth0"};
const AttachmentKey kPodB{"bbb", "eth0"};

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

class ConflictDetectorTest : public AttachmentsFixture {
 protected:
  ConflictDetectorTest() { NewDetector(); }
  void NewDetector() {
    detector_.emplace(ConflictDetector::Edges{neighbours_, clock_, log_}, *attachments_);
  }
  void NewAgent() {
    detector_.reset();
    Restart();
    NewDetector();
  }
  // Lets the server list these, and the agent look at them as it does before it assigns.
  void Grant(const std::vector<std::string>& addresses) {
    node_api::DesiredState desired{.version = 1, .full = true};
    for (const std::string& address : addresses)
      desired.added.push_back({.range = ip::Prefix::Host(A(address)), .pool = "default"});
    desired.pools = {{.name = "default", .cidr = "10.1.0.0/24", .unused = A("10.1.0.255")}};
    ASSERT_TRUE(attachments_->OnDesired(desired).ok());
    detector_->Tick();
  }
  void Pass(absl::Duration time) {
    const absl::Time end = clock_.Now() + time;
    while (detector_->NextWake() <= end) {
      clock_.Advance(std::max(detector_->NextWake() - clock_.Now(), absl::ZeroDuration()));
      detector_->Tick();
    }
    clock_.Advance(end - clock_.Now());
    detector_->Tick();
  }
  size_t TimesAsked(std::string_view address) const {
    size_t times = 0;
    for (const Question& question : neighbours_.asked) {
      times += question.address == A(address) ? 1 : 0;
    }
    return times;
  }

  FakeNeighbourWatch neighbours_;
  std::optional<ConflictDetector> detector_;
};

TEST_F(ConflictDetectorTest, WhatIsAttachedIsAskedAboutAndOnlyConflictsAreKeptFromPods) {
  neighbours_.holders[A("10.1.0.5")] = kTheirs;
  Grant({"10.1.0.5", "10.1.0.6"});
  Pass(absl::Seconds(2));
  EXPECT_THAT(server_.conflicts, ElementsAre(node_api::ConflictReport{A("10.1.0.5"), kTheirs}));
  EXPECT_EQ(log_.Count("address_in_conflict"), 1);
  EXPECT_THAT(Add({.key = kPodA})->addresses, ElementsAre(A("10.1.0.6")));
  EXPECT_FALSE(Add({.key = kPodB}).ok());
}

TEST_F(ConflictDetectorTest, AnAddWaitsForNoQuestionButTakesWhatIsKnownToBeGoodFirst) {
  Grant({"10.1.0.6"});
  Pass(absl::Seconds(2));
  ASSERT_TRUE(Add({.key = kPodA}).ok());
  neighbours_.failure = absl::UnavailableError("the device is down");
  Grant({"10.1.0.5", "10.1.0.6"});
  ASSERT_TRUE(attachments_->Del(kPodA).ok());
  clock_.Advance(absl::Seconds(31));
  attachments_->Tick();
  Pass(absl::Seconds(1));
  EXPECT_THAT(Add({.key = kPodA})->addresses, ElementsAre(A("10.1.0.6")))
      << "the other one has been idle for longer, but nobody knows who else has it";
  EXPECT_THAT(Add({.key = kPodB})->addresses, ElementsAre(A("10.1.0.5"))) << "there is no other";
}

TEST_F(ConflictDetectorTest, APodKeepsWhatAnotherMachineClaims) {
  Grant({"10.1.0.5"});
  Pass(absl::Seconds(2));
  ASSERT_TRUE(Add({.key = kPodA}).ok());
  neighbours_.Pass(FakeNeighbourWatch::Has(A("10.1.0.5"), kTheirs));
  Pass(absl::Seconds(1));
  EXPECT_THAT(server_.conflicts, ElementsAre(node_api::ConflictReport{A("10.1.0.5"), kTheirs}));
  EXPECT_TRUE(HasLink(kPodA));
  EXPECT_TRUE(attachments_->assignments().IsAssigned(A("10.1.0.5")));
}

TEST_F(ConflictDetectorTest, WhoAsksAboutAPodsAddressIsAnsweredAndReported) {
  Grant({"10.1.0.5", "10.1.0.6"});
  Pass(absl::Seconds(2));
  const ip::Address in_use = Add({.key = kPodA})->addresses.at(0);
  const ip::Address available = in_use == A("10.1.0.5") ? A("10.1.0.6") : A("10.1.0.5");
  for (int i = 0; i < 3; ++i) {
    neighbours_.Pass(FakeNeighbourWatch::Asks(in_use, kTheirs));
    neighbours_.Pass(FakeNeighbourWatch::Asks(available, kTheirs));
    neighbours_.Pass(FakeNeighbourWatch::Asks(A("10.1.0.77"), kTheirs));
  }
  Pass(absl::Seconds(1));
  EXPECT_THAT(neighbours_.answered, ElementsAre(std::pair(in_use, kTheirs)))
      << "once a look, and only for what a pod uses";
  EXPECT_THAT(server_.conflicts, SizeIs(2));
}

TEST_F(ConflictDetectorTest, WhatIsBeingGivenUpMayBeAnothersAlready) {
  Grant({"10.1.0.5"});
  Pass(absl::Seconds(2));
  attachments_->OnReclaim({1, {ip::Prefix::Host(A("10.1.0.5"))}});
  Pass(absl::Seconds(1));
  neighbours_.Pass(FakeNeighbourWatch::Asks(A("10.1.0.5"), kTheirs));
  Pass(absl::Seconds(1));
  EXPECT_THAT(server_.conflicts, IsEmpty());
  EXPECT_THAT(neighbours_.answered, IsEmpty());
}

TEST_F(ConflictDetectorTest, AConflictIsToldAgainWhileItLastsAndIsOverAfterwards) {
  neighbours_.holders[A("10.1.0.5")] = kTheirs;
  Grant({"10.1.0.5"});
  Pass(absl::Minutes(5));
  EXPECT_THAT(server_.conflicts, SizeIs(3));
  neighbours_.holders.clear();
  Pass(absl::Minutes(12));
  EXPECT_EQ(log_.Count("address_conflict_over"), 1);
  EXPECT_TRUE(Add({.key = kPodA}).ok());
}

TEST_F(ConflictDetectorTest, AConflictOutlivesTheAgentAndIsAskedAboutByTheNext) {
  neighbours_.holders[A("10.1.0.5")] = kTheirs;
  Grant({"10.1.0.5"});
  Pass(absl::Seconds(2));
  NewAgent();
  Pass(absl::Seconds(2));
  EXPECT_FALSE(Add({.key = kPodA}).ok());
  neighbours_.asked.clear();
  Grant({"10.1.0.5"});
  Pass(absl::Seconds(2));
  EXPECT_EQ(TimesAsked("10.1.0.5"), 3U);
  EXPECT_FALSE(Add({.key = kPodA}).ok());
}

TEST_F(ConflictDetectorTest, ANetworkThatAnswersForEverythingIsSaidAndNotBelieved) {
  neighbours_.proxy = kTheirs;
  Grant({"10.1.0.5"});
  Pass(absl::Seconds(2));
  EXPECT_THAT(server_.conflicts, IsEmpty());
  EXPECT_EQ(log_.Count("proxy_on_network"), 1);
  EXPECT_TRUE(Add({.key = kPodA}).ok());
}

TEST_F(ConflictDetectorTest, ANetworkThatCannotBeAskedHoldsUpNobodyAndIsAskedLater) {
  neighbours_.failure = absl::UnavailableError("the device is down");
  Grant({"10.1.0.5"});
  Pass(absl::Seconds(30));
  EXPECT_EQ(log_.Count("neighbours_not_asked"), 1) << "said once";
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("the device is down")));
  EXPECT_TRUE(Add({.key = kPodA}).ok());
  neighbours_.failure = absl::OkStatus();
  neighbours_.holders[A("10.1.0.5")] = kTheirs;
  Pass(absl::Seconds(15));
  EXPECT_THAT(server_.conflicts, Not(IsEmpty()));
}

TEST_F(ConflictDetectorTest, AnAgentThatBeginsWithoutTheServerHearsAllTheSame) {
  Grant({"10.1.0.5"});
  Pass(absl::Seconds(2));
  neighbours_ = FakeNeighbourWatch();
  NewAgent();
  Pass(absl::Seconds(1));
  EXPECT_THAT(neighbours_.asked, IsEmpty()) << "nobody has said which address is unused";
  neighbours_.Pass(FakeNeighbourWatch::Has(A("10.1.0.5"), kTheirs));
  Pass(absl::Seconds(1));
  EXPECT_THAT(server_.conflicts, SizeIs(1));
}

TEST_F(ConflictDetectorTest, AServerThatNamesNoUnusedAddressLeavesItToHearing) {
  node_api::DesiredState desired{.version = 1, .full = true};
  desired.added = {{.range = ip::Prefix::Host(A("10.1.0.5")), .pool = "default"}};
  desired.pools = {{.name = "default", .cidr = "10.1.0.0/24"}};
  ASSERT_TRUE(attachments_->OnDesired(desired).ok());
  Pass(absl::Seconds(5));
  EXPECT_THAT(neighbours_.asked, IsEmpty());
  EXPECT_TRUE(Add({.key = kPodA}).ok());
  neighbours_.Pass(FakeNeighbourWatch::Has(A("10.1.0.5"), kTheirs));
  Pass(absl::Seconds(1));
  EXPECT_THAT(server_.conflicts, SizeIs(1));
}

}  // namespace
}  // namespace spoke::netagent
