#include "ipam-server/cloud/azure/token_source.h"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/cloud/azure/endpoints.h"

namespace spoke::ipam::azure {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1506480000);

absl::StatusOr<std::string> NoFile(const std::string& path) {
  return absl::NotFoundError(path + ": no such file");
}

http::Response Granted(std::string_view token, int seconds = 10000) {
  return {200, {}, fmt::format(R"({{"access_token":"{}","expires_in":{}}})", token, seconds)};
}

class TokenSourceTest : public testing::Test {
 protected:
  // Lets the request that is due go out and come back.
  absl::Status Turn(const absl::StatusOr<http::Response>& response) {
    if (source_.NextRequest() > now_) now_ = source_.NextRequest();
    EXPECT_TRUE(source_.Start(now_, NoFile).ok());
    EXPECT_EQ(source_.NextRequest(), absl::InfiniteFuture());
    return source_.Finish(response, now_);
  }
  std::string Token() const { return source_.TokenAt(now_).value_or("none"); }

  TokenSource source_{Identity{}, *EndpointsOf("public")};
  absl::Time now_ = kStart;
};

TEST_F(TokenSourceTest, AsksAtOnceAndAgainBeforeTheEnd) {
  EXPECT_LE(source_.NextRequest(), now_);
  EXPECT_EQ(source_.TokenAt(now_).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Turn(Granted("one")).ok());
  EXPECT_EQ(Token(), "one");
  EXPECT_EQ(source_.NextRequest() - now_, absl::Seconds(7000));
  EXPECT_TRUE(Turn(Granted("two")).ok());
  EXPECT_EQ(now_, kStart + absl::Seconds(7000));
  EXPECT_EQ(Token(), "two");
}

// https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
TEST_F(TokenSourceTest, RetriesAsTheDocumentsSay) {
  for (const int status : {404, 408, 410, 429, 500, 503}) {
    std::vector<absl::Duration> waits;
    for (size_t i = 0; i < kTokenRetryDelays.size() + 1; ++i) {
      EXPECT_FALSE(Turn(http::Response{status, {}, ""}).ok());
      waits.push_back(source_.NextRequest() - now_);
    }
    EXPECT_EQ(waits,
              (std::vector<absl::Duration>{absl::Seconds(0), absl::Seconds(2), absl::Seconds(6),
                                           absl::Seconds(14), absl::Seconds(30), kTokenRest}))
        << status;
  }
}

TEST_F(TokenSourceTest, RetriesWhatGotNoAnswerOrNoToken) {
  EXPECT_FALSE(Turn(absl::DeadlineExceededError("slow")).ok());
  EXPECT_EQ(source_.NextRequest(), now_);
  EXPECT_FALSE(Turn(http::Response{200, {}, "<html>"}).ok());
  EXPECT_EQ(source_.NextRequest() - now_, absl::Seconds(2));
  EXPECT_TRUE(Turn(Granted("one")).ok());
  // The next failure begins from the start.
  EXPECT_FALSE(Turn(absl::UnavailableError("reset")).ok());
  EXPECT_EQ(source_.NextRequest(), now_);
}

TEST_F(TokenSourceTest, WaitsAsLongAsItIsAskedTo) {
  EXPECT_FALSE(Turn(http::Response{429, {{"Retry-After", "17"}}, ""}).ok());
  EXPECT_EQ(source_.NextRequest() - now_, absl::Seconds(17));
  EXPECT_FALSE(Turn(http::Response{503, {{"Retry-After", "86400"}}, ""}).ok());
  EXPECT_EQ(source_.NextRequest() - now_, kMaxTokenWait);
}

TEST_F(TokenSourceTest, DoesNotPressAfterARefusal) {
  const absl::Status status = Turn(http::Response{
      400, {}, R"({"error":"invalid_request","error_description":"Identity not found"})"});
  EXPECT_EQ(status.ToString(),
            "UNAVAILABLE: token for the machine's own managed identity: HTTP 400, "
            "invalid_request: Identity not found");
  EXPECT_EQ(source_.NextRequest() - now_, kTokenRest);
  EXPECT_NE(source_.TokenAt(now_).status().ToString().find("Identity not found"),
            std::string::npos);
}

TEST_F(TokenSourceTest, KeepsATokenThatLivesWhileRefreshFails) {
  EXPECT_TRUE(Turn(Granted("one")).ok());
  while (now_ < kStart + absl::Seconds(10000) - kTokenRest) {
    EXPECT_FALSE(Turn(http::Response{500, {}, ""}).ok());
    EXPECT_EQ(Token(), "one");
  }
  now_ = kStart + absl::Seconds(10000);
  EXPECT_EQ(source_.TokenAt(now_).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Turn(Granted("two")).ok());
  EXPECT_EQ(Token(), "two");
}

TEST_F(TokenSourceTest, AsksForAnotherWhenArmRefusesTheToken) {
  EXPECT_TRUE(Turn(Granted("one")).ok());
  now_ += absl::Minutes(5);
  source_.Reject("one", now_);
  EXPECT_EQ(source_.NextRequest(), now_);
  EXPECT_EQ(source_.TokenAt(now_).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Turn(Granted("two")).ok());
  EXPECT_EQ(Token(), "two");
  // Answers to calls that were under way with the first.
  now_ += absl::Minutes(5);
  source_.Reject("one", now_);
  EXPECT_EQ(Token(), "two");
  EXPECT_GT(source_.NextRequest(), now_);
}

TEST_F(TokenSourceTest, IsNotDrivenByAServiceThatRefusesEveryToken) {
  EXPECT_TRUE(Turn(Granted("one")).ok());
  source_.Reject("one", now_);
  EXPECT_TRUE(Turn(Granted("one")).ok());  // The metadata service keeps tokens.
  EXPECT_EQ(Token(), "one");
  source_.Reject("one", now_);
  EXPECT_EQ(Token(), "one");
  EXPECT_GT(source_.NextRequest(), now_);
  now_ += kMinRejectInterval;
  source_.Reject("one", now_);
  EXPECT_EQ(source_.NextRequest(), now_);
}

TEST_F(TokenSourceTest, GoesBackToARefusedTokenWhenThereIsNoOther) {
  EXPECT_TRUE(Turn(Granted("one")).ok());
  source_.Reject("one", now_);
  EXPECT_FALSE(Turn(http::Response{400, {}, ""}).ok());
  EXPECT_EQ(Token(), "one");
}

TEST(TokenSource, ReadsItsFileAnewForEachToken) {
  TokenSource source({.kind = Identity::Kind::kWorkload,
                      .client_id = "c",
                      .tenant = "t",
                      .token_file = "/var/run/token",
                      .secret_file = "/not/this"},
                     *EndpointsOf("public"));
  EXPECT_EQ(source.Start(kStart, NoFile).status().ToString(),
            "NOT_FOUND: token for the workload identity with client id c of tenant t: "
            "/var/run/token: no such file");
  EXPECT_EQ(source.NextRequest() - kStart, kTokenRest);
  for (const std::string content : {"first", "second"}) {
    const auto request =
        source.Start(kStart, [&](const std::string& path) -> absl::StatusOr<std::string> {
          EXPECT_EQ(path, "/var/run/token");
          return content;
        });
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_NE(request->body.find("client_assertion=" + content), std::string::npos);
    EXPECT_TRUE(source.Finish(Granted(content), kStart).ok());
  }
}

}  // namespace
}  // namespace spoke::ipam::azure
