#include "admin-cli/output/sort_order.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(SortOrderTest, IsReadAsKubectlWritesItToo) {
  EXPECT_EQ(ParseSortOrder("in_use").value(), (SortOrder{"in_use", false}));
  EXPECT_EQ(ParseSortOrder(".in_use").value(), (SortOrder{"in_use", false}));
  EXPECT_EQ(ParseSortOrder("in_use:desc").value(), (SortOrder{"in_use", true}));
  EXPECT_EQ(ParseSortOrder(".in_use:asc").value(), (SortOrder{"in_use", false}));
  for (const char* wrong : {"", ".", ":desc", "in_use:", "in_use:down", "a:b:desc"}) {
    const auto order = ParseSortOrder(wrong);
    EXPECT_EQ(order.status().code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(order.status().message(), HasSubstr(std::string("\"") + wrong + "\""));
  }
}

TEST(SortOrderTest, NamesTheKeysThatThereAre) {
  const Json item = {{"name", "node1"}, {"in_use", 3}};
  EXPECT_EQ(SortValueOf(item, {"in_use", false}).value(), 3);
  EXPECT_EQ(SortValueOf(item, {"IN-USE", false}).value(), 3);
  const auto none = SortValueOf(item, {"used", false});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(none.status().message(), HasSubstr("no key \"used\", but: name, in_use"));
  EXPECT_FALSE(SortValueOf(Json("text"), {"used", false}).ok());
}

TEST(SortOrderTest, CountsAsPeopleDo) {
  EXPECT_THAT(PlacesInOrder({"10.1.0.10", "10.1.0.9", "10.1.0.100"}, false), ElementsAre(1, 0, 2));
  EXPECT_THAT(PlacesInOrder({"node10", "node9", "node", "nodes1"}, false), ElementsAre(2, 1, 0, 3));
  EXPECT_THAT(PlacesInOrder({"a007", "a7", "a06"}, false), ElementsAre(2, 0, 1))
      << "equal ones stay as they were";
  EXPECT_THAT(PlacesInOrder({10, 9, 100}, false), ElementsAre(1, 0, 2));
  EXPECT_THAT(PlacesInOrder({10, 9, 100}, true), ElementsAre(2, 0, 1));
  EXPECT_THAT(PlacesInOrder({true, false, true}, false), ElementsAre(1, 0, 2));
  EXPECT_THAT(PlacesInOrder({}, false), ElementsAre());
}

TEST(SortOrderTest, KindsThatDifferHaveAnOrderToo) {
  EXPECT_EQ(PlacesInOrder({Json("a"), Json(), Json(1), Json::array({1})}, false).size(), 4U);
  EXPECT_EQ(PlacesInOrder({Json("a"), Json(), Json(1)}, false).front(), 1U) << "nothing is first";
}

}  // namespace
}  // namespace spoke::ctl
