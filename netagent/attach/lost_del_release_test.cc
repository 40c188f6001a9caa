#include "netagent/attach/lost_del_release.h"

#include <fcntl.h>

#include <map>
#include <string>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/journal/fake_journal.h"
#include "netagent/links/testing/fake_kernel.h"
#include "netagent/session/testing/fake_server_link.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr ip::Address kFirst = ip::Address::V4(0x0A010005);  // 10.1.0.5
constexpr absl::Duration kAfter = absl::Minutes(5);

class LostDelReleaseTest : public testing::Test {
 protected:
  // Makes a node with `pods` pods, as an agent finds them when it starts.
  void Start(int pods, absl::Duration after = kAfter) {
    kernel_.SetNic({.name = "eth0", .mtu = 1500});
    std::vector<Event> events;
    for (int i = 0; i < pods; ++i) {
      const Assignment assignment{.key = {fmt::format("pod{:03}", i), "eth0"},
                                  .pod = {"web", fmt::format("nginx-{}", i), "uid"},
                                  .addresses = {ip::Advance(kFirst, static_cast<uint64_t>(i))},
                                  .generation = static_cast<uint64_t>(i) + 1,
                                  .netns_path = fmt::format("/run/netns/{}", i),
                                  .netns_trace = Trace(i)};
      events.push_back(AssignmentBegun{assignment});
      events.push_back(AssignmentBuilt{assignment.key});
      const os::UniqueFd netns = kernel_.NewPodNetns();
      ASSERT_TRUE(Attach(kernel_, SpecOf(assignment).value(), netns.get()).ok());
      at_path_.insert_or_assign(assignment.netns_path, assignment.netns_trace);
      keys_.push_back(assignment.key);
    }
    ASSERT_TRUE(attachments_.Start(events).ok());
    repairer_.emplace(
        Repairer::Settings{
            .repair_pods = false,
            .open_netns = [](const std::string& path) -> absl::StatusOr<os::UniqueFd> {
              return absl::NotFoundError(path);
            },
            .prepare_node = [] { return NodeSetupReport(); }},
        Repairer::Edges{kernel_, clock_, log_}, attachments_);
    lost_dels_.emplace(
        LostDelRelease::Settings{
            .after = after,
            .look_at_netns = [this](const std::string& path) { return at_path_.at(path); }},
        LostDelRelease::Edges{clock_, log_}, *repairer_, attachments_);
  }
  static netns::Trace Trace(int i) {
    return {.inode = static_cast<uint64_t>(i) + 100,
            .cookie = static_cast<uint64_t>(i) + 1,
            .directory_device = 24,
            .directory_inode = 5};
  }
  static absl::StatusOr<AttachSpec> SpecOf(const Assignment& assignment) {
    return PlanAttach(assignment.key, assignment.addresses, 1500, assignment.options);
  }
  void RemoveLink(int i) { kernel_.Remove(HostLinkName(keys_.at(static_cast<size_t>(i)))); }
  void RemoveNetns(int i) {
    at_path_.at(fmt::format("/run/netns/{}", i)) =
        netns::Trace{.directory_device = 24, .directory_inode = 5};
  }

  // Runs the agent's loop for `duration`.
  void Run(absl::Duration duration) {
    const absl::Time end = clock_.Now() + duration;
    while (true) {
      repairer_->Tick();
      lost_dels_->Tick();
      const absl::Time next = repairer_->NextWake();
      if (next > end) break;
      clock_.Advance(std::max(next - clock_.Now(), absl::Milliseconds(1)));
    }
    clock_.Advance(end - clock_.Now());
    attachments_.Tick();
  }
  size_t Assigned() const { return attachments_.assignments().Built().size(); }

  FakeKernel kernel_;
  FakeServerLink server_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  FakeTmpfs tmpfs_;
  Attachments attachments_{{.node_name = "node1", .nic = "eth0"},
                           {kernel_, server_, clock_, log_},
                           std::make_unique<FakeJournal>(tmpfs_)};
  std::map<std::string, absl::StatusOr<netns::Trace>> at_path_;
  std::vector<AttachmentKey> keys_;
  std::optional<Repairer> repairer_;
  std::optional<LostDelRelease> lost_dels_;
};

TEST_F(LostDelReleaseTest, WhatHasLostLinkAndNamespaceIsReleasedAsByADel) {
  Start(2);
  RemoveLink(0);
  RemoveNetns(0);
  Run(kAfter - absl::Seconds(10));
  EXPECT_EQ(Assigned(), 2U);
  Run(absl::Seconds(20));
  EXPECT_EQ(Assigned(), 1U);
  EXPECT_EQ(lost_dels_->counts().released, 1U);
  EXPECT_THAT(attachments_.assignments().Cooldown(), ElementsAre(kFirst));
  ASSERT_FALSE(server_.reports.empty());
  ASSERT_EQ(server_.reports.back().released.size(), 1U);
  EXPECT_EQ(server_.reports.back().released[0].address, kFirst);
  EXPECT_EQ(server_.reports.back().released[0].generation, 1U) << "the fence of its assignment";
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("lost_del_released container=pod000 ifname=eth0 "
                                               "pod=web/nginx-0 addresses=10.1.0.5")));
  // The DEL comes in spite of all.
  EXPECT_TRUE(attachments_.Del(keys_[0]).ok());
  Run(absl::Hours(1));
  EXPECT_EQ(Assigned(), 1U);
  EXPECT_EQ(lost_dels_->counts().released, 1U);
}

TEST_F(LostDelReleaseTest, ALinkThatSomebodyDeletedFreesNothing) {
  Start(1);
  RemoveLink(0);
  Run(absl::Hours(24));
  EXPECT_EQ(Assigned(), 1U);
  EXPECT_EQ(log_.Count("lost_del_unproved"), 0);
}

TEST_F(LostDelReleaseTest, ANamespaceThatIsOutOfSightFreesNothing) {
  Start(1);
  RemoveNetns(0);
  Run(absl::Hours(24));
  EXPECT_EQ(Assigned(), 1U);
}

TEST_F(LostDelReleaseTest, WhatCannotBeProvedIsSaidAndStays) {
  Start(2);
  RemoveLink(0);
  RemoveLink(1);
  at_path_.at("/run/netns/0") = absl::FailedPreconditionError("no network namespace");
  at_path_.at("/run/netns/1") = netns::Trace();  // Another container's path, say.
  Run(absl::Hours(24));
  EXPECT_EQ(Assigned(), 2U);
  EXPECT_EQ(log_.Count("lost_del_unproved"), 2);
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("no network namespace")));
}

TEST_F(LostDelReleaseTest, TheTimeBeginsAnewWithTheAgent) {
  Start(1);
  RemoveLink(0);
  RemoveNetns(0);
  Run(kAfter - absl::Seconds(10));
  lost_dels_.emplace(
      LostDelRelease::Settings{
          .after = kAfter,
          .look_at_netns = [this](const std::string& path) { return at_path_.at(path); }},
      LostDelRelease::Edges{clock_, log_}, *repairer_, attachments_);
  Run(kAfter - absl::Seconds(10));
  EXPECT_EQ(Assigned(), 1U);
  Run(absl::Seconds(30));
  EXPECT_EQ(Assigned(), 0U);
}

TEST_F(LostDelReleaseTest, ZeroTurnsItOff) {
  Start(1, absl::ZeroDuration());
  RemoveLink(0);
  RemoveNetns(0);
  Run(absl::Hours(24));
  EXPECT_EQ(Assigned(), 1U);
}

TEST_F(LostDelReleaseTest, WhatTheKernelDidNotShowIsNoProof) {
  Start(1);
  RemoveLink(0);
  RemoveNetns(0);
  Run(absl::Seconds(20));
  kernel_.FailReads(absl::UnavailableError("the list changed"));
  Run(absl::Hours(1));
  EXPECT_EQ(Assigned(), 1U);
}

TEST_F(LostDelReleaseTest, AHundredAreReleasedAFewARound) {
  Start(100);
  for (int i = 0; i < 100; ++i) {
    RemoveLink(i);
    RemoveNetns(i);
  }
  Run(kAfter);
  EXPECT_EQ(Assigned(), 100 - LostDelRelease::kMaxReleases);
  Run(absl::Minutes(2));
  EXPECT_EQ(Assigned(), 0U);
  EXPECT_EQ(lost_dels_->counts().released, 100U);
}

TEST_F(LostDelReleaseTest, AReleaseThatFailsIsTriedAgainAndSaidOnce) {
  Start(1);
  RemoveLink(0);
  RemoveNetns(0);
  tmpfs_.fail_after = 0;
  Run(kAfter + absl::Minutes(1));
  EXPECT_EQ(Assigned(), 1U);
  EXPECT_EQ(log_.Count("lost_del_failed"), 1);
  tmpfs_.fail_after = -1;
  Run(absl::Minutes(1));
  EXPECT_EQ(Assigned(), 0U);
}

}  // namespace
}  // namespace spoke::netagent
