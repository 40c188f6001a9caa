#include "ipam-server/authority/cluster_authority.h"

#include <filesystem>
#include <functional>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/authority/authority_files.h"
#include "ipam-server/authority/authority_record.h"
#include "ipam-server/store/sqlite_store.h"
#include "ipam-server/store/testing/memory_store.h"
#include "lib/os/file.h"
#include "lib/tls/certificate.h"
#include "proto/spoke/v1/authority.pb.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr absl::Duration kLife = absl::Hours(24);
const absl::Duration kStage = kLife + kRenewalGrace + kClockSkew;

SealKey KeyOf(char c) {
  return SealKey::From("0123456789abcdefghijklmnopqrstu" + std::string(1, c)).value();
}

struct StoreCase {
  std::string name;
  std::function<std::unique_ptr<Store>(const std::string& path)> open;
};

class ClusterAuthorityTest : public testing::TestWithParam<StoreCase> {
 protected:
  absl::StatusOr<std::unique_ptr<ClusterAuthority>> Open(const std::string& directory = "one",
                                                         char key = 'v', absl::Time now = kNow) {
    return ClusterAuthority::OpenStored(
        {.store = *store_, .key = KeyOf(key), .directory = dir_.File(directory)}, kLife, now, log_);
  }
  std::string Read(const std::string& name) const {
    return os::ReadFile(dir_.File(name)).value_or("");
  }

  const testing_support::TempDir dir_;
  testing_support::RecordingLog log_;
  std::unique_ptr<Store> store_ = GetParam().open(dir_.File("store.db"));
};

INSTANTIATE_TEST_SUITE_P(
    Stores, ClusterAuthorityTest,
    testing::Values(
        StoreCase{"Memory", [](const std::string&) { return std::make_unique<MemoryStore>(); }},
        StoreCase{"Sqlite", [](const std::string& path) { return OpenSqliteStore(path).value(); }}),
    [](const auto& test) { return test.param.name; });

TEST_P(ClusterAuthorityTest, IsMadeOnceAndTheSameForEveryServer) {
  const auto first = Open("one");
  ASSERT_TRUE(first.ok()) << first.status();
  const tls::Authority signing = (*first)->signing();
  EXPECT_TRUE(tls::CheckKeyFits(signing.certificate, signing.key).ok());
  const auto second = Open("two");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*second)->signing().certificate, signing.certificate);
  EXPECT_EQ((*second)->signing().key, signing.key);
  EXPECT_EQ(Read("two/roots.pem"), signing.certificate);
  const std::string stored = store_->Get(kRootsKey).value()->value;
  EXPECT_EQ(stored.find("PRIVATE"), std::string::npos) << "the key is not there to be read";
  EXPECT_EQ(Read("two/authority.sealed").find("PRIVATE"), std::string::npos);
}

// A root needs no key to be trusted, so that whoever can write to the store could add one.
TEST_P(ClusterAuthorityTest, ARootThatWasPutIntoTheStoreWithoutTheSealKeyIsRefused) {
  ASSERT_TRUE(Open().ok());
  const StoredRecord stored = *store_->Get(kRootsKey).value();
  v1::AuthorityRecord record;
  ASSERT_TRUE(record.ParseFromString(stored.value));
  v1::AuthorityRoot& added = *record.add_roots();
  added.set_certificate(MakeAuthority(kNow).value().certificate);
  added.set_state(v1::AuthorityRoot::STATE_RETIRED);
  added.set_since_unix_ms(absl::ToUnixMillis(kNow));
  const std::vector<CompareAndPut> batch = {{.key = std::string(kRootsKey),
                                             .value = record.SerializeAsString(),
                                             .expected = stored.revision}};
  ASSERT_TRUE(store_->Commit(batch).ok());
  const absl::Status refused = Open("two").status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
}

TEST_P(ClusterAuthorityTest, AnotherSealKeyIsRefusedAndNothingChanges) {
  ASSERT_TRUE(Open().ok());
  const StoredRecord stored = *store_->Get(kRootsKey).value();
  const std::string copy = Read("one/authority.sealed");
  const auto refused = Open("one", 'w');
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr(KeyOf('v').fingerprint));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr(KeyOf('w').fingerprint));
  EXPECT_EQ(*store_->Get(kRootsKey).value(), stored);
  EXPECT_EQ(Read("one/authority.sealed"), copy);
}

TEST_P(ClusterAuthorityTest, ADamagedRecordIsRefused) {
  ASSERT_TRUE(Open().ok());
  StoredRecord stored = *store_->Get(kRootsKey).value();
  stored.value[stored.value.size() - 20] ^= 1;
  const std::vector<CompareAndPut> batch = {
      {.key = std::string(kRootsKey), .value = stored.value, .expected = stored.revision}};
  ASSERT_TRUE(store_->Commit(batch).ok());
  EXPECT_FALSE(Open("new").ok());
  EXPECT_EQ(store_->Get(kRootsKey).value()->value, stored.value);
}

TEST_P(ClusterAuthorityTest, TakesTheDirectoryOverAndLeavesItsFiles) {
  const tls::Authority former = OpenAuthority(dir_.File("one"), kNow).value();
  const auto authority = Open("one");
  ASSERT_TRUE(authority.ok()) << authority.status();
  EXPECT_EQ((*authority)->signing().key, former.key);
  EXPECT_EQ((*authority)->signing().certificate, former.certificate);
  EXPECT_EQ((*authority)->roots()[0].longest_life, kFormerCertificateLife);
  EXPECT_EQ(OpenAuthority(dir_.File("one"), kNow)->key, former.key);
  EXPECT_EQ(log_.Count("authority_taken_over"), 1);
  EXPECT_THAT(log_.lines()[0], HasSubstr("one/ca.key"));
  ASSERT_TRUE(Open("one").ok());
  EXPECT_EQ(log_.Count("authority_taken_over"), 1);
}

TEST_P(ClusterAuthorityTest, ComesBackFromItsCopyWhenTheStoreIsLost) {
  const std::string key = (*Open("one"))->signing().key;
  store_ = std::make_unique<MemoryStore>();
  const auto again = Open("one");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->signing().key, key);
  EXPECT_EQ(log_.Count("authority_restored"), 1);
  store_ = std::make_unique<MemoryStore>();
  EXPECT_TRUE(absl::IsFailedPrecondition(Open("one", 'w').status()));
  EXPECT_FALSE(store_->Get(kRootsKey).value());
}

TEST_P(ClusterAuthorityTest, ABackupFromBeforeARotationHidesNoRoot) {
  auto authority = *Open("one");
  const StoredRecord before = *store_->Get(kRootsKey).value();
  ASSERT_TRUE(authority->Rotate(kNow + absl::Hours(1)).ok());
  const Roots roots = authority->roots();
  const std::vector<CompareAndPut> batch = {{.key = std::string(kRootsKey),
                                             .value = before.value,
                                             .expected = store_->Get(kRootsKey).value()->revision}};
  ASSERT_TRUE(store_->Commit(batch).ok());
  EXPECT_EQ((*Open("one", 'v', kNow + absl::Hours(2)))->roots(), roots);
}

TEST_P(ClusterAuthorityTest, RotatesInTheStore) {
  auto authority = *Open("one");
  const std::string former = authority->signing().certificate;
  EXPECT_FALSE(authority->Step(kNow + kStage).value());
  ASSERT_TRUE(authority->Rotate(kNow).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(authority->Rotate(kNow)));
  EXPECT_EQ(authority->signing().certificate, former);
  EXPECT_EQ((*Open("two"))->roots(), authority->roots());
  authority = *Open("one");
  EXPECT_TRUE(authority->Step(kNow + kStage).value());
  EXPECT_NE(authority->signing().certificate, former);
  EXPECT_THAT(authority->trusted(), HasSubstr(former));
  EXPECT_EQ(Read("one/roots.pem"), authority->trusted());
  EXPECT_TRUE(authority->Step(kNow + kStage * 2).value());
  EXPECT_EQ(authority->trusted(), authority->signing().certificate);
}

TEST_P(ClusterAuthorityTest, ADirectoryCannotRotate) {
  const auto authority = *ClusterAuthority::OpenDirectory(dir_.File("one"), kNow);
  EXPECT_TRUE(absl::IsFailedPrecondition(authority->Rotate(kNow)));
  EXPECT_FALSE(authority->Step(kNow + kStage).value());
  EXPECT_EQ(authority->signing().key, OpenAuthority(dir_.File("one"), kNow)->key);
}

TEST_P(ClusterAuthorityTest, TheFormerKeyOfMarksIsTakenOver) {
  std::filesystem::create_directory(dir_.File("one"));
  EXPECT_EQ(FormerMarkKey(*store_, KeyOf('v'), dir_.File("one")).value(), "");
  const std::string key(32, 'm');
  ASSERT_TRUE(os::WriteFileAtomic(dir_.File("one/store.key"), absl::BytesToHexString(key) + "\n",
                                  os::Durability::kVisible)
                  .ok());
  EXPECT_EQ(FormerMarkKey(*store_, KeyOf('v'), dir_.File("one")).value(), key);
  EXPECT_EQ(FormerMarkKey(*store_, KeyOf('v'), dir_.File("two")).value(), key);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(FormerMarkKey(*store_, KeyOf('w'), dir_.File("two")).status()));
}

TEST(ClusterAuthorityInDoubt, ALostAnswerIsLookedUp) {
  const testing_support::TempDir dir;
  testing_support::RecordingLog log;
  MemoryStore store;
  const auto authority = *ClusterAuthority::OpenStored(
      {.store = store, .key = KeyOf('v'), .directory = dir.File("one")}, kLife, kNow, log);
  store.LoseNextAnswers(1);
  EXPECT_TRUE(absl::IsUnavailable(authority->Rotate(kNow)));
  EXPECT_EQ(authority->roots().size(), 1U);
  EXPECT_TRUE(absl::IsFailedPrecondition(authority->Rotate(kNow))) << "it has happened";
  EXPECT_EQ(authority->roots().size(), 2U);
}

}  // namespace
}  // namespace spoke::ipam
