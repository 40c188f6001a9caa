#include "lib/base/status_news.h"

#include "gtest/gtest.h"

namespace spoke::base {
namespace {

TEST(StatusNews, AllBeingWellIsNoNewsBeforeSomethingElseWas) {
  StatusNews news;
  EXPECT_FALSE(news.IsNews(absl::OkStatus(), 0));
  EXPECT_TRUE(news.IsNews(absl::UnavailableError("a"), 1));
  EXPECT_TRUE(news.IsNews(absl::OkStatus(), 2));
  EXPECT_FALSE(news.IsNews(absl::OkStatus(), 2 + StatusNews::kTellAgainMs));
}

TEST(StatusNews, AnotherKindOfErrorIsAndOtherWordsForOneAreNotBeforeAMinuteIsOver) {
  StatusNews news;
  ASSERT_TRUE(news.IsNews(absl::UnavailableError("a"), 1));
  EXPECT_FALSE(news.IsNews(absl::UnavailableError("b"), StatusNews::kTellAgainMs));
  EXPECT_EQ(news.told(), absl::UnavailableError("a"));
  EXPECT_TRUE(news.IsNews(absl::UnavailableError("b"), 1 + StatusNews::kTellAgainMs));
  EXPECT_EQ(news.told(), absl::UnavailableError("b"));
  EXPECT_TRUE(news.IsNews(absl::PermissionDeniedError("c"), 2 + StatusNews::kTellAgainMs));
}

}  // namespace
}  // namespace spoke::base
