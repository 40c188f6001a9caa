// Repeated, late and collected requests, and a kernel or journal that fails in the middle of one.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/attach/attachments_fixture.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const AttachmentKey kPodA{"aaa", "eth0"};
const AttachmentKey kPodB{"bbb", "eth0"};
const AttachmentKey kPodC{"ccc", "eth0"};

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

class AttachRequestsTest : public AttachmentsFixture {
 protected:
  AttachRequestsTest() {
    node_api::DesiredState desired{.version = 1, .full = true};
    for (const char* address : {"10.1.0.5", "10.1.0.6", "10.1.0.7"}) {
      desired.added.push_back({.range = ip::Prefix::Host(A(address)), .pool = "default"});
    }
    EXPECT_TRUE(attachments_->OnDesired(desired).ok());
  }
};

TEST_F(AttachRequestsTest, TheSameAttemptAgainGetsTheSameAnswerAlsoFromTheNextAgent) {
  const auto first = Add({.key = kPodA, .attempt = 7, .options = {.mtu = 1400}});
  ASSERT_TRUE(first.ok()) << first.status();
  const int calls = kernel_.calls();
  EXPECT_EQ(Add({.key = kPodA, .attempt = 7}), first);
  EXPECT_EQ(kernel_.calls(), calls);
  Restart();
  EXPECT_EQ(Add({.key = kPodA, .attempt = 7}), first);
  EXPECT_EQ(Add({.key = kPodA, .attempt = 8}).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Add({.key = kPodA}).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(AttachRequestsTest, AnAttemptOfZeroIsNoAttempt) {
  ASSERT_TRUE(Add({.key = kPodA}).ok());
  EXPECT_EQ(Add({.key = kPodA}).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(AttachRequestsTest, WhatIsAskedForIsBuiltAndARequestThatFailsLeavesNothing) {
  const ip::MacAddress mac = ip::MacAddress::Parse("0e:11:22:33:44:55").value();
  const auto spec = Add(
      {.key = kPodA,
       .addresses = {A("10.1.0.6")},
       .options = {.pod_mac = mac, .mtu = 1300, .bandwidth = {.egress_rate = units::BitRate(9)}}});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(kernel_.Attached(HostLinkName(kPodA))->pod_mac, mac);
  EXPECT_EQ(kernel_.Attached(HostLinkName(kPodA))->mtu, 1300U);
  EXPECT_EQ(kernel_.Attached(HostLinkName(kPodA))->bandwidth.egress_rate, units::BitRate(9));
  EXPECT_THAT(spec->addresses, ElementsAre(A("10.1.0.6")));
  const size_t journalled = tmpfs_.events.size();
  EXPECT_EQ(Add({.key = kPodB, .addresses = {A("10.9.0.1")}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Add({.key = kPodB, .options = {.mtu = 60}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tmpfs_.events.size(), journalled);
  EXPECT_THAT(
      std::string(Add({.key = kPodB, .addresses = {A("10.1.0.6")}}).status().message()),
      HasSubstr("assigned to another pod: node node1, pool default: 3 attached here, 1 in use"));
}

TEST_F(AttachRequestsTest, AKernelThatIsOutOfMemoryIsNoWantOfAddresses) {
  kernel_.FailAttach(HostLinkName(kPodA), absl::ResourceExhaustedError("create veth: no memory"));
  const absl::Status refused = Add({.key = kPodA}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("the kernel has run out of something: create veth: no memory"));
  EXPECT_THAT(attachments_->assignments().Unfinished(), IsEmpty());
}

TEST_F(AttachRequestsTest, ADelFromBeforeTheAssignmentDoesNotEndIt) {
  const absl::Time before = clock_.Now();
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(Add({.key = kPodA}).ok());
  EXPECT_TRUE(attachments_->DelAskedAt(kPodA, before).ok());
  EXPECT_TRUE(HasLink(kPodA));
  EXPECT_TRUE(attachments_->DelAskedAt(kPodA, clock_.Now()).ok());
  EXPECT_FALSE(HasLink(kPodA));
  EXPECT_TRUE(attachments_->DelAskedAt(kPodA, clock_.Now()).ok());
}

TEST_F(AttachRequestsTest, GarbageIsWhatIsOldOfThisNetworkAndNotValid) {
  ASSERT_TRUE(Add({.key = kPodA, .network = "spoke"}).ok());
  ASSERT_TRUE(Add({.key = kPodB, .network = "other"}).ok());
  clock_.Advance(Attachments::kGarbageAge);
  ASSERT_TRUE(Add({.key = kPodC, .network = "spoke"}).ok());
  size_t deleted = 0;
  EXPECT_TRUE(attachments_->CollectGarbage("spoke", {kPodA}, deleted).ok());
  EXPECT_EQ(deleted, 0U);
  const uint64_t generation = attachments_->assignments().Find(kPodA)->generation;
  EXPECT_TRUE(attachments_->CollectGarbage("spoke", {{"aaa", "net1"}}, deleted).ok());
  EXPECT_EQ(deleted, 1U) << "another interface of the container does not count";
  EXPECT_FALSE(HasLink(kPodA));
  EXPECT_TRUE(HasLink(kPodB));
  EXPECT_TRUE(HasLink(kPodC)) << "it is too young to be in the runtime's list for sure";
  attachments_->Tick();
  EXPECT_EQ(server_.reports.back().released.at(0).generation, generation);
}

TEST_F(AttachRequestsTest, GarbageOfALostJournalIsKnownByItsLink) {
  ASSERT_TRUE(Add({.key = kPodA, .network = "spoke"}).ok());
  ASSERT_TRUE(Add({.key = kPodB, .network = "spoke"}).ok());
  tmpfs_.events.clear();
  Restart();
  clock_.Advance(Attachments::kGarbageAge);
  size_t deleted = 0;
  EXPECT_TRUE(attachments_->CollectGarbage("spoke", {kPodA}, deleted).ok());
  EXPECT_EQ(deleted, 1U);
  EXPECT_TRUE(HasLink(kPodA));
  EXPECT_FALSE(HasLink(kPodB));
}

TEST_F(AttachRequestsTest, GarbageCollectionGoesOnAfterAnErrorAndSaysIt) {
  ASSERT_TRUE(Add({.key = kPodA, .network = "spoke"}).ok());
  ASSERT_TRUE(Add({.key = kPodB, .network = "spoke"}).ok());
  clock_.Advance(Attachments::kGarbageAge);
  kernel_.FailCall(1, absl::InternalError("no"));
  size_t deleted = 0;
  const absl::Status status = attachments_->CollectGarbage("spoke", {}, deleted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("container aaa eth0: detach: no"));
  EXPECT_EQ(deleted, 1U);
  EXPECT_TRUE(HasLink(kPodA));
  EXPECT_FALSE(HasLink(kPodB));
}

TEST_F(AttachRequestsTest, WhatCannotBeTakenDownKeepsItsAddressUntilItIs) {
  tmpfs_.fail_after = 1;                           // The intent is written, the result is not,
  kernel_.FailCall(2, absl::InternalError("no"));  // and the kernel does not undo.
  EXPECT_EQ(Add({.key = kPodA, .attempt = 7}).status().code(), absl::StatusCode::kUnavailable);
  tmpfs_.fail_after = -1;
  ASSERT_TRUE(HasLink(kPodA));
  EXPECT_THAT(Add({.key = kPodB})->addresses, ElementsAre(A("10.1.0.6")));
  EXPECT_EQ(Add({.key = kPodA, .attempt = 7}).status().code(), absl::StatusCode::kAlreadyExists)
      << "it was never built, so there is no answer to repeat";
  clock_.Advance(attachments_->NextWake().value() - clock_.Now());
  attachments_->Tick();
  EXPECT_FALSE(HasLink(kPodA));
  EXPECT_THAT(attachments_->assignments().Unfinished(), IsEmpty());
  EXPECT_TRUE(Add({.key = kPodA}).ok());
}

TEST_F(AttachRequestsTest, TheStepsOfAnAddAreTimed) {
  StepTimes steps(clock_.Now());
  pods_.push_back(kernel_.NewPodNetns());
  ASSERT_TRUE(attachments_->Add({.key = kPodA}, pods_.back().get(), &steps).ok());
  std::vector<std::string_view> names;
  for (const node_api::AttachStep& step : steps.steps()) names.push_back(step.name);
  EXPECT_THAT(names, ElementsAre("plan", "journal_intent", "kernel", "journal_built"));
}

}  // namespace
}  // namespace spoke::netagent
