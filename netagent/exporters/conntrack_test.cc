#include "netagent/exporters/conntrack.h"

#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

// The text of Linux 6.18 with two processors.
constexpr std::string_view kStat =
    "entries  clashres found new invalid ignore delete chainlength insert insert_failed drop "
    "early_drop icmp_error  expect_new expect_create expect_delete search_restart\n"
    "00000011  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 0000000a "
    "0000000b 00000000 00000000  00000000 00000000 00000000 00000000\n"
    "00000011  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000010 "
    "00000012 00000000 00000000  00000000 00000000 00000000 00000000\n";

TEST(ParseConntrackStat, AddsUpTheProcessors) {
  EXPECT_EQ(ParseConntrackStat(kStat).value(),
            (ConntrackReading{.insert_failed = 26, .dropped = 3}));
}

// There are six connections more than there are ports to translate to, as Linux 6.18 counts them.
TEST(ParseConntrackStat, TellsAFullRangeOfPortsFromAFullTable) {
  EXPECT_EQ(ParseConntrackStat("chainlength insert_failed drop\n0 6 6\n").value(),
            (ConntrackReading{.insert_failed = 6, .dropped = 0}));
  EXPECT_EQ(ParseConntrackStat("chainlength insert_failed drop\n2 2 4\n").value(),
            (ConntrackReading{.insert_failed = 2, .dropped = 4}));
}

TEST(ParseConntrackStat, OtherTextIsRefused) {
  for (const std::string_view text : {"", "entries insert_failed drop\n", "insert_failed drop\n1\n",
                                      "insert_failed drop\nx 1\n", "entries found\n1 2\n"}) {
    EXPECT_EQ(ParseConntrackStat(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ReadConntrack, TakesAllFromTheKernelsFiles) {
  const testing_support::TempDir dir;
  const ConntrackFiles files{
      .count = dir.File("count"), .max = dir.File("max"), .stat = dir.File("stat")};
  EXPECT_EQ(ReadConntrack(files).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(os::WriteFileAtomic(files.count, "17\n", os::Durability::kVisible).ok());
  ASSERT_TRUE(os::WriteFileAtomic(files.max, "262144\n", os::Durability::kVisible).ok());
  ASSERT_TRUE(os::WriteFileAtomic(files.stat, kStat, os::Durability::kVisible).ok());
  EXPECT_EQ(ReadConntrack(files).value(),
            (ConntrackReading{.entries = 17, .limit = 262'144, .insert_failed = 26, .dropped = 3}));
}

TEST(ConntrackWatch, TellsOnceOfATableThatFills) {
  ConntrackWatch watch;
  const auto look = [&](uint64_t entries) {
    return watch.Look({.entries = entries, .limit = 100});
  };
  EXPECT_FALSE(look(79));
  EXPECT_TRUE(look(80));
  EXPECT_FALSE(look(99));
  EXPECT_FALSE(look(75)) << "still nearly full";
  EXPECT_FALSE(look(85));
  EXPECT_FALSE(look(69));
  EXPECT_TRUE(look(80));
  EXPECT_FALSE(watch.Look({.entries = 5, .limit = 0}));
}

}  // namespace
}  // namespace spoke::netagent
