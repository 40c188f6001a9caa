#include "netagent/attach/repairer.h"

#include <fcntl.h>

#include <memory>

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

class RepairerTest : public testing::Test {
 protected:
  // Makes a node with `pods` pods as an agent finds them at its start, each with one address.
  void Start(int pods, bool repair_pods = true) {
    kernel_.SetNic({.name = "eth0", .mtu = 1500});
    std::vector<Event> events;
    for (int i = 0; i < pods; ++i) {
      Assignment assignment{.key = {fmt::format("pod{:03}", i), "eth0"},
                            .pod = {"web", fmt::format("nginx-{}", i), "uid"},
                            .addresses = {ip::Advance(kFirst, static_cast<uint64_t>(i))},
                            .generation = static_cast<uint64_t>(i) + 1,
                            .netns_path = fmt::format("/run/netns/{}", i)};
      events.push_back(AssignmentBegun{assignment});
      events.push_back(AssignmentBuilt{assignment.key});
      os::UniqueFd netns = kernel_.NewPodNetns();
      ASSERT_TRUE(Attach(kernel_, SpecOf(assignment).value(), netns.get()).ok());
      namespaces_.insert_or_assign(assignment.netns_path, std::move(netns));
      assignments_.push_back(std::move(assignment));
    }
    ASSERT_TRUE(attachments_.Start(events).ok());
    repairer_.emplace(
        Repairer::Settings{
            .repair_pods = repair_pods,
            .open_netns = [this](const std::string& path) { return Open(path); },
            .prepare_node = [this] { return std::exchange(node_report_, NodeSetupReport()); },
            .on_pod_mac = on_pod_mac_},
        Repairer::Edges{kernel_, clock_, log_}, attachments_);
  }

  static absl::StatusOr<AttachSpec> SpecOf(const Assignment& assignment) {
    return PlanAttach(assignment.key, assignment.addresses, 1500, assignment.options);
  }
  absl::StatusOr<os::UniqueFd> Open(const std::string& path) {
    const auto found = namespaces_.find(path);
    if (found == namespaces_.end()) return absl::NotFoundError(path);
    return os::UniqueFd(::fcntl(found->second.get(), F_DUPFD_CLOEXEC, 0));
  }
  std::string Link(int i) const { return HostLinkName(assignments_[static_cast<size_t>(i)].key); }

  // Runs the agent's loop for `duration`.
  void Run(absl::Duration duration) {
    const absl::Time end = clock_.Now() + duration;
    while (true) {
      repairer_->Tick();
      const absl::Time next = repairer_->NextWake();
      if (next > end) break;
      clock_.Advance(std::max(next - clock_.Now(), absl::Milliseconds(1)));
    }
    clock_.Advance(end - clock_.Now());
  }
  int Differences() {
    int count = 0;
    for (const Assignment& assignment : assignments_) {
      const AttachSpec spec = SpecOf(assignment).value();
      count += static_cast<int>(
          PlanLink(spec, {kernel_.host(spec.host_link), kernel_.pod(spec.host_link)}).size());
    }
    return count;
  }

  FakeKernel kernel_;
  FakeServerLink server_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  FakeTmpfs tmpfs_;
  Attachments attachments_{{.node_name = "node1", .nic = "eth0"},
                           {kernel_, server_, clock_, log_},
                           std::make_unique<FakeJournal>(tmpfs_)};
  std::vector<Assignment> assignments_;
  std::map<std::string, os::UniqueFd> namespaces_;
  NodeSetupReport node_report_;
  std::function<void(const std::string&, const ip::MacAddress&)> on_pod_mac_;
  std::optional<Repairer> repairer_;
};

TEST_F(RepairerTest, ALostHostRouteIsPutBackCountedAndSaidOnce) {
  Start(2);
  kernel_.host(Link(0)).routes.clear();
  Run(absl::Seconds(30));
  EXPECT_EQ(Differences(), 0);
  EXPECT_EQ(repairer_->counts().of(Part::kHostRoute), (RepairCounts::OfPart{1, 0}));
  EXPECT_EQ(kernel_.mends(), 1);
  EXPECT_EQ(log_.Count("attachment_repaired"), 1);
  EXPECT_THAT(log_.lines(),
              Contains(HasSubstr(fmt::format("attachment_repaired link={} pod=web/nginx-0 "
                                             "part=host_route found=\"route to 10.1.0.5 by",
                                             Link(0)))));
  EXPECT_TRUE(repairer_->Healthy());
}

TEST_F(RepairerTest, NothingIsTouchedWhereNothingDiffers) {
  Start(3);
  Run(absl::Minutes(1));
  EXPECT_EQ(kernel_.mends(), 0);
  EXPECT_EQ(repairer_->counts().rounds, 7U);
  EXPECT_EQ(kernel_.pod_reads(), 3);
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr("attachments_restored")));
}

TEST_F(RepairerTest, OnlyAPodInWhichSomethingChangedIsLookedIntoAgain) {
  Start(3);
  Run(absl::Seconds(15));
  ASSERT_EQ(kernel_.pod_reads(), 3);
  kernel_.pod(Link(1)).routes.clear();
  Run(absl::Seconds(10));
  EXPECT_EQ(Differences(), 0);
  EXPECT_EQ(repairer_->counts().of(Part::kPodRoute), (RepairCounts::OfPart{1, 0}));
}

TEST_F(RepairerTest, WhereTheKernelTellsNothingEachRoundLooksIntoAllPods) {
  kernel_.TellNoPodChanges();
  Start(3);
  Run(absl::Minutes(1));
  EXPECT_EQ(repairer_->counts().rounds, 7U);
  EXPECT_EQ(kernel_.pod_reads(), 21);
}

TEST_F(RepairerTest, WhatTheKernelDidNotTellIsFoundWithinFiveMinutes) {
  Start(2);
  Run(absl::Seconds(15));
  kernel_.pod(Link(1)).routes.clear();
  EXPECT_FALSE(kernel_.TakePodChanges().netns.empty());  // Nobody tells the repairer.
  Run(absl::Minutes(5));
  EXPECT_EQ(Differences(), 0);
  EXPECT_EQ(kernel_.pod_reads(), 2 + 2 + 1) << "all once more, and the one that was mended";
}

TEST_F(RepairerTest, AFullPassThatCouldNotReadTheLinksIsMadeInTheNextRound) {
  Start(2);
  Run(absl::Seconds(295));
  kernel_.FailReads(absl::UnavailableError("the list changed"));
  kernel_.pod(Link(1)).routes.clear();
  EXPECT_FALSE(kernel_.TakePodChanges().netns.empty());  // Nobody tells the repairer.
  Run(absl::Seconds(10));
  ASSERT_EQ(repairer_->counts().failed_rounds, 1U);
  kernel_.FailReads(absl::OkStatus());
  Run(absl::Seconds(10));
  EXPECT_EQ(Differences(), 0);
}

TEST_F(RepairerTest, APodThatIsNotRightIsLookedIntoUntilItIs) {
  Start(2);
  kernel_.FailMending(Part::kPodRoute, absl::InternalError("no"));
  kernel_.pod(Link(0)).routes.clear();
  Run(absl::Seconds(29));
  EXPECT_EQ(repairer_->counts().of(Part::kPodRoute), (RepairCounts::OfPart{0, 3}));
  kernel_.FailMending(Part::kPodRoute, absl::OkStatus());
  Run(absl::Seconds(10));
  EXPECT_EQ(Differences(), 0);
}

TEST_F(RepairerTest, APodThatCouldNotBeOpenedIsLookedIntoWhenItCan) {
  Start(1);
  auto hidden = namespaces_.extract(assignments_[0].netns_path);
  kernel_.pod(Link(0)).routes.clear();
  Run(absl::Seconds(25));
  EXPECT_EQ(kernel_.pod_reads(), 0);
  namespaces_.insert(std::move(hidden));
  Run(absl::Seconds(10));
  EXPECT_EQ(Differences(), 0);
}

TEST_F(RepairerTest, TheMacThatWasSeenIsToldInEveryRound) {
  std::vector<ip::MacAddress> heard;
  on_pod_mac_ = [&heard](const std::string&, const ip::MacAddress& mac) { heard.push_back(mac); };
  Start(1);
  const ip::MacAddress tuned{{0x0E, 9, 9, 9, 9, 9}};
  kernel_.pod(Link(0)).mac = tuned;
  Run(absl::Seconds(25));
  EXPECT_THAT(heard, testing::SizeIs(testing::Ge(3U)));
  EXPECT_THAT(heard, testing::Each(tuned));
}

TEST_F(RepairerTest, EveryPodIsRightWithinThirtySecondsAndNoSliceIsLong) {
  Start(250);
  clock_.Advance(absl::Minutes(1));
  for (const Assignment& assignment : assignments_) {
    const std::string link = HostLinkName(assignment.key);
    kernel_.host(link).routes.clear();
    kernel_.host(link).neighbours.clear();
    kernel_.pod(link).routes.clear();
    kernel_.pod(link).addresses.clear();
  }
  const absl::Time end = clock_.Now() + absl::Seconds(30);
  while (clock_.Now() < end) {
    const int before = kernel_.mends();
    const int looked_before = kernel_.pod_reads();
    repairer_->Tick();
    EXPECT_LE(kernel_.mends() - before, 4 * kMaxRepairsPerSlice);
    EXPECT_LE(kernel_.pod_reads() - looked_before, kMaxRepairsPerSlice);
    clock_.Advance(std::max(repairer_->NextWake() - clock_.Now(), absl::Milliseconds(1)));
  }
  EXPECT_EQ(Differences(), 0);
  EXPECT_EQ(repairer_->counts().of(Part::kPodAddress).repaired, 250U);
}

TEST_F(RepairerTest, APassThroughThePodsThatTakesLongReachesTheLast) {
  // These are more pods than a round has slices for.
  Start(2000);
  kernel_.pod(Link(1999)).addresses.clear();
  Run(absl::Seconds(30));
  EXPECT_EQ(Differences(), 0);
}

TEST_F(RepairerTest, ThePodsInsideIsLeftAloneWhenToldSo) {
  Start(1, /*repair_pods=*/false);
  kernel_.pod(Link(0)).addresses.clear();
  kernel_.host(Link(0)).up = false;
  Run(absl::Seconds(30));
  EXPECT_TRUE(kernel_.host(Link(0)).up);
  EXPECT_TRUE(kernel_.pod(Link(0)).addresses.empty());
  EXPECT_EQ(kernel_.pod_reads(), 0);
}

TEST_F(RepairerTest, APathThatLeadsNowhereOrElsewhereIsPassedOverSilently) {
  Start(2);
  namespaces_.erase(assignments_[0].netns_path);
  namespaces_.insert_or_assign(assignments_[1].netns_path, kernel_.NewPodNetns());
  kernel_.pod(Link(0)).addresses.clear();
  kernel_.pod(Link(1)).addresses.clear();
  Run(absl::Seconds(30));
  EXPECT_EQ(kernel_.mends(), 0);
  EXPECT_EQ(Differences(), 2);
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr("attachments_restored")));
  EXPECT_TRUE(repairer_->Healthy());
}

TEST_F(RepairerTest, WhatCannotBeMendedIsSaidOnceAndTriedOn) {
  Start(1);
  kernel_.FailMending(Part::kHostUp, absl::InternalError("no"));
  kernel_.host(Link(0)).up = false;
  Run(absl::Seconds(29));
  EXPECT_EQ(repairer_->counts().of(Part::kHostUp), (RepairCounts::OfPart{0, 3}));
  EXPECT_EQ(log_.Count("attachment_repair_failed"), 1);
  EXPECT_THAT(std::string(repairer_->Health().message()),
              HasSubstr("1 of 1 attachments of this node cannot be mended, such as: link spk"));
  kernel_.FailMending(Part::kHostUp, absl::OkStatus());
  Run(absl::Seconds(10));
  EXPECT_TRUE(repairer_->Healthy());
  EXPECT_EQ(repairer_->counts().of(Part::kHostUp).repaired, 1U);
}

TEST_F(RepairerTest, UnhealthyIsANodeMostOfWhoseAttachmentsCannotBeMended) {
  Start(5);
  kernel_.FailMending(Part::kHostUp, absl::InternalError("no"));
  kernel_.Remove(Link(4));  // One that is gone says nothing about the others.
  assignments_.pop_back();
  for (int i = 0; i < 4; ++i) {
    kernel_.host(Link(i)).up = false;
    Run(absl::Seconds(10));
    EXPECT_EQ(repairer_->Healthy(), i + 1 <= 2) << i + 1 << " of 4: " << repairer_->Health();
  }
  kernel_.host(Link(0)).up = true;
  kernel_.host(Link(1)).up = true;
  Run(absl::Seconds(10));
  EXPECT_TRUE(repairer_->Healthy()) << repairer_->Health();
}

TEST_F(RepairerTest, NoPodCanMakeItsNodeUnhealthy) {
  Start(1);
  kernel_.pod(Link(0)).name = "renamed";
  kernel_.FailMending(Part::kPodRoute, absl::AlreadyExistsError("in the way"));
  kernel_.pod(Link(0)).routes.clear();
  Run(absl::Seconds(29));
  EXPECT_EQ(log_.Count("attachment_repair_failed"), 2);
  EXPECT_EQ(repairer_->counts().of(Part::kPodLink).failed, 3U);
  EXPECT_TRUE(repairer_->Healthy()) << repairer_->Health();
}

TEST_F(RepairerTest, AMacThatALaterPluginHasSetIsTheOneNeighbourEntriesGet) {
  Start(1);
  const ip::MacAddress tuned{{0x0E, 9, 9, 9, 9, 9}};
  kernel_.pod(Link(0)).mac = tuned;
  Run(absl::Seconds(5));
  EXPECT_EQ(kernel_.host(Link(0)).neighbours, (std::vector<PermanentNeighbour>{{kFirst, tuned}}));
  // The MAC that was seen also holds when only the node's side is mended.
  kernel_.host(Link(0)).neighbours.clear();
  namespaces_.clear();
  Run(absl::Seconds(10));
  EXPECT_EQ(kernel_.host(Link(0)).neighbours, (std::vector<PermanentNeighbour>{{kFirst, tuned}}));
}

TEST_F(RepairerTest, LinksThatCannotBeReadThreeTimesInARowAreUnhealthyUntilTheyCan) {
  Start(1);
  kernel_.FailReads(absl::UnavailableError("the list changed"));
  Run(absl::Seconds(15));
  EXPECT_EQ(repairer_->counts().failed_rounds, 2U);
  EXPECT_TRUE(repairer_->Healthy()) << "a dump that is interrupted is no broken node";
  Run(absl::Seconds(10));
  EXPECT_EQ(log_.Count("attachments_unreadable"), 1);
  EXPECT_EQ(repairer_->counts().failed_rounds, 3U);
  EXPECT_THAT(std::string(repairer_->Health().message()), HasSubstr("the list changed"));
  kernel_.FailReads(absl::OkStatus());
  Run(absl::Seconds(10));
  EXPECT_TRUE(repairer_->Healthy());
  kernel_.FailReads(absl::UnavailableError("the list changed"));
  Run(absl::Seconds(20));
  EXPECT_TRUE(repairer_->Healthy()) << "it counts from the last that worked";
}

TEST_F(RepairerTest, ALinkThatIsGoneIsSaidOnceAndIsThePodsTrouble) {
  Start(2);
  kernel_.Remove(Link(0));
  assignments_.erase(assignments_.begin());
  Run(absl::Minutes(1));
  EXPECT_EQ(log_.Count("attachment_link_gone"), 1);
  EXPECT_EQ(kernel_.mends(), 0);
  EXPECT_TRUE(repairer_->Healthy());
}

TEST_F(RepairerTest, SettingsOfTheNodeAreMadeAgainAndCounted) {
  Start(0);
  node_report_.changed = {{"net.ipv4.ip_forward", "0", "1"}};
  Run(absl::Seconds(5));
  EXPECT_EQ(repairer_->counts().node_settings, 1U);
  EXPECT_THAT(log_.lines(), Contains("node_setting_repaired name=net.ipv4.ip_forward before=0 "
                                     "after=1"));
  node_report_ = {.changed = {}, .failed = {absl::PermissionDeniedError("read-only")}};
  repairer_->LookNow();
  repairer_->Tick();
  EXPECT_THAT(std::string(repairer_->Health().message()), HasSubstr("read-only"));
  EXPECT_EQ(log_.Count("sysctl_failed"), 1);
}

TEST_F(RepairerTest, UnreachableRoutesThatSomebodyRemovedComeBack) {
  Start(2);
  EXPECT_EQ(kernel_.Unreachable().size(), 2U);
  ASSERT_TRUE(kernel_.SetUnreachable({}).ok());
  Run(absl::Seconds(10));
  EXPECT_EQ(kernel_.Unreachable(), attachments_.assignments().Attached());
}

TEST_F(RepairerTest, AnAssignmentThatEndedSinceTheRoundIsNotTouched) {
  Start(40);
  for (int i = 0; i < 40; ++i) kernel_.host(Link(i)).up = false;
  repairer_->Tick();  // The round, and the first slice.
  EXPECT_EQ(kernel_.mends(), kMaxRepairsPerSlice);
  for (const Assignment& assignment : assignments_)
    ASSERT_TRUE(attachments_.Del(assignment.key).ok());
  Run(absl::Seconds(5));
  EXPECT_EQ(kernel_.mends(), kMaxRepairsPerSlice);
}

TEST_F(RepairerTest, ALinkTheJournalDidNotKnowIsLeftAsItIs) {
  const os::UniqueFd pod = kernel_.NewPodNetns();
  const AttachSpec stray = PlanAttach({"stray", "eth0"}, {kFirst}, 1500).value();
  ASSERT_TRUE(Attach(kernel_, stray, pod.get()).ok());
  Start(0);
  ASSERT_EQ(attachments_.assignments().Built().size(), 1U);
  Run(absl::Seconds(30));
  EXPECT_EQ(kernel_.mends(), 0);
  EXPECT_EQ(log_.Count("attachment_link_gone"), 0);
}

}  // namespace
}  // namespace spoke::netagent
