#include "netagent/azure/imds.h"

#include <algorithm>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"

namespace spoke::netagent::azure {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

std::string GoodDocument() {
  return os::ReadFile(SPOKE_SOURCE_DIR "/netagent/azure/testdata/imds_instance.json").value();
}

// Plays the service: answers in turn, the last one for ever. Sleeping moves the clock.
class ImdsTest : public testing::Test {
 protected:
  void Answer(int status, std::string body) {
    answers_.emplace_back(http::Response{.status = status, .body = std::move(body)});
  }
  void Fail(absl::Status status) { answers_.emplace_back(std::move(status)); }

  absl::StatusOr<ImdsReading> Read() {
    began_ = clock_.Now();
    return imds_.ReadInstance();
  }
  absl::Duration took() { return clock_.Now() - began_; }

  os::SimClock clock_;
  absl::Time began_;
  std::vector<absl::StatusOr<http::Response>> answers_;
  std::vector<http::Request> requests_;
  std::vector<absl::Time> times_;
  Imds imds_{"http://169.254.169.254",
             [this](const http::Request& request, absl::Duration) {
               times_.push_back(clock_.Now());
               requests_.push_back(request);
               return answers_.at(std::min(requests_.size(), answers_.size()) - 1);
             },
             clock_, [this](absl::Duration pause) { clock_.Advance(pause); }};
};

TEST_F(ImdsTest, TheInstanceIsAskedForWithTheHeaderTheServiceWants) {
  Answer(200, GoodDocument());
  const auto reading = Read();
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_EQ(reading->instance.name, "pool_0");
  EXPECT_EQ(reading->text, GoodDocument());
  ASSERT_THAT(requests_, SizeIs(1));
  EXPECT_EQ(requests_[0].method, "GET");
  EXPECT_EQ(requests_[0].url,
            "http://169.254.169.254/metadata/instance?api-version=2021-02-01&format=json");
  EXPECT_EQ(requests_[0].headers.Find("metadata"), "true");
  EXPECT_EQ(requests_[0].headers.Find("x-forwarded-for"), std::nullopt);
  EXPECT_EQ(took(), absl::ZeroDuration());
}

TEST_F(ImdsTest, WhatPassesIsAskedAgain) {
  Fail(absl::DeadlineExceededError("no answer"));
  Fail(absl::UnavailableError("connection refused"));
  Answer(429, "Too many requests");
  Answer(500, "");
  Answer(410, "Gone");
  Answer(200, GoodDocument());
  EXPECT_TRUE(Read().ok());
  EXPECT_THAT(requests_, SizeIs(6));
}

TEST_F(ImdsTest, AServiceThatIsGoneFor70SecondsIsWaitedFor) {
  Answer(410, "Gone");
  const auto reading = Read();
  EXPECT_EQ(reading.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(reading.status().message()),
              HasSubstr("http://169.254.169.254/metadata/instance?api-version=2021-02-01"
                        "&format=json: HTTP 410 Gone"));
  EXPECT_GE(took(), absl::Seconds(70));
  EXPECT_LE(took(), kImdsPatience);
}

TEST_F(ImdsTest, WhatWillNotPassIsNotAskedAgain) {
  for (const int status : {400, 403, 404, 405, 302}) {
    requests_.clear();
    answers_.clear();
    Answer(status, "{\"error\": \"Bad request\"}");
    const auto reading = Read();
    EXPECT_EQ(reading.status().code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(reading.status().message()), HasSubstr("Bad request"));
    EXPECT_THAT(requests_, SizeIs(1));
  }
}

TEST_F(ImdsTest, ARequestThatCannotBeSentIsNotTriedAgain) {
  Fail(absl::InvalidArgumentError("no such URL"));
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(requests_, SizeIs(1));
}

TEST_F(ImdsTest, AnAnswerThatCannotBeReadIsNamed) {
  Answer(200, "<html>a captive portal</html>");
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(requests_, SizeIs(1));
}

TEST(ImdsIpv6, TheAddressesOfAllNicsAreListedFromOneAnswer) {
  int requests = 0;
  std::string body = R"({"network": {"interface": [
      {"macAddress": "000D3A314548",
       "ipv4": {"ipAddress": [{"privateIpAddress": "10.0.0.4", "publicIpAddress": ""}]},
       "ipv6": {"ipAddress": [{"privateIpAddress": "fd00::5"}, {"privateIpAddress": "fd00::6"}]}},
      {"macAddress": "000D3A314549", "ipv6": {"ipAddress": [{"privateIpAddress": "fd00::7"}]}}]}})";
  int status = 200;
  const auto read = [&] {
    return ReadImdsIpv6(
        "http://imds", [&](const http::Request&, absl::Duration) -> absl::StatusOr<http::Response> {
          ++requests;
          return http::Response{.status = status, .body = body};
        });
  };
  const auto listed = read();
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(*listed,
            (std::set{ip::Address::Parse("fd00::5").value(), ip::Address::Parse("fd00::6").value(),
                      ip::Address::Parse("fd00::7").value()}));
  status = 410;
  EXPECT_EQ(read().status().code(), absl::StatusCode::kUnavailable);
  status = 404;
  EXPECT_EQ(read().status().code(), absl::StatusCode::kFailedPrecondition);
  status = 200;
  body = "no JSON";
  EXPECT_THAT(std::string(read().status().message()), HasSubstr("http://imds/metadata/instance"));
  EXPECT_EQ(requests, 4) << "the caller decides when to ask again";
}

TEST_F(ImdsTest, NoMoreThanFiveRequestsASecondAreMade) {
  Answer(200, GoodDocument());
  for (int i = 0; i < 11; ++i) ASSERT_TRUE(Read().ok());
  EXPECT_GE(times_.back() - times_.front(), absl::Seconds(2));
}

}  // namespace
}  // namespace spoke::netagent::azure
