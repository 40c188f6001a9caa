#include "lib/telemetry/log_tail.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/recording_log.h"

namespace spoke::telemetry {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

TEST(LogTail, PassesOnAndKeeps) {
  testing_support::RecordingLog behind;
  LogTail log(behind, 1000);
  EXPECT_EQ(log.Text(), "");
  log.Info("ready");
  log.Warn("failed", {{"why", "two words"}});
  log.Debug("detail");
  EXPECT_EQ(behind.lines().size(), 3U);
  EXPECT_THAT(log.Text(),
              MatchesRegex("20[0-9-]+T[0-9:.]+Z level=info event=ready\n"
                           "20[0-9-]+T[0-9:.]+Z level=warning event=failed why=\"two words\"\n"));
}

TEST(LogTail, TheOldestGoFirst) {
  testing_support::RecordingLog behind;
  LogTail log(behind, 500);
  for (int i = 0; i < 100; ++i) log.Info("event", {{"number", i}});
  const std::string text = log.Text();
  EXPECT_LE(text.size(), 500U);
  EXPECT_GT(text.size(), 400U);
  EXPECT_THAT(text, HasSubstr("number=99\n"));
  EXPECT_THAT(text, Not(HasSubstr("number=50\n")));
  EXPECT_TRUE(text.starts_with("20")) << "whole lines";
  log.Info("event", {{"text", std::string(1000, 'x')}});
  EXPECT_EQ(log.Text(), text) << "one that is too long is passed on only";
}

TEST(LogTail, ManyMayWriteAtOnce) {
  testing_support::RecordingLog behind;
  LogTail log(behind, 1 << 16);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        log.Info("event", {{"number", n}});
        if (n % 50 == 0) EXPECT_FALSE(log.Text().empty());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(behind.Count("event"), 800);
}

}  // namespace
}  // namespace spoke::telemetry
