#include "netagent/attach/attach_traces.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const absl::Time kBegin = absl::UnixEpoch() + absl::Hours(1);

node_api::AttachTrace TraceOf(const std::string& container, const std::string& pod) {
  return {.container_id = container,
          .ifname = "eth0",
          .pod_namespace = "ns",
          .pod_name = pod,
          .trace_id = "t",
          .since = kBegin};
}

node_api::AttachStep Step(const std::string& name, int64_t begin_us, int64_t took_us) {
  return {name, absl::Microseconds(begin_us), absl::Microseconds(took_us)};
}

TEST(StepTimes, EachStepBeginsWhereTheOneBeforeEnded) {
  StepTimes times(kBegin);
  times.Ended("received", kBegin + absl::Microseconds(10));
  times.Ended("planned", kBegin + absl::Microseconds(35));
  EXPECT_THAT(times.steps(), ElementsAre(Step("received", 0, 10), Step("planned", 10, 25)));
  EXPECT_EQ(times.total_us(), 35);
}

TEST(StepTimes, AClockThatIsSetBackMakesAStepOfNothing) {
  StepTimes times(kBegin);
  times.Ended("a", kBegin + absl::Microseconds(10));
  times.Ended("b", kBegin - absl::Seconds(5));
  times.Ended("c", kBegin + absl::Microseconds(12));
  EXPECT_THAT(times.steps(), ElementsAre(Step("a", 0, 10), Step("b", 10, 0), Step("c", 10, 2)));
}

TEST(TraceIdOf, TakesTheSecondFieldOfAWellFormedContextOnly) {
  const std::string id = "0af7651916cd43dd8448eb211c80319c";
  EXPECT_EQ(TraceIdOf("00-" + id + "-b7ad6b7169203331-01"), id);
  EXPECT_EQ(TraceIdOf("01-" + id + "-b7ad6b7169203331-01-more"), id);
  for (const std::string& bad :
       {std::string(), std::string("garbage"), "ff-" + id + "-b7ad6b7169203331-01",
        "00-" + std::string(32, '0') + "-b7ad6b7169203331-01",
        "00-" + std::string(32, 'G') + "-b7ad6b7169203331-01", "00-" + id + "-b7ad6b716920333",
        "00_" + id + "-b7ad6b7169203331-01"}) {
    EXPECT_EQ(TraceIdOf(bad), "") << bad;
  }
}

TEST(AttachTraces, TheNewestComesFirstAndAFilterChooses) {
  AttachTraces traces;
  EXPECT_THAT(traces.Find({}), IsEmpty());
  traces.Add(TraceOf("a", "web"));
  traces.Add(TraceOf("b", "api"));
  traces.Add(TraceOf("c", "web"));
  EXPECT_THAT(traces.Find({}),
              ElementsAre(TraceOf("c", "web"), TraceOf("b", "api"), TraceOf("a", "web")));
  EXPECT_THAT(traces.Find({.pod_name = "web"}),
              ElementsAre(TraceOf("c", "web"), TraceOf("a", "web")));
  EXPECT_THAT(traces.Find({.pod_namespace = "ns", .container_id = "b"}),
              ElementsAre(TraceOf("b", "api")));
  EXPECT_THAT(traces.Find({.pod_namespace = "other"}), IsEmpty());
}

TEST(AttachTraces, BeyondTheLimitTheOldestIsForgotten) {
  AttachTraces traces;
  for (size_t i = 0; i < AttachTraces::kMaxTraces + 3; ++i) {
    traces.Add(TraceOf(std::to_string(i), "p"));
  }
  const auto all = traces.Find({});
  ASSERT_EQ(all.size(), AttachTraces::kMaxTraces);
  EXPECT_EQ(all.front().container_id, std::to_string(AttachTraces::kMaxTraces + 2));
  EXPECT_EQ(all.back().container_id, "3");
}

}  // namespace
}  // namespace spoke::netagent
