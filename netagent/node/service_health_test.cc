#include "netagent/node/service_health.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ServiceHealthTest : public testing::Test {
 protected:
  os::SimClock clock_;
  std::string cni_reason_;
  std::vector<std::string> findings_;
  std::vector<std::string> said_;
  int times_ = 0;
  ServiceHealth health_{"ipam:7443",
                        "eth0",
                        {.clock = clock_,
                         .cni_reason = [this] { return cni_reason_; },
                         .node_findings = [this] { return findings_; },
                         .say =
                             [this](std::vector<std::string> reasons) {
                               said_ = std::move(reasons);
                               ++times_;
                             }}};
};

TEST_F(ServiceHealthTest, OneSessionIsEnoughForGood) {
  health_.Tick();
  EXPECT_THAT(said_, ElementsAre(HasSubstr("no session with the server at ipam:7443 yet")));
  health_.OnSession(absl::UnavailableError("Connection refused"));
  health_.Tick();
  EXPECT_THAT(said_, ElementsAre(HasSubstr("nobody listens there")));
  health_.OnSession(absl::OkStatus());
  health_.Tick();
  EXPECT_THAT(said_, IsEmpty());
  health_.OnSession(absl::UnavailableError("Socket closed"));
  health_.Tick();
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(ServiceHealthTest, WhatItIsToldCountsAtOnceAndTheRestWithinASecond) {
  health_.OnSession(absl::OkStatus());
  health_.Tick();
  EXPECT_EQ(times_, 1);
  health_.Tick();
  EXPECT_EQ(times_, 1) << "nothing is new, and no second has passed";
  cni_reason_ = "/opt/cni/bin is full";
  findings_ = {"no nf_tables"};
  clock_.Advance(ServiceHealth::kLook);
  health_.Tick();
  EXPECT_THAT(said_, ElementsAre("no nf_tables", "/opt/cni/bin is full"));
  health_.OnNic(absl::NotFoundError("gone"));
  health_.Tick();
  EXPECT_THAT(said_, ElementsAre("no nf_tables", HasSubstr("device eth0 cannot be read: gone"),
                                 "/opt/cni/bin is full"));
}

TEST_F(ServiceHealthTest, AClockThatIsSetBackDoesNotStopIt) {
  health_.Tick();
  clock_.Advance(-absl::Hours(5));
  health_.Tick();
  EXPECT_EQ(times_, 2);
}

}  // namespace
}  // namespace spoke::netagent
