// The thread sanitizer reports what nothing orders, and nothing that absl orders.
#include <cstdlib>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace spoke {
namespace {

constexpr int kThreads = 4;
constexpr int kTurns = 1000;
constexpr int kExitOfReport = 66;  // The sanitizer's own, at the end of a program with reports.

TEST(ThreadSanitizer, ReportsWhatNothingOrders) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto race = [] {
    int unguarded = 0;
    std::thread other([&] { ++unguarded; });
    ++unguarded;
    other.join();
    std::exit(0);
  };
  EXPECT_EXIT(race(), testing::ExitedWithCode(kExitOfReport), "data race");
}

TEST(ThreadSanitizer, ReportsWhatAnotherMutexGuards) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto race = [] {
    absl::Mutex one;
    absl::Mutex two;
    int count = 0;
    std::thread other([&] {
      const absl::MutexLock lock(&one);
      ++count;
    });
    {
      const absl::MutexLock lock(&two);
      ++count;
    }
    other.join();
    std::exit(0);
  };
  EXPECT_EXIT(race(), testing::ExitedWithCode(kExitOfReport), "data race");
}

// From here on each test fails by a report if something is not annotated.
TEST(ThreadSanitizer, AMutexOrders) {
  absl::Mutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        const absl::MutexLock lock(&mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, kThreads * kTurns);
}

TEST(ThreadSanitizer, AConditionIsReadWhileTheMutexIsHeld) {
  absl::Mutex mutex;
  int turn = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const auto is_mine = [&turn, i] { return turn % kThreads == i; };
      for (int round = 0; round < 20; ++round) {
        const absl::Condition turn_is_mine(&is_mine);
        if (round % 2 == 0) {
          const absl::MutexLock lock(&mutex);
          mutex.Await(turn_is_mine);
          ++turn;
        } else {
          const absl::MutexLock lock(&mutex, turn_is_mine);
          ++turn;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turn, kThreads * 20);
}

TEST(ThreadSanitizer, AWaitThatTimesOutHoldsTheMutexAgain) {
  absl::Mutex mutex;
  absl::CondVar condition;
  bool never = false;
  const absl::MutexLock lock(&mutex);
  EXPECT_FALSE(mutex.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(5)));
  EXPECT_TRUE(condition.WaitWithTimeout(&mutex, absl::Milliseconds(5)));
  mutex.AssertHeld();
}

TEST(ThreadSanitizer, AConditionVariableOrders) {
  absl::Mutex mutex;
  absl::CondVar condition;
  int value = 0;
  std::thread other([&] {
    const absl::MutexLock lock(&mutex);
    value = 7;
    condition.SignalAll();
  });
  {
    const absl::MutexLock lock(&mutex);
    while (value == 0) condition.Wait(&mutex);
    EXPECT_EQ(value, 7);
  }
  other.join();
}

TEST(ThreadSanitizer, ANotificationOrders) {
  for (const bool polls : {false, true}) {
    absl::Notification done;
    int value = 0;
    std::thread other([&] {
      value = 7;
      done.Notify();
    });
    while (polls && !done.HasBeenNotified()) std::this_thread::yield();
    if (!polls) done.WaitForNotification();
    EXPECT_EQ(value, 7);
    other.join();
  }
}

}  // namespace
}  // namespace spoke
