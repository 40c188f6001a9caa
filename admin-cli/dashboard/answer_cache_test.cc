#include "admin-cli/dashboard/answer_cache.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

class AnswerCacheTest : public testing::Test {
 protected:
  std::string Get(const std::string& key) {
    return cache_
        .Of(key, [this] { return PageAnswer{.body = std::to_string(asked_.fetch_add(1))}; })
        ->body;
  }

  os::SimClock clock_;
  AnswerCache cache_{clock_, absl::Seconds(10)};
  std::atomic<int> asked_ = 0;
};

TEST_F(AnswerCacheTest, KeepsEachAnswerForItsTime) {
  EXPECT_EQ(Get("a"), "0");
  EXPECT_EQ(Get("b"), "1");
  clock_.Advance(absl::Milliseconds(9'999));
  EXPECT_EQ(Get("a"), "0");
  EXPECT_EQ(Get("b"), "1");
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(Get("a"), "2");
}

TEST_F(AnswerCacheTest, KeepsLongerWhatTookLongerButForNoMoreThanAMinute) {
  absl::Duration takes = absl::Milliseconds(100);
  int asked = 0;
  const auto ask = [&] {
    ++asked;
    clock_.Advance(takes);
    return PageAnswer();
  };
  cache_.Of("a", ask);
  clock_.Advance(absl::Milliseconds(19'999));
  cache_.Of("a", ask);
  EXPECT_EQ(asked, 1);
  takes = absl::Seconds(30);
  clock_.Advance(absl::Milliseconds(1));
  cache_.Of("a", ask);
  EXPECT_EQ(asked, 2);
  clock_.Advance(absl::Milliseconds(59'999));
  cache_.Of("a", ask);
  EXPECT_EQ(asked, 2);
  clock_.Advance(absl::Milliseconds(1));
  cache_.Of("a", ask);
  EXPECT_EQ(asked, 3);
}

TEST_F(AnswerCacheTest, AnIntervalOfMoreThanAMinuteHolds) {
  AnswerCache slow(clock_, absl::Minutes(5));
  int asked = 0;
  const auto ask = [&] {
    ++asked;
    return PageAnswer();
  };
  slow.Of("a", ask);
  clock_.Advance(absl::Minutes(4));
  slow.Of("a", ask);
  EXPECT_EQ(asked, 1);
}

TEST_F(AnswerCacheTest, AClockSetBackKeepsNothingForLong) {
  EXPECT_EQ(Get("a"), "0");
  clock_.Advance(absl::Hours(-1));
  EXPECT_EQ(Get("a"), "1");
}

TEST_F(AnswerCacheTest, TheOneThatWasUsedLongestAgoMakesRoom) {
  EXPECT_EQ(Get("first"), "0");
  EXPECT_EQ(Get("second"), "1");
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(Get("first"), "0");
  for (size_t i = 2; i <= AnswerCache::kMostAnswers; ++i) Get("more" + std::to_string(i));
  const int asked = asked_;
  EXPECT_EQ(Get("first"), "0");
  EXPECT_EQ(asked_, asked);
  EXPECT_EQ(Get("second"), std::to_string(asked));
}

TEST_F(AnswerCacheTest, ThoseWhoComeTogetherAskOnce) {
  absl::Notification asking;
  absl::Notification go_on;
  std::atomic<int> asked = 0;
  const auto ask = [&] {
    ++asked;
    if (!asking.HasBeenNotified()) asking.Notify();
    go_on.WaitForNotification();
    return PageAnswer{.body = "x"};
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 10; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(cache_.Of("a", ask)->body, "x"); });
  }
  asking.WaitForNotification();
  // Whoever wants another answer does not wait.
  EXPECT_EQ(Get("b"), "0");
  go_on.Notify();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace spoke::ctl
