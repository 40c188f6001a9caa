#include "ipam-server/authority/seal_key.h"

#include <sys/stat.h>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/authority/authority_record.h"
#include "ipam-server/store/testing/memory_store.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

const std::string kRaw = "0123456789abcdefghijklmnopqrstuv";

TEST(SealKey, HexAndRawAreTheSameKey) {
  const SealKey raw = SealKey::From(kRaw).value();
  const std::string hex = absl::BytesToHexString(kRaw);
  EXPECT_EQ(SealKey::From(hex)->seal, raw.seal);
  EXPECT_EQ(SealKey::From(" " + hex + "\n")->fingerprint, raw.fingerprint);
  EXPECT_NE(SealKey::From(kRaw + "x")->fingerprint, raw.fingerprint);
  EXPECT_EQ(raw.fingerprint.size(), 16U);
  EXPECT_NE(raw.seal, raw.mark);
}

TEST(SealKey, WhatIsTooShortOrNotRandomIsRefused) {
  for (const std::string& text : {std::string(), kRaw.substr(1), std::string("0123456789abcdef"),
                                  std::string(32, '\0'), std::string(5000, 'x')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(SealKey::From(text).status())) << text;
  }
}

TEST(SealKey, TheFileIsMadeOnceWhereItMayBe) {
  const testing_support::TempDir dir;
  const std::string path = dir.File("seal.key");
  MemoryStore store;
  EXPECT_TRUE(absl::IsNotFound(OpenSealKey(path, false, store).status()));
  const auto made = OpenSealKey(path, true, store);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->made);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  const auto again = OpenSealKey(path, true, store);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->made);
  EXPECT_EQ(again->key.fingerprint, made->key.fingerprint);
}

TEST(SealKey, NoneIsMadeWhereTheStoreIsSealedUnderAnother) {
  const testing_support::TempDir dir;
  MemoryStore store;
  const SealKey key = SealKey::From(kRaw).value();
  const std::vector<CompareAndPut> batch = {
      {.key = std::string(kFormerMarkKeyKey),
       .value = EncodeFormerMarkKey(std::string(32, 'm'), key).value()}};
  ASSERT_TRUE(store.Commit(batch).ok());
  const auto missing = OpenSealKey(dir.File("seal.key"), true, store);
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr(key.fingerprint));
  ASSERT_TRUE(os::WriteFileAtomic(dir.File("seal.key"), kRaw + "x", os::Durability::kVisible).ok());
  const auto wrong = OpenSealKey(dir.File("seal.key"), true, store);
  EXPECT_TRUE(absl::IsFailedPrecondition(wrong.status()));
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr(key.fingerprint));
  ASSERT_TRUE(os::WriteFileAtomic(dir.File("seal.key"), kRaw, os::Durability::kVisible).ok());
  EXPECT_TRUE(OpenSealKey(dir.File("seal.key"), false, store).ok());
}

}  // namespace
}  // namespace spoke::ipam
