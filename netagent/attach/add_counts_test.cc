#include "netagent/attach/add_counts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

TEST(AddCounts, ADurationCountsInTheFirstBucketThatHoldsIt) {
  DurationCounts counts;
  counts.Add(absl::ZeroDuration());
  counts.Add(absl::Milliseconds(1));
  counts.Add(absl::Microseconds(1001));
  counts.Add(absl::Seconds(10));
  counts.Add(absl::Seconds(11));
  EXPECT_THAT(counts.counts, ElementsAre(2, 1, 0, 0, 0, 1, 1));
  EXPECT_EQ(counts.sum, absl::Seconds(21) + absl::Microseconds(2001));
}

TEST(AddCounts, StepsCountForWhatWasAttachedAlone) {
  StepTimes steps(kNow);
  steps.Ended("receive", kNow + absl::Microseconds(100));
  steps.Ended("wait", kNow + absl::Milliseconds(50));
  steps.Ended("kernel", kNow + absl::Milliseconds(52));
  AddCounts counts;
  counts.Add(AddOutcome::kFailed, steps);
  counts.Add(AddOutcome::kNoAddress, steps);
  counts.Add(AddOutcome::kAttached, steps);
  EXPECT_THAT(counts.outcomes, ElementsAre(1, 1, 1, 0));
  EXPECT_EQ(counts.total.sum, absl::Milliseconds(52));
  EXPECT_THAT(counts.wait.counts, ElementsAre(0, 0, 0, 1, 0, 0, 0));
  EXPECT_THAT(counts.kernel.counts, ElementsAre(0, 1, 0, 0, 0, 0, 0));
  EXPECT_EQ(counts.traffic, DurationCounts()) << "nothing counts traffic there";
}

}  // namespace
}  // namespace spoke::netagent
