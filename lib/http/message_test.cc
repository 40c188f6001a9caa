#include "lib/http/message.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::http {
namespace {

TEST(HttpHeaders, NamesCompareWithoutRegardToCase) {
  const Headers headers{{"Retry-After", "7"}, {"X-Many", "a"}, {"x-many", "b"}};
  EXPECT_EQ(headers.Find("retry-after"), "7");
  EXPECT_EQ(headers.Find("X-MANY"), "a");
  EXPECT_THAT(headers.FindAll("X-Many"), testing::ElementsAre("a", "b"));
  EXPECT_EQ(headers.Find("Retry"), std::nullopt);
  EXPECT_THAT(headers.FindAll("ETag"), testing::IsEmpty());
}

}  // namespace
}  // namespace spoke::http
