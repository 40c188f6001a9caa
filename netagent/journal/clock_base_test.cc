#include "netagent/journal/clock_base.h"

#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

constexpr std::string_view kBoot = "8f1f6a0e-1c5f-4b43-9d0f-0d2f1c9b5a11";

class ClockBaseTest : public testing::Test {
 protected:
  void Write(std::string_view text) {
    ASSERT_TRUE(os::WriteFileAtomic(path_, text, os::Durability::kVisible).ok());
  }

  testing_support::TempDir dir_;
  const std::string path_ = dir_.File("clock");
};

TEST_F(ClockBaseTest, TheFirstAgentOfABootDecidesForTheOthers) {
  const ClockBase other{.ahead = absl::Hours(5), .first_of_boot = false};
  EXPECT_EQ(ReadClockBase(path_, kBoot, absl::Hours(5)).value(), (ClockBase{absl::Hours(5), true}));
  EXPECT_EQ(ReadClockBase(path_, kBoot, absl::Hours(9)).value(), other);
  EXPECT_EQ(ReadClockBase(path_, kBoot, -absl::Hours(9)).value(), other);
}

TEST_F(ClockBaseTest, AnotherBootBeginsAnew) {
  ASSERT_TRUE(ReadClockBase(path_, kBoot, absl::Hours(5)).ok());
  EXPECT_EQ(ReadClockBase(path_, "another", -absl::Hours(1)).value(),
            (ClockBase{-absl::Hours(1), true}));
  EXPECT_EQ(ReadClockBase(path_, "another", absl::Hours(9)).value(),
            (ClockBase{-absl::Hours(1), false}));
}

TEST_F(ClockBaseTest, WhatIsReadAgainIsWhatWasReturned) {
  const absl::Duration fine = absl::Hours(5) + absl::Nanoseconds(1'500'001);
  const absl::Duration first = ReadClockBase(path_, kBoot, fine)->ahead;
  EXPECT_EQ(first, absl::Hours(5) + absl::Milliseconds(1));
  EXPECT_EQ(ReadClockBase(path_, kBoot, absl::ZeroDuration())->ahead, first);
}

TEST_F(ClockBaseTest, AFileThatIsNotOursIsReplaced) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string(kBoot) + "\n", std::string(kBoot) + " 7",
        std::string(kBoot) + " 7 8\n", std::string(kBoot) + " 99999999999999999999\n",
        std::string(kBoot) + " x\n", std::string(kBoot) + " 7\n" + std::string(300, ' ')}) {
    Write(text);
    EXPECT_EQ(ReadClockBase(path_, kBoot, absl::Hours(2)).value(),
              (ClockBase{absl::Hours(2), true}))
        << text;
    EXPECT_EQ(ReadClockBase(path_, kBoot, absl::Hours(3)).value(),
              (ClockBase{absl::Hours(2), false}))
        << text;
  }
}

TEST_F(ClockBaseTest, AFileThatCannotBeWrittenIsSaid) {
  EXPECT_EQ(ReadClockBase(dir_.File("none/clock"), kBoot, absl::Hours(2)).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(UnrecordedUseEndTest, WhatTheJournalDoesNotKnowEndedWithTheBootBefore) {
  const absl::Time booted = absl::UnixEpoch() + absl::Hours(5);
  const absl::Time now = booted + absl::Minutes(10);
  const ClockBase first{.ahead = absl::Hours(5), .first_of_boot = true};
  const ClockBase later{.ahead = absl::Hours(5), .first_of_boot = false};
  EXPECT_EQ(UnrecordedUseEnd(first, /*journal_is_empty=*/true, now), booted);
  EXPECT_EQ(UnrecordedUseEnd(later, /*journal_is_empty=*/false, now), booted);
  EXPECT_EQ(UnrecordedUseEnd(later, /*journal_is_empty=*/true, now), now) << "it was lost";
}

}  // namespace
}  // namespace spoke::netagent
