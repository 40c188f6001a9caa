#include "netagent/session/server_search.h"

#include <string>

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

constexpr absl::Duration kHead = ServerSearch::kHeadStart;

// Plays a script against a search. Letters are events: a digit fails that server's dial, "." lets
// the time pass until something is due, "|" begins a round at `first` without `without`. Returns
// the dials, with "/" where a round has ended.
struct Case {
  const char* name;
  size_t servers;
  size_t first;
  std::optional<size_t> without;
  const char* script;
  const char* want;
  absl::Duration took;  // The time from the beginning to the end of the script.
};

class ServerSearchTest : public testing::TestWithParam<Case> {};

TEST_P(ServerSearchTest, DialsInTheRightOrder) {
  const Case& c = GetParam();
  ServerSearch search(c.servers);
  const absl::Time begin = absl::FromUnixSeconds(1000);
  absl::Time now = begin;
  std::string did;
  const auto look = [&] {
    while (const auto server = search.Next(now)) did += static_cast<char>('0' + *server);
    if (search.EndRound(now)) did += '/';
  };
  for (const char event : std::string(c.script)) {
    if (event == '|') {
      search.BeginRound(c.first, c.without, now);
    } else if (event == '.') {
      now = search.NextWake();
    } else {
      search.OnFailed(static_cast<size_t>(event - '0'), now, 0.5);
    }
    look();
  }
  EXPECT_EQ(did, c.want);
  EXPECT_EQ(now - begin, c.took);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ServerSearchTest,
    testing::Values(
        Case{"OneThatRefuses", 1, 0, {}, "|0", "0/", absl::ZeroDuration()},
        Case{"OneThatIsSilentIsNotDialledTwice", 1, 0, {}, "|.|", "0//", kHead},
        Case{"TheNextAtOnceWithALittleJitter", 3, 1, {}, "|1.2.0", "120/", ServerSearch::kStep},
        Case{"TheNextAfterTheHeadStart", 3, 0, {}, "|..", "012", 2 * kHead},
        Case{"ARoundEndsWhileOneIsSilent", 2, 0, {}, "|.1", "01/", kHead},
        Case{"TheSilentOneIsLeftOutOfTheNextRound", 2, 0, {}, "|.1|1", "01/1/", kHead},
        Case{"ALateFailureHastensNothingWhenAllAreDialled", 2, 0, {}, "|.0", "01", kHead},
        Case{"ALateFailureComesBackInTheNextRound", 2, 0, {}, "|.10|", "01/0", kHead},
        Case{"ThePresentServerIsLeftOut", 3, 1, 0, "|1.2", "12/", ServerSearch::kStep / 2}),
    [](const auto& test) { return test.param.name; });

TEST(ServerSearch, WhatWasStoppedIsForgotten) {
  ServerSearch search(2);
  const absl::Time now = absl::FromUnixSeconds(1000);
  EXPECT_FALSE(search.Stop());
  EXPECT_EQ(search.NextWake(), absl::InfiniteFuture());
  search.BeginRound(0, {}, now);
  EXPECT_EQ(search.Next(now), 0U);
  EXPECT_TRUE(search.Stop());
  EXPECT_FALSE(search.OnFailed(0, now, 0.5)) << "an answer that comes too late";
  EXPECT_EQ(search.Next(now + absl::Hours(1)), std::nullopt);
  EXPECT_FALSE(search.EndRound(now + absl::Hours(1)));
}

}  // namespace
}  // namespace spoke::netagent
