#include "ipam-server/loop/store_witness.h"

#include <sys/stat.h>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

const StoreMark kMark{.store_id = "0123abcd", .epoch = 1'234'567, .nodes = 7500};

TEST(StoreMark, IsWhatWasSigned) {
  const std::string token = SignMark(kMark, "key");
  EXPECT_EQ(VerifyMark(token, "key").value(), kMark);
  EXPECT_EQ(VerifyMark(token, "other").status().code(), absl::StatusCode::kUnauthenticated);
  std::string raised = token;
  raised.replace(raised.find("1234567"), 7, "9234567");
  EXPECT_EQ(VerifyMark(raised, "key").status().code(), absl::StatusCode::kUnauthenticated);
}

TEST(StoreMark, TextThatIsNoneIsRefused) {
  const std::string token = SignMark(kMark, "key");
  for (const std::string& text :
       {std::string(), std::string("."), std::string("1.a.1.1"), std::string("...."),
        token.substr(0, token.size() - 1), "2" + token.substr(1), token + token + token,
        std::string(1 << 20, '.'), std::string("1.a.-1.1.00"), std::string("1..1.1.00")}) {
    EXPECT_FALSE(VerifyMark(text, "key").ok()) << text.substr(0, 100);
  }
}

TEST(StoreWitness, RemembersTheMarkAndTheBoot) {
  const testing_support::TempDir dir;
  auto first = StoreWitness::Open(dir.path(), "boot-1");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->found().first_start);
  EXPECT_FALSE(first->found().last);
  ASSERT_TRUE(first->Remember(kMark).ok());
  const std::string token = first->Sign(kMark);

  const auto second = StoreWitness::Open(dir.path(), "boot-1");
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second->found().first_start);
  EXPECT_EQ(second->found().last, kMark);
  EXPECT_TRUE(second->found().same_boot);
  EXPECT_EQ(second->Verify(token).value(), kMark) << "the key is the same";
  EXPECT_FALSE(StoreWitness::Open(dir.path(), "boot-2")->found().same_boot);
  EXPECT_FALSE(StoreWitness::Open(dir.path(), "")->found().same_boot) << "not known";
}

// A server that has only stood by has no directory of an authority yet.
TEST(StoreWitness, MakesTheDirectoryOfTheFirstMark) {
  const testing_support::TempDir dir;
  const MarkKeys keys{.present = std::string(32, 'k')};
  const auto witness = StoreWitness::Open(dir.File("ca"), "b", keys);
  ASSERT_TRUE(witness.ok()) << witness.status();
  ASSERT_TRUE(witness->Remember(kMark).ok()) << witness->Remember(kMark);
  EXPECT_EQ(StoreWitness::Open(dir.File("ca"), "b", keys)->found().last, kMark);
  EXPECT_TRUE(
      absl::IsNotFound(StoreWitness::Open(dir.File("none/ca"), "b", keys)->Remember(kMark)));
}

TEST(StoreWitness, WithAKeyFromElsewhereFormerMarksHold) {
  const testing_support::TempDir dir;
  const std::string former = StoreWitness::Open(dir.path(), "b")->Sign(kMark);
  std::string key = absl::HexStringToBytes(os::ReadFile(dir.File("store.key"))->substr(0, 64));
  const MarkKeys keys{.present = std::string(32, 'k'), .former = key};
  const auto witness = StoreWitness::Open(dir.path(), "b", keys);
  ASSERT_TRUE(witness.ok()) << witness.status();
  EXPECT_FALSE(witness->found().first_start);
  EXPECT_EQ(witness->Verify(former).value(), kMark);
  EXPECT_EQ(witness->Verify(witness->Sign(kMark)).value(), kMark);
  EXPECT_EQ(VerifyMark(witness->Sign(kMark), keys.present).value(), kMark);
  EXPECT_TRUE(absl::IsUnauthenticated(witness->Verify(SignMark(kMark, "other")).status()));
  // Another server, whose directory is empty, verifies what this one has signed.
  const testing_support::TempDir other;
  EXPECT_EQ(StoreWitness::Open(other.path(), "b", keys)->Verify(witness->Sign(kMark)).value(),
            kMark);
  EXPECT_TRUE(absl::IsNotFound(os::ReadFile(other.File("store.key")).status()));
  EXPECT_TRUE(StoreWitness::Open(other.path(), "b", MarkKeys{.present = key, .made = true})
                  ->found()
                  .first_start);
}

TEST(StoreWitness, IsForItsOwnerOnly) {
  const testing_support::TempDir dir;
  ASSERT_TRUE(StoreWitness::Open(dir.path(), "b")->Remember(kMark).ok());
  for (const char* name : {"/store.key", "/store.mark"}) {
    struct stat info {};
    ASSERT_EQ(::stat((dir.path() + name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0600U);
  }
}

TEST(StoreWitness, DamagedFilesAreNamedAndLeftAlone) {
  const testing_support::TempDir dir;
  ASSERT_TRUE(StoreWitness::Open(dir.path(), "b").ok());
  ASSERT_TRUE(
      os::WriteFileAtomic(dir.path() + "/store.mark", "rubbish", os::Durability::kVisible).ok());
  EXPECT_EQ(StoreWitness::Open(dir.path(), "b").status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(
      os::WriteFileAtomic(dir.path() + "/store.key", "short", os::Durability::kVisible).ok());
  const auto damaged = StoreWitness::Open(dir.path(), "b");
  EXPECT_EQ(damaged.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(damaged.status().message()).find("store.key"), std::string::npos);
  EXPECT_EQ(os::ReadFile(dir.path() + "/store.key", 100).value(), "short");
}

}  // namespace
}  // namespace spoke::ipam
