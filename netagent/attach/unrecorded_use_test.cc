// An address that pods had before the journal was lost, with the machine's boot or otherwise, goes
// to no pod before it has rested, whether or not the server has heard of those pods.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/attach/attachments_fixture.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;

const AttachmentKey kPodA{"aaa", "eth0"};
const AttachmentKey kPodB{"bbb", "eth0"};
const ip::Address kFirst = ip::Address::V4(0x0A010005);
const ip::Address kSecond = ip::Address::V4(0x0A010006);

class UnrecordedUseTest : public AttachmentsFixture {
 protected:
  // Has the machine boot: its kernel's links and its journal are gone.
  void Boot() {
    for (const AttachmentKey& key : {kPodA, kPodB}) kernel_.Remove(HostLinkName(key));
    tmpfs_ = {};
    settings_.unrecorded_use_end = clock_.Now();
    Restart();
  }
  void List(const std::vector<ip::Address>& addresses, bool full,
            absl::Duration cooldown = absl::ZeroDuration()) {
    node_api::DesiredState desired{.version = ++version_, .full = full};
    for (const ip::Address& address : addresses) {
      desired.added.push_back(
          {.range = ip::Prefix::Host(address), .pool = "default", .cooldown = cooldown});
    }
    desired.pools = {{"default", "10.1.0.0/24", 251, 8, 243}};
    ASSERT_TRUE(attachments_->OnDesired(desired).ok());
  }
  absl::Status AddPod(const AttachmentKey& key) {
    attachments_->Tick();
    return AttachmentsFixture::Add({.key = key, .pod = {"ns", "pod", "uid"}, .network = "spoke"})
        .status();
  }

  uint64_t version_ = 0;
};

TEST_F(UnrecordedUseTest, AfterABootWhatIsListedRests) {
  List({kFirst}, /*full=*/true);
  ASSERT_TRUE(AddPod(kPodA).ok());
  Boot();
  clock_.Advance(absl::Seconds(5));
  List({kFirst}, /*full=*/true);
  EXPECT_EQ(AddPod(kPodB).code(), absl::StatusCode::kResourceExhausted);
  clock_.Advance(settings_.cooldown - absl::Seconds(6));
  EXPECT_EQ(AddPod(kPodB).code(), absl::StatusCode::kResourceExhausted);
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(AddPod(kPodB).ok()) << "the pods of the boot before have been gone for long enough";
}

TEST_F(UnrecordedUseTest, LongAfterABootNothingRests) {
  Boot();
  clock_.Advance(settings_.cooldown);
  List({kFirst}, /*full=*/true);
  EXPECT_TRUE(AddPod(kPodA).ok());
}

// The server attaches it now, and says itself how long it has to rest.
TEST_F(UnrecordedUseTest, WhatIsAddedToAListDoesNotRest) {
  Boot();
  List({}, /*full=*/true);
  List({kFirst}, /*full=*/false);
  EXPECT_TRUE(AddPod(kPodA).ok());
}

TEST_F(UnrecordedUseTest, AnAddressThatRestsIsNotGivenUp) {
  Boot();
  List({kFirst}, /*full=*/true);
  attachments_->OnReclaim({.id = 1, .ranges = {ip::Prefix::Host(kFirst)}});
  ASSERT_EQ(server_.reclaim_answers.size(), 1U);
  EXPECT_THAT(server_.reclaim_answers[0].denied, ElementsAre(ip::Prefix::Host(kFirst)))
      << "another node would use it at once";
}

TEST_F(UnrecordedUseTest, TheLongerRestCounts) {
  Boot();
  List({kFirst}, /*full=*/true, settings_.cooldown * 2);
  List({kSecond}, /*full=*/false, settings_.cooldown / 3);
  EXPECT_EQ(attachments_->assignments().CooldownEnd(kFirst), clock_.Now() + settings_.cooldown * 2);
  EXPECT_EQ(attachments_->assignments().CooldownEnd(kSecond),
            clock_.Now() + settings_.cooldown / 3);
}

TEST_F(UnrecordedUseTest, ANextAgentKnowsWhatRestsAndWhatDoesNot) {
  Boot();
  List({kFirst}, /*full=*/true);
  List({kSecond}, /*full=*/false);
  Restart();
  List({kFirst, kSecond}, /*full=*/true);
  EXPECT_EQ(attachments_->assignments().CooldownEnd(kFirst), clock_.Now() + settings_.cooldown);
  EXPECT_EQ(attachments_->assignments().CooldownEnd(kSecond), std::nullopt);
}

// The rest is written before the list, or an agent that dies in between would not know of it.
TEST_F(UnrecordedUseTest, ListedAndNotRestingIsNeverInTheJournal) {
  Boot();
  List({kFirst, kSecond}, /*full=*/true);
  Assignments replayed(settings_.cooldown);
  for (const Event& event : tmpfs_.events) {
    replayed.Apply(event);
    EXPECT_EQ(replayed.CountByPool()["default"].available, 0U);
  }
  EXPECT_EQ(replayed.CountByPool()["default"].cooldown, 2U);
}

// A release that the journal could not take is written before the next event: else a replay would
// take the next assignment of the address for a mistake, and its pod's use for none.
TEST_F(UnrecordedUseTest, WhatCouldNotBeWrittenPrecedesWhatFollows) {
  List({kFirst}, /*full=*/true);
  kernel_.FailAttach(HostLinkName(kPodA), absl::InternalError("no"));
  tmpfs_.fail_after = 1;  // The beginning can be written, and the end cannot.
  EXPECT_FALSE(AddPod(kPodA).ok());
  EXPECT_EQ(AddPod(kPodB).code(), absl::StatusCode::kUnavailable) << "it is full still";
  tmpfs_.fail_after = -1;
  ASSERT_TRUE(AddPod(kPodB).ok());
  ASSERT_TRUE(attachments_->Del(kPodB).ok());
  Restart();
  EXPECT_EQ(attachments_->assignments().CooldownEnd(kFirst), clock_.Now() + settings_.cooldown);
}

}  // namespace
}  // namespace spoke::netagent
