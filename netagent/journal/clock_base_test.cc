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
  EXPECT_EQ(AheadOfUptime(path_, kBoot, absl::Hours(5)).value(), absl::Hours(5));
  EXPECT_EQ(AheadOfUptime(path_, kBoot, absl::Hours(9)).value(), absl::Hours(5));
  EXPECT_EQ(AheadOfUptime(path_, kBoot, -absl::Hours(9)).value(), absl::Hours(5));
}

TEST_F(ClockBaseTest, AnotherBootBeginsAnew) {
  ASSERT_TRUE(AheadOfUptime(path_, kBoot, absl::Hours(5)).ok());
  EXPECT_EQ(AheadOfUptime(path_, "another", -absl::Hours(1)).value(), -absl::Hours(1));
  EXPECT_EQ(AheadOfUptime(path_, "another", absl::Hours(9)).value(), -absl::Hours(1));
}

TEST_F(ClockBaseTest, WhatIsReadAgainIsWhatWasReturned) {
  const absl::Duration fine = absl::Hours(5) + absl::Nanoseconds(1'500'001);
  const absl::Duration first = AheadOfUptime(path_, kBoot, fine).value();
  EXPECT_EQ(first, absl::Hours(5) + absl::Milliseconds(1));
  EXPECT_EQ(AheadOfUptime(path_, kBoot, absl::ZeroDuration()).value(), first);
}

TEST_F(ClockBaseTest, AFileThatIsNotOursIsReplaced) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string(kBoot) + "\n", std::string(kBoot) + " 7",
        std::string(kBoot) + " 7 8\n", std::string(kBoot) + " 99999999999999999999\n",
        std::string(kBoot) + " x\n", std::string(kBoot) + " 7\n" + std::string(300, ' ')}) {
    Write(text);
    EXPECT_EQ(AheadOfUptime(path_, kBoot, absl::Hours(2)).value(), absl::Hours(2)) << text;
    EXPECT_EQ(AheadOfUptime(path_, kBoot, absl::Hours(3)).value(), absl::Hours(2)) << text;
  }
}

TEST_F(ClockBaseTest, AFileThatCannotBeWrittenIsSaid) {
  EXPECT_EQ(AheadOfUptime(dir_.File("none/clock"), kBoot, absl::Hours(2)).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace spoke::netagent
