#include "netagent/egress/gateways/gateways.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/claims.h"
#include "netagent/egress/gateways/testing/fake_gateway_routes.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr ip::Address kA = ip::Address::V4(0x0A010064);
constexpr ip::Address kB = ip::Address::V4(0x0A010065);

class FakeTcpProbe final : public TcpProbe {
 public:
  void Begin(const TcpProbeTarget& target, absl::Time) override { begun.push_back(target); }
  std::vector<std::pair<TcpProbeTarget, bool>> Collect(absl::Time) override {
    std::vector<std::pair<TcpProbeTarget, bool>> ended;
    for (const TcpProbeTarget& target : begun) {
      ended.emplace_back(target, up.contains(target.address) || up_marks.contains(target.mark));
    }
    begun.clear();
    return ended;
  }
  std::set<ip::Address> up;
  std::set<uint32_t> up_marks;  // The marks of gateways behind a tunnel that work.
  std::vector<TcpProbeTarget> begun;
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
  EXPECT_THAT(probe_.begun, ElementsAre(TcpProbeTarget{kA, 9467}, TcpProbeTarget{kB, 80}));
  probe_.up = {kA, kB};
  const absl::Time began = clock_.Now();
  TicksWithChange(2);  // The answers come, then the next round.
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
  ASSERT_TRUE(gateways_.Prepare({{8, kA}, {9, kB}}, std::nullopt).ok());
  EXPECT_THAT(routes_.Read().value(), ElementsAre(Pair(8, kA), Pair(9, kB)));
  ASSERT_TRUE(gateways_.Prepare({{9, kB}}, std::nullopt).ok());
  EXPECT_THAT(routes_.Read().value(), ElementsAre(Pair(9, kB)));
  routes_.fails = absl::UnavailableError("busy");
  EXPECT_FALSE(gateways_.Prepare({{9, kB}, {10, kA}}, std::nullopt).ok());
  routes_.fails = absl::OkStatus();
  EXPECT_TRUE(gateways_.Prepare({{9, kB}, {10, kA}}, std::nullopt).ok());
  EXPECT_THAT(routes_.Read().value(), ElementsAre(Pair(9, kB), Pair(10, kA)));
}

TEST_F(GatewaysTest, ANewAgentFindsTheWaysOfTheLast) {
  ASSERT_TRUE(gateways_.Prepare({{12, kA}}, std::nullopt).ok());
  Gateways next({routes_, probe_, clock_, log_});
  EXPECT_THAT(next.Start()->known_marks, ElementsAre(Pair(12, kA)));
}

TEST_F(GatewaysTest, WhatSomebodyTookAwayComesBack) {
  ASSERT_TRUE(gateways_.Prepare({{12, kA}}, std::nullopt).ok());
  ASSERT_TRUE(routes_.Forget(12).ok());
  TicksWithChange(2);
  EXPECT_THAT(routes_.Read().value(), ElementsAre(Pair(12, kA)));
  EXPECT_EQ(log_.Count("gateway_way_repaired"), 1);
}

const GatewayEndpoint kTunnelA(kA, policy::GatewayTransport::kVxlan);
const GatewayEndpoint kTunnelB(kB, policy::GatewayTransport::kVxlan);

TEST_F(GatewaysTest, AsksBehindTheTunnelWithTheMarkThatLeadsThere) {
  ASSERT_TRUE(gateways_.Prepare({{8, kTunnelA}, {9, kTunnelB}, {10, kA}}, 4789).ok());
  EXPECT_EQ(routes_.TunnelPort().value(), 4789);
  gateways_.SetTargets({{kTunnelA, 9467}, {kTunnelB, 81}, {kA, 9467}});
  gateways_.Tick();
  EXPECT_THAT(probe_.begun, testing::UnorderedElementsAre(TcpProbeTarget{claims::kProbeV4, 9467, 8},
                                                          TcpProbeTarget{claims::kProbeV4, 81, 9},
                                                          TcpProbeTarget{kA, 9467}));
  // The gateway's port answers, the way behind the tunnel does not.
  probe_.up = {kA};
  probe_.up_marks = {9};
  TicksWithChange(4);
  EXPECT_THAT(gateways_.healthy(), testing::UnorderedElementsAre(kA, kTunnelB));
}

TEST_F(GatewaysTest, ATunnelThatCannotBeIsSaidOnceAndTriedAgain) {
  routes_.taken_port = 4789;
  ASSERT_TRUE(gateways_.Prepare({{8, kTunnelA}, {9, kB}}, 4789).ok());
  EXPECT_THAT(routes_.Read().value(), ElementsAre(Pair(9, kB))) << "the others do not wait for it";
  TicksWithChange(3);
  EXPECT_GE(log_.Count("gateway_tunnel_failed"), 1);
  const auto said = log_.Count("gateway_tunnel_failed");
  TicksWithChange(3);
  EXPECT_EQ(log_.Count("gateway_tunnel_failed"), said);
  routes_.taken_port = 0;
  clock_.Advance(Gateways::kLook);
  gateways_.Tick();
  EXPECT_THAT(routes_.Read().value(), ElementsAre(Pair(8, kTunnelA), Pair(9, kB)));
}

TEST_F(GatewaysTest, ADeletedTunnelComesBackWithItsWays) {
  ASSERT_TRUE(gateways_.Prepare({{8, kTunnelA}}, 4789).ok());
  routes_.DeleteTunnel();
  clock_.Advance(Gateways::kLook);
  gateways_.Tick();
  EXPECT_THAT(routes_.Read().value(), ElementsAre(Pair(8, kTunnelA)));
  // It is so with another port, and for the next agent.
  ASSERT_TRUE(gateways_.Prepare({{8, kTunnelA}}, 4790).ok());
  EXPECT_EQ(routes_.TunnelPort().value(), 4790);
  EXPECT_THAT(routes_.Read().value(), ElementsAre(Pair(8, kTunnelA)));
  Gateways next({routes_, probe_, clock_, log_});
  EXPECT_EQ(next.Start()->known_tunnel_port, 4790);
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
    probe.Begin({loopback, ntohs(here.sin_port)}, began);
    for (;;) {
      const auto ended = probe.Collect(began);
      if (!ended.empty()) return ended.front().second;
      std::this_thread::yield();
    }
  };
  EXPECT_FALSE(result()) << "nobody listens yet";
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_TRUE(result());
}

}  // namespace
}  // namespace spoke::netagent
