#include "ipam-server/standby/proven_mark.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

constexpr int64_t kLeadership = 0x1234;
const RecoveryState kStored{.store_id = "s", .epoch = 7, .opened_under = kLeadership};

TEST(ProvenMark, AStoreIsProvenByTheLeaderThatHasOpenedIt) {
  EXPECT_TRUE(IsProven(kStored, kLeadership));
  EXPECT_FALSE(IsProven(kStored, kLeadership + 1)) << "which has said nothing of it yet";
  EXPECT_FALSE(IsProven({.store_id = "s", .epoch = 7}, 0)) << "nobody leads";
}

TEST(ProvenMark, AStoreIsNotProvenDuringARecovery) {
  RecoveryState stored = kStored;
  stored.cause = RecoveryState::Cause{.reason = "a backup was restored", .since = {}};
  EXPECT_FALSE(IsProven(stored, kLeadership));
}

TEST(ProvenMark, FollowsTheStore) {
  EXPECT_EQ(ProvenMark(kStored, std::nullopt), (StoreMark{"s", 7, 0}));
  EXPECT_EQ(ProvenMark(kStored, StoreMark{"s", 6, 9}), (StoreMark{"s", 7, 0}));
  EXPECT_EQ(ProvenMark(kStored, StoreMark{"former", 90, 9}), (StoreMark{"s", 7, 0}));
}

TEST(ProvenMark, DoesNotHideThatTheStoreWasRestored) {
  EXPECT_EQ(ProvenMark(kStored, StoreMark{"s", 8, 9}), std::nullopt);
  EXPECT_EQ(ProvenMark(kStored, StoreMark{"s", 7, 9}), std::nullopt);
}

}  // namespace
}  // namespace spoke::ipam
