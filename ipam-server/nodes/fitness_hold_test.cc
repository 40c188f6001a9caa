#include "ipam-server/nodes/fitness_hold.h"

#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

const Fitness kFit{.ready = true, .reason = "AgentReady"};
const Fitness kAway{.ready = false, .reason = "AgentAway"};
const Fitness kFull{.ready = true, .reason = "AddressesExhausted", .no_addresses = true};

class FitnessHoldTest : public testing::Test {
 protected:
  HeldFitness See(const Fitness& fitness, absl::Duration after, bool joining = false) {
    now_ += after;
    return hold_.Observe(fitness, joining, times_, now_);
  }
  // Looks once a second until the verdict is `ready`; returns for how long.
  absl::Duration Until(const Fitness& fitness, bool ready) {
    const absl::Time begin = now_;
    while (See(fitness, absl::ZeroDuration()).ready != ready) now_ += absl::Seconds(1);
    return now_ - begin;
  }

  const HoldTimes times_{};
  FitnessHold hold_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

TEST_F(FitnessHoldTest, ANodeThatJoinsIsFitAtOnce) {
  EXPECT_EQ(See(kAway, absl::ZeroDuration(), true).ready, std::nullopt);
  EXPECT_EQ(See(kFit, absl::Seconds(20), true).ready, true);
}

TEST_F(FitnessHoldTest, ANodeThatJoinsIsUnfitOnlyAfterAWhile) {
  See(kAway, absl::ZeroDuration(), true);
  EXPECT_EQ(See(kAway, times_.joining - absl::Seconds(1), true).ready, std::nullopt);
  EXPECT_EQ(See(kAway, absl::Seconds(1), true).ready, false);
}

TEST_F(FitnessHoldTest, AnAgentThatIsBackInTimeChangesNothing) {
  EXPECT_EQ(Until(kFit, true), times_.fit);
  for (int i = 0; i < 10; ++i) {
    EXPECT_NE(See(kAway, absl::Seconds(1)).ready, false);
    EXPECT_NE(See(kAway, times_.unfit - absl::Seconds(1)).ready, false);
    See(kFit, absl::Seconds(1));
    EXPECT_EQ(See(kFit, times_.fit).ready, true);
  }
}

TEST_F(FitnessHoldTest, ANodeThatFlapsIsFitLaterEachTime) {
  Until(kFit, true);
  std::vector<absl::Duration> waits;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Until(kAway, false), times_.unfit);
    waits.push_back(Until(kFit, true));
  }
  EXPECT_EQ(waits, (std::vector<absl::Duration>{times_.fit, times_.fit * 2, times_.fit * 4,
                                                times_.fit * 8}));
  See(kFit, times_.flaps_of + absl::Seconds(1));
  Until(kAway, false);
  EXPECT_EQ(Until(kFit, true), times_.fit) << "it is forgotten";
}

TEST_F(FitnessHoldTest, AddressesThatComeAndGoAreNotTold) {
  See(kFit, absl::ZeroDuration());
  EXPECT_EQ(See(kFit, times_.room).exhausted, false);
  EXPECT_EQ(See(kFull, absl::Seconds(1)).exhausted, std::nullopt);
  EXPECT_EQ(See(kFull, times_.exhausted).exhausted, true);
  EXPECT_EQ(See(kFit, absl::Seconds(1)).exhausted, std::nullopt);
  EXPECT_EQ(See(kFit, times_.room).exhausted, false);
}

}  // namespace
}  // namespace spoke::ipam
