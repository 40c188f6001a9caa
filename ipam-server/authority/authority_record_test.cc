#include "ipam-server/authority/authority_record.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "proto/spoke/v1/authority.pb.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxSeedBytes = 4096;

// The key of tests/fuzz/certificates/authority_record_fuzz.cc.
SealKey Key() { return SealKey::From("0123456789abcdefghijklmnopqrstuv").value(); }

Root RootOf(const std::string& name, RootState state) {
  return {.certificate = name,
          .key = state == RootState::kRetired ? "" : name + " key",
          .state = state,
          .since = absl::FromUnixSeconds(1'800'000'000),
          .longest_life = absl::Hours(24)};
}

TEST(AuthorityRecord, RootsSurviveARoundTrip) {
  const Roots roots = {RootOf("b", RootState::kNext), RootOf("a", RootState::kSigning),
                       RootOf("z", RootState::kRetired)};
  const std::string bytes = EncodeRoots(roots, Key()).value();
  EXPECT_EQ(DecodeRoots(bytes, Key()).value(), roots);
  EXPECT_EQ(FingerprintIn(kRootsKey, bytes).value(), Key().fingerprint);
}

TEST(AuthorityRecord, ARecordWithoutTheSealIsNoRecord) {
  v1::AuthorityRecord record;
  record.ParseFromString(EncodeRoots({RootOf("a", RootState::kSigning)}, Key()).value());
  record.clear_seal();
  EXPECT_EQ(DecodeRoots(record.SerializeAsString(), Key()).status().code(),
            absl::StatusCode::kDataLoss);
}

// Mutations of one that is refused at once would look at nothing behind that.
TEST(AuthorityRecord, TheSeedOfItsFuzzTargetIsARecordOfToday) {
  const auto seed = os::ReadFile(AUTHORITY_SEED, kMaxSeedBytes);
  ASSERT_TRUE(seed.ok()) << seed.status();
  const auto roots = DecodeRoots(*seed, Key());
  ASSERT_TRUE(roots.ok()) << roots.status();
  EXPECT_EQ(roots->size(), 3U) << "one of each state";
}

}  // namespace
}  // namespace spoke::ipam
