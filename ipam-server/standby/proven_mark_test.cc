#include "ipam-server/standby/proven_mark.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

constexpr int64_t kLeadership = 0x1234;
const RecoveryState kStored{.store_id = "s", .epoch = 7, .opened_under = kLeadership};

constexpr FollowedStore::Mirrored kMirror{.full_reads = 1};

TEST(FollowedStore, IsProvenByALeaderThatWritesThatItHasOpenedIt) {
  FollowedStore followed;
  EXPECT_FALSE(followed.IsProven(kMirror));
  followed.Look(kMirror, kStored, 100, kLeadership);
  EXPECT_FALSE(followed.IsProven(kMirror)) << "a restored snapshot says so too";
  followed.Look(kMirror, kStored, 101, kLeadership + 1);
  EXPECT_FALSE(followed.IsProven(kMirror)) << "that leader has said nothing of it yet";
  RecoveryState recovering = kStored;
  recovering.cause = RecoveryState::Cause{.reason = "a backup was restored", .since = {}};
  followed.Look(kMirror, recovering, 102, kLeadership);
  EXPECT_FALSE(followed.IsProven(kMirror));
  followed.Look(kMirror, kStored, 103, kLeadership);
  EXPECT_TRUE(followed.IsProven(kMirror));
  followed.Look(kMirror, {.store_id = "s", .epoch = 7}, 104, kLeadership + 1);
  EXPECT_TRUE(followed.IsProven(kMirror)) << "the next leader writes the store that was proved";
}

TEST(FollowedStore, IsNotProvenWhereNobodyLeads) {
  FollowedStore followed;
  followed.Look(kMirror, {.store_id = "s"}, 100, 0);
  followed.Look(kMirror, {.store_id = "s"}, 101, 0);
  EXPECT_FALSE(followed.IsProven(kMirror));
}

TEST(FollowedStore, IsNotProvenAnyMoreOnceItWasReadAnew) {
  FollowedStore followed;
  followed.Look(kMirror, kStored, 100, kLeadership);
  followed.Look(kMirror, kStored, 101, kLeadership);
  const FollowedStore::Mirrored anew{.full_reads = 2};
  EXPECT_FALSE(followed.IsProven(anew)) << "perhaps it is what was restored";
  followed.Look(anew, kStored, 50, kLeadership);
  EXPECT_FALSE(followed.IsProven(anew));
  followed.Look(anew, kStored, 51, kLeadership);
  EXPECT_TRUE(followed.IsProven(anew));
}

TEST(FollowedStore, IsNotProvenAnyMoreOnceItWasBehind) {
  FollowedStore followed;
  followed.Look(kMirror, kStored, 100, kLeadership);
  followed.Look(kMirror, kStored, 101, kLeadership);
  EXPECT_FALSE(followed.IsProven({.full_reads = 1, .age = absl::Seconds(11)}));
  followed.Look({.full_reads = 1, .age = absl::Seconds(11)}, kStored, 101, kLeadership);
  followed.Look(kMirror, kStored, 105, kLeadership);
  EXPECT_FALSE(followed.IsProven(kMirror));
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
