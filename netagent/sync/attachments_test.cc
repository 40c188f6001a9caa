#include "netagent/sync/attachments.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/kernel/fake_kernel.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const AttachmentKey kPodA{"aaa", "eth0"};
const AttachmentKey kPodB{"bbb", "eth0"};

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

// Keeps what is written, as tmpfs would, across "restarts" of the agent; fails when told to.
struct Tmpfs {
  std::vector<Event> events;
  int fail_after = -1;  // Appends that still work; negative: all.
};

class FakeJournal final : public Journal {
 public:
  explicit FakeJournal(Tmpfs& tmpfs) : tmpfs_(tmpfs) {}
  absl::Status Append(const Event& event) override {
    if (tmpfs_.fail_after == 0) return absl::ResourceExhaustedError("tmpfs is full");
    if (tmpfs_.fail_after > 0) --tmpfs_.fail_after;
    tmpfs_.events.push_back(event);
    return absl::OkStatus();
  }
  absl::Status Compact(const std::vector<Event>& events) override {
    tmpfs_.events = events;
    return absl::OkStatus();
  }
  size_t size() const override { return tmpfs_.events.size(); }

 private:
  Tmpfs& tmpfs_;
};

class FakeServer final : public ServerLink {
 public:
  void Report(const LendingReport& report) override { reports.push_back(report); }
  void Acknowledge(uint64_t version) override { acknowledged.push_back(version); }
  std::vector<LendingReport> reports;
  std::vector<uint64_t> acknowledged;
};

class AttachmentsTest : public testing::Test {
 protected:
  AttachmentsTest() {
    kernel_.SetNic({.name = "eth0", .mtu = 1500});
    Restart();
  }
  // A new agent on the same node.
  void Restart() {
    const std::vector<Event> events = tmpfs_.events;
    attachments_.emplace(
        Attachments::Settings{.node_name = "node1", .nic = "eth0", .cooldown = absl::Seconds(30)},
        Attachments::Edges{kernel_, server_, clock_, log_}, std::make_unique<FakeJournal>(tmpfs_));
    ASSERT_TRUE(attachments_->Start(events).ok());
  }
  void Grant(const std::vector<std::string>& addresses) {
    DesiredState desired{.version = 1, .full = true};
    for (const std::string& address : addresses) desired.added.push_back({A(address), "default"});
    desired.pools = {{"default", "10.1.0.0/24", 251, 8, 243}};
    ASSERT_TRUE(attachments_->OnDesired(desired).ok());
  }
  absl::StatusOr<AttachSpec> Add(const AttachmentKey& key) {
    pods_.push_back(kernel_.NewPodNetns());
    return attachments_->Add(key, {"ns", "pod", "uid"}, pods_.back().get());
  }
  bool HasLink(const AttachmentKey& key) { return kernel_.Attached(HostLinkName(key)).has_value(); }

  FakeKernel kernel_;
  FakeServer server_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  Tmpfs tmpfs_;
  std::vector<os::UniqueFd> pods_;
  std::optional<Attachments> attachments_;
};

TEST_F(AttachmentsTest, AddBuildsTheLinkAndReportsTheLending) {
  Grant({"10.1.0.5", "10.1.0.6"});
  const auto spec = Add(kPodA);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->mtu, 1500U);
  EXPECT_EQ(kernel_.Attached(HostLinkName(kPodA)), *spec);
  ASSERT_EQ(server_.reports.size(), 1U);
  EXPECT_THAT(server_.reports[0].lent.at(0).addresses, ElementsAre(A("10.1.0.5")));
  EXPECT_THAT(server_.acknowledged, ElementsAre(1U));
  EXPECT_THAT(kernel_.Unreachable(), ElementsAre(A("10.1.0.5"), A("10.1.0.6")));
}

TEST_F(AttachmentsTest, DelTakesTheLinkDownAndTheAddressCools) {
  Grant({"10.1.0.5"});
  ASSERT_TRUE(Add(kPodA).ok());
  ASSERT_TRUE(attachments_->Del(kPodA).ok());
  EXPECT_FALSE(HasLink(kPodA));
  EXPECT_EQ(server_.reports.back().released.size(), 1U);
  EXPECT_FALSE(Add(kPodB).ok());
  clock_.Advance(absl::Seconds(30));
  attachments_->Tick();
  EXPECT_THAT(server_.reports.back().cooled, ElementsAre(A("10.1.0.5")));
  EXPECT_TRUE(Add(kPodB).ok());
}

TEST_F(AttachmentsTest, DelIsRepeatableAndOfTheUnknownIsFine) {
  Grant({"10.1.0.5"});
  EXPECT_TRUE(attachments_->Del(kPodA).ok());
  ASSERT_TRUE(Add(kPodA).ok());
  EXPECT_TRUE(attachments_->Del(kPodA).ok());
  EXPECT_TRUE(attachments_->Del(kPodA).ok());
  EXPECT_EQ(server_.reports.size(), 2U);
}

TEST_F(AttachmentsTest, AnEmptyPoolIsNamedWithItsCounts) {
  const auto never = Add(kPodA);
  EXPECT_EQ(never.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(never.status().message()), HasSubstr("node node1 has been given none"));
  Grant({"10.1.0.5"});
  ASSERT_TRUE(Add(kPodA).ok());
  EXPECT_THAT(std::string(Add(kPodB).status().message()),
              HasSubstr("node node1, pool default: 1 attached here, 1 lent, 0 cooling, 0 idle; "
                        "server: pool default (10.1.0.0/24): 251 usable, 8 attached, 243 free"));
}

TEST_F(AttachmentsTest, AKernelThatRefusesLeavesNothingLent) {
  Grant({"10.1.0.5"});
  kernel_.FailAttach(HostLinkName(kPodA), absl::InternalError("no"));
  EXPECT_EQ(Add(kPodA).status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(attachments_->lendings().Built(), IsEmpty());
  EXPECT_THAT(server_.reports, IsEmpty());
  EXPECT_TRUE(Add(kPodB).ok());  // The address is free at once: no pod ever had it.
}

TEST_F(AttachmentsTest, AJournalThatFailsAtAnyPointLeavesNothingBehind) {
  for (int works = 0; works < 2; ++works) {
    Grant({"10.1.0.5"});
    tmpfs_.fail_after = works;
    EXPECT_EQ(Add(kPodA).status().code(), absl::StatusCode::kUnavailable);
    EXPECT_FALSE(HasLink(kPodA));
    EXPECT_THAT(attachments_->lendings().Built(), IsEmpty());
    tmpfs_.fail_after = -1;
    Restart();
    EXPECT_THAT(attachments_->lendings().Built(), IsEmpty());
    EXPECT_THAT(attachments_->lendings().Unfinished(), IsEmpty());
    ASSERT_TRUE(Add(kPodA).ok());
    ASSERT_TRUE(attachments_->Del(kPodA).ok());
    clock_.Advance(absl::Minutes(1));
    attachments_->Tick();
  }
}

TEST_F(AttachmentsTest, ADelThatCannotBeWrittenFreesNothing) {
  Grant({"10.1.0.5"});
  ASSERT_TRUE(Add(kPodA).ok());
  tmpfs_.fail_after = 0;
  EXPECT_EQ(attachments_->Del(kPodA).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(attachments_->lendings().Built().size(), 1U);
  tmpfs_.fail_after = -1;
  EXPECT_TRUE(attachments_->Del(kPodA).ok());
  EXPECT_THAT(attachments_->lendings().Built(), IsEmpty());
}

TEST_F(AttachmentsTest, ARestartKeepsWhatIsLentAndCooling) {
  Grant({"10.1.0.5", "10.1.0.6"});
  ASSERT_TRUE(Add(kPodA).ok());
  ASSERT_TRUE(Add(kPodB).ok());
  ASSERT_TRUE(attachments_->Del(kPodB).ok());
  const Greeting before = attachments_->Greet();
  Restart();
  EXPECT_EQ(attachments_->Greet(), before);
  EXPECT_TRUE(HasLink(kPodA));
  EXPECT_TRUE(attachments_->Del(kPodA).ok());
}

TEST_F(AttachmentsTest, ARestartUndoesWhatWasBegunAndNotFinished) {
  Grant({"10.1.0.5"});
  ASSERT_TRUE(Add(kPodA).ok());
  // The agent died between the kernel's work and the journal's last entry.
  tmpfs_.events.pop_back();
  Restart();
  EXPECT_FALSE(HasLink(kPodA));
  EXPECT_TRUE(Add(kPodB).ok());
}

TEST_F(AttachmentsTest, WithALostJournalNoAddressInUseIsLentAgain) {
  Grant({"10.1.0.5"});
  ASSERT_TRUE(Add(kPodA).ok());
  tmpfs_.events.clear();
  Restart();
  EXPECT_EQ(log_.Count("link_adopted"), 1);
  Grant({"10.1.0.5", "10.1.0.6"});
  EXPECT_THAT(Add(kPodB)->addresses, ElementsAre(A("10.1.0.6")));
  Restart();  // An adopted link is not adopted again.
  EXPECT_EQ(log_.Count("link_adopted"), 1);
  // The pod's own DEL still finds its link and frees its address.
  ASSERT_TRUE(attachments_->Del(kPodA).ok());
  EXPECT_FALSE(HasLink(kPodA));
  EXPECT_THAT(attachments_->Greet().cooling, ElementsAre(A("10.1.0.5")));
}

TEST_F(AttachmentsTest, ChangesAreRelativeToWhatTheServerSaidBefore) {
  Grant({"10.1.0.5", "10.1.0.6"});
  ASSERT_TRUE(
      attachments_
          ->OnDesired(
              {.version = 2, .added = {{A("10.1.0.7"), "default"}}, .removed = {A("10.1.0.5")}})
          .ok());
  EXPECT_THAT(attachments_->lendings().Attached(), ElementsAre(A("10.1.0.6"), A("10.1.0.7")));
  Restart();
  EXPECT_THAT(attachments_->lendings().Attached(), ElementsAre(A("10.1.0.6"), A("10.1.0.7")));
}

TEST_F(AttachmentsTest, AnAddressThatIsToCoolIsNotLentBefore) {
  DesiredState desired{.version = 1, .full = true};
  desired.added = {{A("10.1.0.5"), "default", absl::Seconds(10)}};
  ASSERT_TRUE(attachments_->OnDesired(desired).ok());
  EXPECT_FALSE(Add(kPodA).ok());
  clock_.Advance(absl::Seconds(10));
  attachments_->Tick();
  EXPECT_TRUE(Add(kPodA).ok());
}

TEST_F(AttachmentsTest, ADesiredStateThatCannotBeWrittenIsNotAcknowledged) {
  tmpfs_.fail_after = 0;
  EXPECT_EQ(
      attachments_->OnDesired({.version = 1, .full = true, .added = {{A("10.1.0.5"), "p"}}}).code(),
      absl::StatusCode::kUnavailable);
  EXPECT_THAT(server_.acknowledged, IsEmpty());
}

}  // namespace
}  // namespace spoke::netagent
