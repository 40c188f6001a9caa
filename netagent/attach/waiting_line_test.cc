#include "netagent/attach/waiting_line.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

Waiter WaiterOf(uint64_t id, int seconds, const std::string& pod_namespace = "a") {
  return {.id = id, .pod_namespace = pod_namespace, .deadline = kNow + absl::Seconds(seconds)};
}

std::vector<uint64_t> Ids(const std::vector<Waiter>& waiters) {
  std::vector<uint64_t> ids;
  for (const Waiter& waiter : waiters) ids.push_back(waiter.id);
  return ids;
}

TEST(WaitingLine, WhoComesFirstIsNextWhateverTheIds) {
  WaitingLine line;
  for (const uint64_t id : {7U, 3U, 9U, 1U}) ASSERT_TRUE(line.Join(WaiterOf(id, 10)));
  EXPECT_FALSE(line.Join(WaiterOf(3, 10)));
  line.Leave(9);
  line.Leave(42);
  EXPECT_THAT(Ids(line.InOrder()), ElementsAre(7, 3, 1));
  ASSERT_TRUE(line.Join(WaiterOf(9, 10)));
  EXPECT_THAT(Ids(line.InOrder()), ElementsAre(7, 3, 1, 9));
}

TEST(WaitingLine, EachIsToldAtItsOwnDeadlineAndOnce) {
  WaitingLine line;
  EXPECT_EQ(line.NextDeadline(), std::nullopt);
  ASSERT_TRUE(line.Join(WaiterOf(1, 20)));
  ASSERT_TRUE(line.Join(WaiterOf(2, 5)));
  ASSERT_TRUE(line.Join(WaiterOf(3, 5)));
  EXPECT_EQ(line.NextDeadline(), kNow + absl::Seconds(5));
  EXPECT_THAT(line.TakeOverdue(kNow + absl::Seconds(4)), IsEmpty());
  EXPECT_THAT(Ids(line.TakeOverdue(kNow + absl::Seconds(5))), ElementsAre(2, 3));
  EXPECT_THAT(line.TakeOverdue(kNow + absl::Seconds(5)), IsEmpty());
  EXPECT_EQ(line.NextDeadline(), kNow + absl::Seconds(20));
}

TEST(WaitingLine, DemandCountsByNamespaceAndLeavesOutWhoWantsAnAddressThatIsHere) {
  WaitingLine line;
  EXPECT_THAT(line.Demand(), IsEmpty());
  ASSERT_TRUE(line.Join(WaiterOf(1, 1, "a")));
  ASSERT_TRUE(line.Join(WaiterOf(2, 1, "b")));
  ASSERT_TRUE(line.Join(WaiterOf(3, 1, "a")));
  Waiter picky = WaiterOf(4, 1, "c");
  picky.picky = true;
  ASSERT_TRUE(line.Join(picky));
  EXPECT_THAT(line.Demand(), ElementsAre(Pair("a", 2U), Pair("b", 1U)));
  line.Leave(2);
  EXPECT_THAT(line.Demand(), ElementsAre(Pair("a", 2U)));
}

TEST(WaitingLine, IsBounded) {
  WaitingLine line;
  for (size_t i = 0; i < WaitingLine::kMaxWaiters; ++i) ASSERT_TRUE(line.Join(WaiterOf(i, 1)));
  EXPECT_FALSE(line.Join(WaiterOf(WaitingLine::kMaxWaiters, 1)));
  line.Leave(0);
  EXPECT_TRUE(line.Join(WaiterOf(WaitingLine::kMaxWaiters, 1)));
  EXPECT_EQ(line.size(), WaitingLine::kMaxWaiters);
}

}  // namespace
}  // namespace spoke::netagent
