#include "ipam-server/jobs/fleet_loop.h"

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/cloud/fake_cloud.h"
#include "ipam-server/jobs/attach_job.h"
#include "ipam-server/store/memory_store.h"
#include "ipam-server/store/record_codec.h"
#include "tests/support/recording_log.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;

const NodeKey kNode{"node1", "vm-1"};

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

// Keeps what the loop says; the test plays the agents.
class FakeAgents final : public AgentLink {
 public:
  void Send(SessionId session, ToAgent message) override {
    sent[session].push_back(std::move(message));
  }
  void ReadNext(SessionId session) override { ++read_next[session]; }
  void Close(SessionId session, absl::Status why) override { closed[session] = std::move(why); }

  std::map<SessionId, std::vector<ToAgent>> sent;
  std::map<SessionId, int> read_next;
  std::map<SessionId, absl::Status> closed;
};

// Keeps the requests; the test lets FakeCloud answer when it wants.
class HeldRequests final : public CloudRequests {
 public:
  void Request(NicAddresses desired) override { waiting.push_back(std::move(desired)); }
  std::vector<NicAddresses> waiting;
};

class FleetLoopTest : public testing::Test {
 protected:
  FleetLoopTest() { EXPECT_TRUE(loop_->Load().ok()); }

  std::unique_ptr<FleetLoop> NewLoop() {
    return std::make_unique<FleetLoop>(
        std::vector<PoolSpec>{
            {.name = "default", .cidr = ip::Prefix::Parse("10.1.0.0/24").value()}},
        FleetPolicy{.target = {.min = 2, .batch = 2, .spare = 0.5, .max = 8}},
        FleetLoop::Edges{store_, agents_, requests_, clock_, log_});
  }
  void Step() { ASSERT_TRUE(loop_->RunOnce(absl::ZeroDuration())); }
  void Greet(SessionId session, std::vector<Lending> lent = {}) {
    loop_->PostHello(session, {.key = kNode, .boot_id = "b", .lent = std::move(lent)});
    Step();
  }
  void AnswerCloud() {
    const std::vector<NicAddresses> requests = std::exchange(requests_.waiting, {});
    for (const NicAddresses& request : requests) {
      loop_->PostCloudResult(request.node, cloud_.Apply(request));
    }
    Step();
  }
  NodeRecord Stored() { return *DecodeNode(store_.Get(StoreKeyOf(kNode))->value().value); }
  template <typename T>
  std::vector<T> SentTo(SessionId session) {
    std::vector<T> found;
    for (const ToAgent& message : agents_.sent[session]) {
      if (const T* typed = std::get_if<T>(&message)) found.push_back(*typed);
    }
    return found;
  }

  MemoryStore store_;
  FakeAgents agents_;
  HeldRequests requests_;
  FakeCloud cloud_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  std::unique_ptr<FleetLoop> loop_ = NewLoop();
};

TEST_F(FleetLoopTest, HelloIsWelcomedAndAttachedAddressesFollow) {
  Greet(1);
  EXPECT_THAT(SentTo<Welcome>(1), ElementsAre(Welcome{.session_epoch = 1}));
  ASSERT_EQ(SentTo<DesiredState>(1).size(), 1U);
  EXPECT_TRUE(SentTo<DesiredState>(1)[0].full);
  EXPECT_TRUE(SentTo<DesiredState>(1)[0].added.empty());
  EXPECT_EQ(CountAddresses(Stored()).attaching, 2U);  // Written before the cloud is asked.

  AnswerCloud();
  ASSERT_EQ(SentTo<DesiredState>(1).size(), 2U);
  EXPECT_EQ(SentTo<DesiredState>(1)[1].added.size(), 2U);
  EXPECT_EQ(CountAddresses(Stored()).idle, 2U);
  EXPECT_EQ(agents_.read_next[1], 1);
}

TEST_F(FleetLoopTest, AReportIsAcknowledgedOnceItIsStored) {
  Greet(1);
  AnswerCloud();
  const LendingReport report{.sequence = 1,
                             .lent = {{.address = A("10.1.0.4"),
                                       .generation = 1,
                                       .since = clock_.Now(),
                                       .lessee = {.container_id = "c", .ifname = "eth0"}}}};
  loop_->PostReport(1, report);
  Step();
  EXPECT_THAT(SentTo<ReportAck>(1), ElementsAre(ReportAck{.sequence = 1}));
  EXPECT_EQ(CountAddresses(Stored()).lent, 1U);
}

TEST_F(FleetLoopTest, WhatCannotBeStoredIsNotAcknowledgedAndLeavesNoTrace) {
  Greet(1);
  AnswerCloud();
  store_.FailCommits(absl::ResourceExhaustedError("disk full"));
  loop_->PostReport(1, {.sequence = 1, .lent = {{.address = A("10.1.0.4"), .generation = 1}}});
  std::vector<std::string> problems;
  uint32_t lent = 99;
  loop_->PostQuery([&](const FleetView& view) {
    problems = view.problems;
    lent = CountAddresses(*view.fleet.Find(kNode)).lent;
  });
  Step();
  EXPECT_TRUE(SentTo<ReportAck>(1).empty());
  EXPECT_EQ(agents_.closed[1].code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(lent, 0U);
  EXPECT_THAT(problems, ElementsAre("nothing can be stored: disk full"));

  store_.FailCommits(absl::OkStatus());
  Greet(2, {{.address = A("10.1.0.4"), .generation = 1, .since = clock_.Now()}});
  EXPECT_EQ(CountAddresses(Stored()).lent, 1U);
}

TEST_F(FleetLoopTest, ARestartKeepsEverythingAndFinishesWhatWasUnderWay) {
  Greet(1);  // Stored as attaching; the process ends before the cloud answers.
  loop_ = NewLoop();
  ASSERT_TRUE(loop_->Load().ok());
  EXPECT_EQ(loop_->AllNics().at(0).configurations.size(), 2U);
  Greet(2);
  EXPECT_THAT(SentTo<Welcome>(2), ElementsAre(Welcome{.session_epoch = 2}));
}

TEST_F(FleetLoopTest, ACloudThatRefusesIsAskedAgainAndComplainedAboutOnce) {
  Greet(1);
  cloud_.FailApply(absl::UnavailableError("throttled"));
  AnswerCloud();
  EXPECT_TRUE(requests_.waiting.empty());
  clock_.Advance(absl::Seconds(6));
  Step();
  ASSERT_EQ(requests_.waiting.size(), 1U);
  AnswerCloud();
  cloud_.FailApply(absl::OkStatus());
  clock_.Advance(absl::Seconds(6));
  Step();
  AnswerCloud();
  EXPECT_EQ(CountAddresses(Stored()).idle, 2U);
  EXPECT_EQ(log_.Count("cloud_apply_failed"), 1);
  EXPECT_EQ(log_.Count("problem_over"), 1);
}

TEST_F(FleetLoopTest, ACloudAnswerThatCannotBeStoredIsAskedForAgain) {
  Greet(1);
  store_.FailCommits(absl::ResourceExhaustedError("disk full"));
  AnswerCloud();
  EXPECT_EQ(CountAddresses(Stored()).attaching, 2U);
  store_.FailCommits(absl::OkStatus());
  clock_.Advance(absl::Seconds(6));
  Step();
  ASSERT_EQ(requests_.waiting.size(), 1U);
  AnswerCloud();
  EXPECT_EQ(CountAddresses(Stored()).idle, 2U);
}

TEST_F(FleetLoopTest, TheNewerSessionOfANodeWinsAndTheOlderIsMute) {
  Greet(1);
  AnswerCloud();
  Greet(2);
  EXPECT_EQ(agents_.closed[1].code(), absl::StatusCode::kAborted);
  loop_->PostReport(1, {.sequence = 1, .lent = {{.address = A("10.1.0.4"), .generation = 1}}});
  loop_->PostClosed(1);
  Step();
  EXPECT_EQ(CountAddresses(Stored()).lent, 0U);
  size_t sessions = 0;
  loop_->PostQuery([&](const FleetView& view) { sessions = view.sessions.size(); });
  Step();
  EXPECT_EQ(sessions, 1U);
}

TEST_F(FleetLoopTest, AcksAreKeptWithinWhatWasSent) {
  Greet(1);
  loop_->PostDesiredAck(1, 99);
  uint64_t acked = 0;
  loop_->PostQuery([&](const FleetView& view) { acked = view.sessions.at(kNode).acked_version; });
  Step();
  EXPECT_EQ(acked, 1U);
}

TEST(AttachJob, AnswersOnItsOwnThreadAndReplacesWhatWaits) {
  FakeCloud cloud;
  absl::Notification answered;
  absl::StatusOr<NicAddresses> result;
  AttachJob job(cloud, [&](const NodeKey&, absl::StatusOr<NicAddresses> answer) {
    result = std::move(answer);
    answered.Notify();
  });
  job.Request({.node = kNode, .configurations = {{"spoke-1", A("10.1.0.4")}}});
  answered.WaitForNotification();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->configurations.size(), 1U);
}

}  // namespace
}  // namespace spoke::ipam
