#include "lib/rpc/health_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::rpc {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;

TEST(Reasons, ComeBackAsTheyWere) {
  const std::vector<std::string> reasons = {"the server is not there", "no conflist: write one"};
  EXPECT_EQ(JoinReasons(reasons), "the server is not there\nno conflist: write one\n");
  EXPECT_EQ(SplitReasons(JoinReasons(reasons)), reasons);
  EXPECT_EQ(JoinReasons({}), "");
  EXPECT_THAT(SplitReasons(""), IsEmpty());
}

TEST(Reasons, AReasonIsOneLineWithoutControlCharacters) {
  EXPECT_EQ(JoinReasons({"a\nb\x1b[31m"}), "a b [31m\n");
  EXPECT_THAT(SplitReasons("one\n\n\x07two"), ElementsAre("one", " two"));
}

TEST(Reasons, AreBoundedAndSayHowManyAreMissing) {
  const std::vector<std::string> many(5000, "the same");
  const std::string text = JoinReasons(many);
  EXPECT_LE(text.size(), kMaxReasonBytes);
  EXPECT_THAT(text, EndsWith("the same\nand 4937 more\n"));
  EXPECT_EQ(SplitReasons(text).size(), kMaxReasons);

  const std::vector<std::string> longer(10, std::string(2000, 'x'));
  EXPECT_LE(JoinReasons(longer).size(), kMaxReasonBytes);
  EXPECT_THAT(JoinReasons(longer), EndsWith("\nand 7 more\n"));
  EXPECT_LE(SplitReasons(std::string(100'000, 'y')).front().size(), kMaxReasonBytes);
}

TEST(Reasons, ALongOneIsCutBetweenCharacters) {
  const std::string text = JoinReasons({std::string(1023, 'x') + "\xc3\xa4"});
  EXPECT_EQ(text, std::string(1023, 'x') + "\n");
}

TEST(HealthAddress, IsAUnixSocketOrAHostWithAPort) {
  for (const char* good : {"unix:/run/spoke/x.sock", "127.0.0.1:9466", "[::1]:1", "host:65535"}) {
    EXPECT_TRUE(CheckHealthAddress(good).ok()) << good;
  }
  for (const char* bad : {"", "unix:", "unix:/", "unix:run/x", "host", ":1", "host:0", "host:65536",
                          "host:1x", "host:", "/run/x.sock", "http://h:1"}) {
    EXPECT_EQ(CheckHealthAddress(bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_FALSE(CheckHealthAddress("unix:/" + std::string(107, 'a')).ok());
  EXPECT_EQ(SocketPathOf("unix:/run/a"), "/run/a");
  EXPECT_EQ(SocketPathOf("host:1"), "");
}

}  // namespace
}  // namespace spoke::rpc
