#include "lib/daemon/probe.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/rpc/health_service.h"
#include "tests/support/temp_dir.h"

namespace spoke::daemon {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ProbeTest : public testing::Test {
 protected:
  ProbeAnswer Ask(const std::string& service) { return Probe("spoke-test", address_, service); }

  const testing_support::TempDir dir_;
  const std::string address_ = "unix:" + dir_.File("health.sock");
};

TEST_F(ProbeTest, PrintsAReasonALineOrThatAllIsWell) {
  const auto service = rpc::HealthService::Listen(
      {.address = address_, .not_ready = {"no server", "no conflist"}, .liveness = nullptr});
  ASSERT_TRUE(service.ok()) << service.status();
  EXPECT_FALSE(Ask("readiness").well);
  EXPECT_EQ(Ask("readiness").text, "no server\nno conflist\n");
  EXPECT_TRUE(Ask("liveness").well);
  EXPECT_EQ(Ask("liveness").text, "alive\n");
  (*service)->SetReadiness({});
  EXPECT_TRUE(Ask("readiness").well);
  EXPECT_EQ(Ask("readiness").text, "ready\n");
}

TEST_F(ProbeTest, SaysThatNobodyListensAndWhatToDo) {
  const ProbeAnswer answer = Ask("liveness");
  EXPECT_FALSE(answer.well);
  EXPECT_THAT(answer.text, AllOf(HasSubstr("nobody listens at " + address_),
                                 HasSubstr("spoke-test does not run"), HasSubstr("its log")));
}

TEST_F(ProbeTest, SaysThatHealthIsOff) {
  const ProbeAnswer answer = Probe("spoke-test", "", "readiness");
  EXPECT_FALSE(answer.well);
  EXPECT_THAT(answer.text, HasSubstr("health is off in the configuration"));
}

}  // namespace
}  // namespace spoke::daemon
