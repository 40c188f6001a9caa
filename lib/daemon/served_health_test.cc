#include "lib/daemon/served_health.h"

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/http/curl_transport.h"
#include "lib/rpc/health_client.h"
#include "tests/support/recording_log.h"
#include "tests/support/temp_dir.h"

namespace spoke::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr absl::Duration kPatience = absl::Seconds(20);

class ServedHealthTest : public testing::Test {
 protected:
  rpc::Health Ask(const std::string& service) {
    return rpc::AskHealth(address_, service, kPatience).value();
  }

  const testing_support::TempDir dir_;
  const std::string address_ = "unix:" + dir_.File("health.sock");
  testing_support::RecordingLog log_;
};

TEST(StuckLoops, AreThoseThatWereSilentForLonger) {
  const absl::Duration most = absl::Seconds(30);
  EXPECT_THAT(StuckLoops({"a", "b"}, {most, absl::ZeroDuration()}, most), IsEmpty());
  EXPECT_THAT(
      StuckLoops({"a", "the loop"}, {most, absl::Milliseconds(95'700)}, most),
      ElementsAre("the loop has not turned for 1m35s: it is stuck; a restart loses nothing"));
}

TEST_F(ServedHealthTest, IsStartingUntilItSaysOtherwise) {
  ServedHealth health({address_, "", {"the loop"}, absl::Seconds(30)}, log_);
  EXPECT_THAT(Ask("readiness").reasons, ElementsAre("it is starting"));
  EXPECT_TRUE(Ask("liveness").serving) << "a loop that has not begun is not stuck";
  health.Say({"no server"});
  health.Say({"no server"});
  EXPECT_THAT(Ask("").reasons, ElementsAre("no server"));
  health.Say({});
  EXPECT_TRUE(Ask("").serving);
  EXPECT_EQ(log_.Count("not_ready"), 1);
  EXPECT_EQ(log_.Count("ready"), 1);
}

TEST_F(ServedHealthTest, ALoopThatBeatsNoLongerIsNotAlive) {
  ServedHealth health({address_, "", {"one", "two"}, absl::Seconds(30)}, log_);
  health.heartbeat(0).Beat();
  health.heartbeat(1).Beat(os::MonotonicMs() - 31'000);
  EXPECT_FALSE(Ask("liveness").serving);
  EXPECT_THAT(Ask("liveness").reasons, ElementsAre(testing::HasSubstr("two has not turned for")));
  health.heartbeat(1).Beat();
  EXPECT_TRUE(Ask("liveness").serving);
}

TEST_F(ServedHealthTest, ThatItCannotBeServedIsSaidAndNoMore) {
  ServedHealth health({"unix:" + dir_.File("none") + "/health.sock", "", {}, absl::Seconds(30)},
                      log_);
  EXPECT_EQ(log_.Count("health_not_served"), 1);
  health.Say({});
  ServedHealth off({"", "", {}, absl::Seconds(30)}, log_);
  EXPECT_EQ(log_.Count("health_not_served"), 1);
  ServedHealth wrong({"", "192.0.2.1:1", {}, absl::Seconds(30)}, log_);
  EXPECT_EQ(log_.Count("health_not_served"), 2);
}

// As a kubelet asks: for the status alone.
TEST_F(ServedHealthTest, HttpSaysTheSame) {
  ServedHealth health({"", "127.0.0.1:0", {"the loop"}, absl::Seconds(60)}, log_);
  http::CurlTransport client({});
  const auto get = [&](const std::string& path) {
    client.Send(1, {.url = fmt::format("http://127.0.0.1:{}{}", health.http_port(), path)},
                kPatience);
    std::vector<http::Completion> done;
    while (done.empty()) done = client.Wait(kPatience);
    EXPECT_TRUE(done[0].response.ok()) << done[0].response.status();
    return std::pair(done[0].response->status, done[0].response->body);
  };
  EXPECT_EQ(get("/livez"), std::pair(200, std::string("ok\n")));
  EXPECT_EQ(get("/readyz"), std::pair(503, std::string("it is starting\n")));
  health.Say({"no server", "no NIC"});
  EXPECT_EQ(get("/readyz"), std::pair(503, std::string("no server\nno NIC\n")));
  health.Say({});
  EXPECT_EQ(get("/readyz").first, 200);
  health.heartbeat(0).Beat(os::MonotonicMs() - 61'000);
  EXPECT_EQ(get("/livez").first, 503);
  EXPECT_THAT(get("/livez").second, testing::HasSubstr("the loop has not turned for 1m1s"));
  health.heartbeat(0).Beat();
  EXPECT_EQ(get("/livez").first, 200);
}

}  // namespace
}  // namespace spoke::daemon
