#include "ipam-server/operators/operator_keys.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

TEST(OperatorKeys, SortByTimeAndThenByNumberAndAreReadBack) {
  const OperatorLogKey early{.unix_ms = 999, .number = 7};
  const OperatorLogKey late{.unix_ms = 1'700'000'000'000, .number = 0};
  EXPECT_EQ(StoreKeyOf(early), "operator-log/00000000000000000999-0000000007");
  EXPECT_LT(StoreKeyOf(early), StoreKeyOf(late));
  EXPECT_LT(StoreKeyOf(late), StoreKeyOf(OperatorLogKey{late.unix_ms, 1}));
  EXPECT_EQ(ParseOperatorLogKey(StoreKeyOf(early)), early);
  for (const char* other :
       {"", "operator-log/", "operator-log/1-1", "history/00000000000000000999-0000000007",
        "operator-log/0000000000000000x999-0000000007"}) {
    EXPECT_EQ(ParseOperatorLogKey(other), std::nullopt) << other;
  }
}

TEST(OperatorKeys, TheVersionOfAPieceIsReadBack) {
  EXPECT_EQ(ParsePolicyHistoryKey(PolicyHistoryPrefix(42) + "000001"), 42U);
  for (const char* other : {"", "policy-history/", "policy-history/42/1", "policy/version"}) {
    EXPECT_EQ(ParsePolicyHistoryKey(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace spoke::ipam
