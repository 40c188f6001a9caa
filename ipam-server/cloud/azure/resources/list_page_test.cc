#include "ipam-server/cloud/azure/resources/list_page.h"

#include "gtest/gtest.h"

namespace spoke::ipam::azure {
namespace {

TEST(DecodeListPage, GivesItemsAndTheNextLink) {
  const auto page = DecodeListPage(R"({"value":[{"a":1},{"b":2}],"nextLink":"https://x/y"})");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->items.size(), 2U);
  EXPECT_EQ(page->items[1]["b"], 2);
  EXPECT_EQ(page->next_link, "https://x/y");
}

TEST(DecodeListPage, EndsWithoutANextLink) {
  for (const char* body :
       {R"({"value":[]})", R"({"value":[],"nextLink":null})", R"({"value":[],"nextLink":""})"}) {
    const auto page = DecodeListPage(body);
    ASSERT_TRUE(page.ok()) << body << page.status();
    EXPECT_TRUE(page->items.empty());
    EXPECT_EQ(page->next_link, "");
  }
}

TEST(DecodeListPage, NeverTakesSomethingElseForAnEmptyList) {
  for (const char* body :
       {"", "[]", "{}", "null", R"({"value":null})", R"({"value":{}})", R"({"value":"none"})",
        R"({"error":{"code":"x"}})", "<html></html>", R"({"value":[1]})", R"({"value":[null]})",
        R"({"value":[],"nextLink":7})", R"({"value":[{"a":1})"}) {
    EXPECT_EQ(DecodeListPage(body).status().code(), absl::StatusCode::kInvalidArgument) << body;
  }
}

}  // namespace
}  // namespace spoke::ipam::azure
