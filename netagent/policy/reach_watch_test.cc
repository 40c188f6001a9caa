#include "netagent/policy/reach_watch.h"

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"

namespace spoke::netagent {
namespace {

using node_api::ProbeOutcome;
using node_api::ProbeResult;
using node_api::ProbeTarget;
using node_checks::ReachTargets;
using policy::Endpoints;
using testing::IsEmpty;

constexpr const char* kHub = "10.8.0.10:443";
constexpr const char* kPeer = "10.32.0.1:443";

class ReachWatchTest : public testing::Test {
 protected:
  ReachWatch::Edges Edges() {
    const auto attempt = [this](const std::vector<ProbeTarget>& targets, const std::atomic<bool>&) {
      std::vector<ProbeResult> results;
      for (const ProbeTarget& target : targets) {
        const ip::Endpoint endpoint{target.address, target.port};
        const ProbeOutcome outcome = outcomes_[endpoint.ToString()];
        results.push_back(
            {.target = target,
             .outcome = outcome,
             .detail = outcome == ProbeOutcome::kRefused ? "Connection refused" : ""});
      }
      ++tries_;
      return results;
    };
    return {.clock = clock_,
            .random = [this] { return random_; },
            .try_hub = attempt,
            .try_peer_spokes = attempt};
  }
  static ReachTargets Both() {
    return {.hub = Endpoints({kHub}), .peer_spoke = Endpoints({kPeer})};
  }

  os::SimClock clock_;
  double random_ = 0.5;
  int tries_ = 0;
  std::map<std::string, ProbeOutcome> outcomes_ = {{kHub, ProbeOutcome::kReached},
                                                   {kPeer, ProbeOutcome::kTimedOut}};
};

TEST_F(ReachWatchTest, NothingIsTriedOrSaidBeforePolicyNamesTargets) {
  ReachWatch watch(Edges());
  watch.Look();
  EXPECT_EQ(watch.latest(), std::nullopt);
  watch.SetTargets(Both());
  EXPECT_EQ(watch.latest(), std::nullopt) << "they have not been tried yet";
  EXPECT_EQ(tries_, 0);
  watch.Look();
  EXPECT_EQ(tries_, 2);
  const auto found = watch.latest();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->hub.size(), 1U);
  EXPECT_EQ(found->hub[0].target.ToString(), kHub);
  EXPECT_TRUE(found->hub[0].reached);
  ASSERT_EQ(found->peer_spoke.size(), 1U);
  EXPECT_FALSE(found->peer_spoke[0].reached);
  EXPECT_EQ(found->peer_spoke[0].how, "timed out");
}

TEST_F(ReachWatchTest, APolicyWithoutTargetsIsSaidToHaveNone) {
  ReachWatch watch(Edges());
  watch.SetTargets({});
  watch.Look();
  EXPECT_EQ(watch.latest(), node_checks::ReachAnswers());
  EXPECT_EQ(tries_, 0);
}

TEST_F(ReachWatchTest, ARefusalIsAnAnswerAndLooksThatEndAlikeAreCounted) {
  outcomes_[kHub] = ProbeOutcome::kUnreachable;
  outcomes_[kPeer] = ProbeOutcome::kRefused;
  ReachWatch watch(Edges());
  watch.SetTargets(Both());
  watch.Look();
  const absl::Time first = clock_.Now();
  clock_.Advance(absl::Minutes(1));
  watch.Look();
  const auto found = watch.latest().value();
  EXPECT_FALSE(found.hub[0].reached);
  EXPECT_EQ(found.hub[0].looks, 2);
  EXPECT_EQ(found.hub[0].since, first);
  EXPECT_TRUE(found.peer_spoke[0].reached);
  EXPECT_EQ(found.peer_spoke[0].how, "Connection refused");
  EXPECT_EQ(found.peer_spoke[0].looks, 2);
}

TEST_F(ReachWatchTest, WhatCouldNotBeTriedStaysAsItWas) {
  ReachWatch watch(Edges());
  outcomes_[kHub] = ProbeOutcome::kNotTried;
  watch.SetTargets(Both());
  watch.Look();
  EXPECT_THAT(watch.latest()->hub, IsEmpty());
  outcomes_[kHub] = ProbeOutcome::kTimedOut;
  watch.Look();
  outcomes_[kHub] = ProbeOutcome::kNotTried;
  watch.Look();
  ASSERT_EQ(watch.latest()->hub.size(), 1U);
  EXPECT_EQ(watch.latest()->hub[0].looks, 1);
}

TEST_F(ReachWatchTest, WhatIsNoLongerATargetIsForgottenAndTheRestIsNot) {
  ReachWatch watch(Edges());
  watch.SetTargets(Both());
  watch.Look();
  outcomes_["10.8.0.11:443"] = ProbeOutcome::kTimedOut;
  watch.SetTargets({.hub = Endpoints({kHub, "10.8.0.11:443"})});
  ASSERT_EQ(watch.latest()->hub.size(), 1U);
  EXPECT_THAT(watch.latest()->peer_spoke, IsEmpty());
  watch.Look();
  ASSERT_EQ(watch.latest()->hub.size(), 2U);
  EXPECT_EQ(watch.latest()->hub[0].looks, 2);
}

TEST_F(ReachWatchTest, LooksAreAMinuteApartAndSoonerInDoubt) {
  ReachWatch watch(Edges());
  watch.SetTargets(Both());
  watch.Look();
  EXPECT_EQ(watch.Pause(), ReachWatch::kPause);
  random_ = 0;
  EXPECT_EQ(watch.Pause(), ReachWatch::kPause * 0.9);
  random_ = 0.5;
  outcomes_[kHub] = ProbeOutcome::kTimedOut;
  watch.Look();
  EXPECT_EQ(watch.Pause(), ReachWatch::kSoon);
  watch.Look();
  EXPECT_EQ(watch.Pause(), ReachWatch::kPause) << "two looks agree";
}

TEST_F(ReachWatchTest, ItsThreadTriesTargetsThatComeAndALookThatLastsEndsWithIt) {
  random_ = 0;  // New targets are tried at once.
  absl::Notification trying;
  {
    ReachWatch::Edges edges = Edges();
    edges.try_hub = [&](const auto&, const std::atomic<bool>& stop) {
      if (!trying.HasBeenNotified()) trying.Notify();
      while (!stop) absl::SleepFor(absl::Milliseconds(1));
      return std::vector<ProbeResult>();
    };
    ReachWatch watch(std::move(edges));
    watch.Start();
    watch.SetTargets({.hub = Endpoints({kHub})});
    trying.WaitForNotification();
  }
  EXPECT_TRUE(trying.HasBeenNotified());
}

}  // namespace
}  // namespace spoke::netagent
