#include "netagent/node/claims_text.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/node/all_claims.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ClaimsTable, HasALineForEachClaimInColumns) {
  const std::string table = ClaimsTable();
  EXPECT_THAT(table, StartsWith("WHAT"));
  EXPECT_EQ(static_cast<size_t>(std::count(table.begin(), table.end(), '\n')),
            AllClaims().size() + 1);
  const size_t column = table.find("VALUE");
  for (size_t line = 0; line + 1 < table.size(); line = table.find('\n', line) + 1) {
    EXPECT_NE(table[line + column], ' ') << table.substr(line, 80);
    EXPECT_EQ(table[line + column - 1], ' ') << table.substr(line, 80);
  }
  EXPECT_THAT(table, HasSubstr("169.254.1.1"));
}

TEST(ClaimsJson, IsAnArrayOfAllClaims) {
  const auto list = nlohmann::json::parse(ClaimsJson(), nullptr, false);
  ASSERT_TRUE(list.is_array());
  ASSERT_EQ(list.size(), AllClaims().size());
  EXPECT_EQ(list[0]["what"], "link name");
  EXPECT_EQ(list[0].size(), 3U);
}

}  // namespace
}  // namespace spoke::netagent
