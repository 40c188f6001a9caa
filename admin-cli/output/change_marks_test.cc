#include "admin-cli/output/change_marks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

using testing::ElementsAre;

class ChangeMarksTest : public testing::Test {
 protected:
  // Returns which cells of a row are marked.
  std::vector<bool> Mark(const std::string& name, const std::vector<std::string>& cells) {
    Row row;
    for (const std::string& cell : cells) row.push_back({cell});
    marks_.Mark(name, row);
    std::vector<bool> changed;
    for (const Cell& cell : row) changed.push_back(cell.change == Change::kMarked);
    return changed;
  }

  ChangeMarks marks_;
};

TEST_F(ChangeMarksTest, MarksNothingInTheFirstPicture) {
  marks_.Begin();
  EXPECT_THAT(Mark("a", {"a", "free"}), ElementsAre(false, false));
}

TEST_F(ChangeMarksTest, MarksWhatDiffersAndRowsThatAreNew) {
  marks_.Begin();
  Mark("a", {"a", "free"});
  Mark("b", {"b", "free"});
  marks_.Begin();
  EXPECT_THAT(Mark("b", {"b", "free"}), ElementsAre(false, false)) << "the order is no change";
  EXPECT_THAT(Mark("a", {"a", "in use"}), ElementsAre(false, true));
  EXPECT_THAT(Mark("c", {"c", "free"}), ElementsAre(true, true));
  marks_.Begin();
  EXPECT_THAT(Mark("a", {"a", "in use"}), ElementsAre(false, false));
}

TEST_F(ChangeMarksTest, RowsOfOneNameAreComparedInTheirOrder) {
  marks_.Begin();
  Mark("a", {"a", "first"});
  Mark("a", {"a", "second"});
  marks_.Begin();
  EXPECT_THAT(Mark("a", {"a", "first"}), ElementsAre(false, false));
  EXPECT_THAT(Mark("a", {"a", "third"}), ElementsAre(false, true));
}

TEST_F(ChangeMarksTest, HowLongAgoSomethingWasIsNoChange) {
  marks_.Begin();
  Mark("a", {"a", "up 59s (seen 1m20s ago)"});
  Mark("b", {"b", "5 mbit"});
  marks_.Begin();
  EXPECT_THAT(Mark("a", {"a", "up 2m (seen 3s ago)"}), ElementsAre(false, false));
  EXPECT_THAT(Mark("b", {"b", "6 mbit"}), ElementsAre(false, true));
  marks_.Begin();
  EXPECT_THAT(Mark("a", {"a", "up 2m (seen never)"}), ElementsAre(false, true));
  EXPECT_THAT(Mark("b", {"b", "node6s2 6meters"}), ElementsAre(false, true));
  marks_.Begin();
  EXPECT_THAT(Mark("b", {"b", "node7s2 7meters"}), ElementsAre(false, true));
}

TEST_F(ChangeMarksTest, WhatChangesWithEachReadingIsIgnored) {
  for (const char* trend : {"1", "2"}) {
    Row row = {{"a"}, {trend, Tone::kNote, Change::kIgnored}};
    marks_.Begin();
    marks_.Mark("a", row);
    EXPECT_EQ(row[1].change, Change::kIgnored);
  }
}

TEST_F(ChangeMarksTest, APictureOfNothingIsPassedOver) {
  marks_.Begin();
  Mark("a", {"a", "free"});
  marks_.Begin();
  marks_.Begin();
  EXPECT_THAT(Mark("a", {"a", "in use"}), ElementsAre(false, true));
}

}  // namespace
}  // namespace spoke::ctl
