#include "netagent/sync/gateways.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/kernel/fake_gateway_routes.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr ip::Address kA = ip::Address::V4(0x0A010064);
constexpr ip::Address kB = ip::Address::V4(0x0A010065);

class FakeTcpProbe final : public TcpProbe {
 public:
  void Begin(const ip::Address& address, uint16_t port, absl::Time) override {
    begun.emplace_back(address, port);
  }
  std::vector<std::pair<ip::Address, bool>> Collect(absl::Time) override {
    std::vector<std::pair<ip::Address, bool>> ended;
    for (const auto& [address, port] : begun) ended.emplace_back(address, up.contains(address));
    begun.clear();
    return ended;
  }
  std::set<ip::Address> up;
  std::vector<std::pair<ip::Address, uint16_t>> begun;
};

class GatewaysTest : public testing::Test {
 protected:
  // Lets the clock go on to when the gateways want to be looked after, so many times.
  int TicksWithChange(int ticks) {
    int changes = 0;
    for (int i = 0; i < ticks; ++i) {
      clock_.Advance(std::max(absl::ZeroDuration(), gateways_.NextWake() - clock_.Now()));
      changes += gateways_.Tick() ? 1 : 0;
    }
    return changes;
  }

  FakeGatewayRoutes routes_;
  FakeTcpProbe probe_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  Gateways gateways_{{routes_, probe_, clock_, log_}};
};

TEST_F(GatewaysTest, AsksEachAtItsPortEveryTwoSeconds) {
  gateways_.SetTargets({{kA, 9467}, {kB, 80}});
  gateways_.Tick();
  EXPECT_THAT(probe_.begun, ElementsAre(Pair(kA, 9467), Pair(kB, 80)));
  probe_.up = {kA, kB};
  const absl::Time began = clock_.Now();
  TicksWithChange(2);  // The answers; then the next round.
  EXPECT_EQ(clock_.Now() - began, Gateways::kPeriod);
  EXPECT_EQ(probe_.begun.size(), 2U);
}

TEST_F(GatewaysTest, OneThatStopsAnsweringIsTakenOutAndComesBack) {
  gateways_.SetTargets({{kA, 9467}, {kB, 9467}});
  probe_.up = {kA, kB};
  TicksWithChange(4);
  EXPECT_THAT(gateways_.healthy(), ElementsAre(kA, kB));
  probe_.up = {kB};
  EXPECT_EQ(TicksWithChange(8), 1);
  EXPECT_THAT(gateways_.healthy(), ElementsAre(kB));
  EXPECT_EQ(log_.Count("gateway_unhealthy"), 1);
  probe_.up = {kA, kB};
  EXPECT_EQ(TicksWithChange(8), 1);
  EXPECT_THAT(gateways_.healthy(), ElementsAre(kA, kB));
}

TEST_F(GatewaysTest, PutsWaysUpAndTakesThemAway) {
  ASSERT_TRUE(gateways_.Prepare({{8, kA}, {9, kB}}).ok());
  EXPECT_THAT(routes_.Read().value(), ElementsAre(Pair(8, kA), Pair(9, kB)));
  ASSERT_TRUE(gateways_.Prepare({{9, kB}}).ok());
  EXPECT_THAT(routes_.Read().value(), ElementsAre(Pair(9, kB)));
  routes_.fails = absl::UnavailableError("busy");
  EXPECT_FALSE(gateways_.Prepare({{9, kB}, {10, kA}}).ok());
  routes_.fails = absl::OkStatus();
  EXPECT_TRUE(gateways_.Prepare({{9, kB}, {10, kA}}).ok());
  EXPECT_THAT(routes_.Read().value(), ElementsAre(Pair(9, kB), Pair(10, kA)));
}

TEST_F(GatewaysTest, ANewAgentFindsTheWaysOfTheLast) {
  ASSERT_TRUE(gateways_.Prepare({{12, kA}}).ok());
  Gateways next({routes_, probe_, clock_, log_});
  EXPECT_THAT(next.Start().value(), ElementsAre(Pair(12, kA)));
}

TEST_F(GatewaysTest, WhatSomebodyTookAwayComesBack) {
  ASSERT_TRUE(gateways_.Prepare({{12, kA}}).ok());
  ASSERT_TRUE(routes_.Forget(12).ok());
  TicksWithChange(2);
  EXPECT_THAT(routes_.Read().value(), ElementsAre(Pair(12, kA)));
  EXPECT_EQ(log_.Count("gateway_way_repaired"), 1);
}

TEST(SocketTcpProbe, TellsWhoListens) {
  const ip::Address loopback = ip::Address::V4(0x7F000001);
  const os::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(here);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&here), size), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&here), &size), 0);
  SocketTcpProbe probe;
  const absl::Time began = absl::UnixEpoch();
  const auto result = [&] {
    probe.Begin(loopback, ntohs(here.sin_port), began);
    for (;;) {
      const auto ended = probe.Collect(began);
      if (!ended.empty()) return ended.front();
      std::this_thread::yield();
    }
  };
  EXPECT_EQ(result(), std::pair(loopback, false)) << "nobody listens yet";
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(result(), std::pair(loopback, true));
}

}  // namespace
}  // namespace spoke::netagent
