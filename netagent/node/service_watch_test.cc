#include "netagent/node/service_watch.h"

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using node_checks::ClockDifference;
using node_checks::ServiceAnswers;

class ServiceWatchTest : public testing::Test {
 protected:
  ServiceWatch::Edges Edges() {
    return {.probe =
                [this] {
                  ++probed_;
                  return ServiceAnswers{.metadata = node_checks::ServiceAnswer{
                                            .service = "m", .failed_looks = probed_}};
                },
            .ask_clock =
                [this] {
                  ++asked_;
                  return clock_;
                },
            .interrupt = [this] { ++interrupted_; }};
  }
  int probed_ = 0;
  int asked_ = 0;
  int interrupted_ = 0;
  std::optional<ClockDifference> clock_;
};

TEST_F(ServiceWatchTest, NothingIsKnownBeforeTheFirstLookAndThenTheLatest) {
  {
    ServiceWatch watch(Edges());
    EXPECT_EQ(watch.latest().services, std::nullopt);
    EXPECT_EQ(probed_, 0);
    watch.Look();
    watch.Look();
    ASSERT_TRUE(watch.latest().services);
    EXPECT_EQ(watch.latest().services->metadata->failed_looks, 2);
    EXPECT_EQ(interrupted_, 0);
  }
  EXPECT_EQ(interrupted_, 1);
}

TEST_F(ServiceWatchTest, TheServerIsAskedForItsTimeUntilItSaysItAndThenSeldom) {
  ServiceWatch watch(Edges());
  watch.Look();
  watch.Look();
  EXPECT_EQ(asked_, 2);
  EXPECT_EQ(watch.latest().clock, std::nullopt);
  clock_ = ClockDifference{.ahead = absl::Seconds(1)};
  watch.Look();
  EXPECT_EQ(asked_, 3);
  clock_ = ClockDifference{.ahead = absl::Seconds(2)};
  for (int look = 1; look < ServiceWatch::kLooksAClock; ++look) watch.Look();
  EXPECT_EQ(asked_, 3);
  EXPECT_EQ(watch.latest().clock->ahead, absl::Seconds(1));
  watch.Look();
  EXPECT_EQ(asked_, 4);
  EXPECT_EQ(watch.latest().clock->ahead, absl::Seconds(2));
}

TEST_F(ServiceWatchTest, ADifferenceThatCanNoLongerBeMeasuredIsForgotten) {
  clock_ = ClockDifference{.ahead = absl::Seconds(9)};
  ServiceWatch watch(Edges());
  watch.Look();
  clock_.reset();
  for (int look = 0; look < ServiceWatch::kLooksAClock; ++look) watch.Look();
  EXPECT_EQ(watch.latest().clock, std::nullopt);
}

TEST_F(ServiceWatchTest, ItsThreadLooksAtOnceAndALookThatLastsEndsWithIt) {
  absl::Notification looking;
  absl::Notification interrupted;
  {
    ServiceWatch watch({.probe =
                            [&] {
                              looking.Notify();
                              interrupted.WaitForNotification();
                              return ServiceAnswers();
                            },
                        .ask_clock = [] { return std::nullopt; },
                        .interrupt = [&] { interrupted.Notify(); }});
    watch.Start();
    looking.WaitForNotification();
  }
  EXPECT_TRUE(interrupted.HasBeenNotified());
}

}  // namespace
}  // namespace spoke::netagent
