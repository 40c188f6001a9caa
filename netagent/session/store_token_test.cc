#include "netagent/session/store_token.h"

#include <filesystem>

#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

class StoreTokenTest : public testing::Test {
 protected:
  StoreToken Open() { return {{dir_.File("run/token"), dir_.File("lib/token")}, log_}; }

  testing_support::TempDir dir_;
  testing_support::RecordingLog log_;
};

TEST_F(StoreTokenTest, OutlivesTheAgentAndTheBoot) {
  StoreToken first = Open();
  EXPECT_EQ(first.token(), "");
  first.Keep("one");
  first.Keep("two");
  EXPECT_EQ(Open().token(), "two");
  std::filesystem::remove_all(dir_.File("run"));
  EXPECT_EQ(Open().token(), "two");
}

TEST_F(StoreTokenTest, KeepsNothingThatIsNoToken) {
  StoreToken token = Open();
  token.Keep("one");
  token.Keep("");
  token.Keep(std::string(10'000, 'x'));
  EXPECT_EQ(token.token(), "one");
  EXPECT_EQ(Open().token(), "one");
}

TEST_F(StoreTokenTest, AFileThatCannotBeWrittenIsSaidOnceAndCostsNothingElse) {
  ASSERT_TRUE(os::WriteFileAtomic(dir_.File("lib"), "in the way", os::Durability::kVisible).ok());
  StoreToken token = Open();
  token.Keep("one");
  token.Keep("two");
  EXPECT_EQ(log_.Count("store_token_not_kept"), 1);
  EXPECT_EQ(Open().token(), "two");
}

}  // namespace
}  // namespace spoke::netagent
