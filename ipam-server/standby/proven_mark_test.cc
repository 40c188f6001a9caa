#include "ipam-server/standby/proven_mark.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

const RecoveryState kStored{.store_id = "s", .epoch = 7};

TEST(ProvenMark, IsThatOfALeaderThatHasHadTimeToProve) {
  EXPECT_EQ(ProvenMark(kStored, kProvenAfter, std::nullopt), (StoreMark{"s", 7, 0}));
  EXPECT_EQ(ProvenMark(kStored, kProvenAfter, StoreMark{"s", 6, 9}), (StoreMark{"s", 7, 0}));
  EXPECT_EQ(ProvenMark(kStored, kProvenAfter, StoreMark{"former", 90, 9}), (StoreMark{"s", 7, 0}));
}

TEST(ProvenMark, IsNoneOfALeaderThatHasJustBegun) {
  EXPECT_EQ(ProvenMark(kStored, kProvenAfter - absl::Seconds(1), std::nullopt), std::nullopt);
}

TEST(ProvenMark, IsNoneDuringARecovery) {
  RecoveryState stored = kStored;
  stored.cause = RecoveryState::Cause{.reason = "a backup was restored", .since = {}};
  EXPECT_EQ(ProvenMark(stored, absl::Hours(1), std::nullopt), std::nullopt);
}

TEST(ProvenMark, DoesNotHideThatTheStoreWasRestored) {
  EXPECT_EQ(ProvenMark(kStored, kProvenAfter, StoreMark{"s", 8, 9}), std::nullopt);
  EXPECT_EQ(ProvenMark(kStored, kProvenAfter, StoreMark{"s", 7, 9}), std::nullopt);
}

}  // namespace
}  // namespace spoke::ipam
