// Egress gateways behind a tunnel, across a router that looks at nothing but the destination: where
// packets go, what notices that a gateway has stopped to work, and who gets into the tunnel.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/ip/socket_address.h"
#include "netagent/claims.h"
#include "tests/netns/egress/egress_tunnel_world.h"

namespace spoke::netagent {
namespace {

using testing::Contains;
using testing::HasSubstr;

class EgressTunnelTest : public testing::TestWithParam<ip::Family> {
 protected:
  void SetUp() override {
    tunnel_ = EgressTunnelWorld::Make(clock_);
    if (tunnel_ == nullptr) {
      ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr);
      GTEST_SKIP() << "needs CAP_SYS_ADMIN";
    }
    world_ = &tunnel_->net();
  }

  Gateways& gateways() { return tunnel_->gateways(); }
  // Rounds of questions to the gateways; each waits for its answers, or as long as it must.
  void AskGateways(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      gateways().Tick();
      for (int wait = 0; wait < 200; ++wait) {
        ::usleep(1000);  // The kernel's work needs no more, and it tells nobody.
        gateways().Tick();
      }
      clock_.Advance(TcpProbe::kPatience);
      gateways().Tick();
      clock_.Advance(Gateways::kPeriod - TcpProbe::kPatience);
    }
    tunnel_->SetAgain();
  }
  std::set<std::string> Healthy() const { return tunnel_->Healthy(GetParam()); }

  static uint64_t Counted(nft::Connection& tables, const std::string& name) {
    const auto counters = tables.ReadCounters(kSpokeTable);
    EXPECT_TRUE(counters.ok()) << counters.status();
    for (const nft::CounterReading& counter :
         counters.value_or(std::vector<nft::CounterReading>())) {
      if (counter.name == name) return counter.packets;
    }
    return 0;
  }
  uint64_t Counted(const std::string& name) { return Counted(world_->tables(), name); }

  const WorldAddresses& at() const { return AddressesOf(GetParam()); }
  std::string Gateway(size_t i) const { return at().gateways[i].ToString(); }
  bool IsGateway(const std::string& address) const {
    return address == Gateway(0) || address == Gateway(1);
  }
  os::SimClock clock_;
  std::unique_ptr<EgressTunnelWorld> tunnel_;
  EgressWorld* world_ = nullptr;  // The world of `tunnel_`.
};

TEST_P(EgressTunnelTest, AsNextHopAGatewayIsNotReachedAcrossARouter) {
  UdpServer server = world_->Serve(at().internet);
  tunnel_->Set(ByGateways(policy::GatewayTransport::kDirect));
  AskGateways(1);
  EXPECT_EQ(Healthy().size(), 2U) << "their ports answer";
  UdpFlow flow = world_->Flow(at().internet);
  EXPECT_FALSE(IsGateway(Ask(flow, server))) << "which the tunnel is there to end";
}

TEST_P(EgressTunnelTest, TheInternetSeesTheGatewayAndThePodItsAnswer) {
  UdpServer server = world_->Serve(at().internet);
  UdpServer peer = world_->Serve(at().peer);
  tunnel_->SetTunnel();
  UdpFlow flow = world_->Flow(at().internet);
  const std::string from = Ask(flow, server);
  EXPECT_TRUE(IsGateway(from)) << from;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Ask(flow, server), from);
  UdpFlow inside = world_->Flow(at().peer);
  EXPECT_EQ(Ask(inside, peer), at().pod.ToString());
  AskGateways(2);
  EXPECT_EQ(Healthy().size(), 2U);
  EXPECT_EQ(Counted("drop/leak"), 0U);
  EXPECT_EQ(Counted("drop/tunnel"), 0U);
}

TEST_P(EgressTunnelTest, ABrokenTunnelTakesItsGatewayOutThoughThePortAnswers) {
  UdpServer server = world_->Serve(at().internet);
  UdpServer other = world_->Serve(at().internet_too);
  tunnel_->SetTunnel();
  AskGateways(1);
  ASSERT_EQ(Healthy().size(), 2U);
  UdpFlow flow = world_->Flow(at().internet);
  const std::string broken = Ask(flow, server);
  ASSERT_TRUE(IsGateway(broken)) << broken;
  const size_t at_gateway = broken == Gateway(0) ? 0 : 1;
  const std::string whole = Gateway(1 - at_gateway);

  Nft(world_->gateway(at_gateway),
      "table inet broken { chain c { type filter hook input priority "
      "-400; udp dport 4789 drop; }; }");
  EXPECT_EQ(Ask(flow, server), "nothing");
  AskGateways(2);
  EXPECT_EQ(Healthy().size(), 2U) << "twice is not thrice";
  AskGateways(1);
  EXPECT_EQ(Healthy(), std::set<std::string>{whole});
  EXPECT_EQ(tunnel_->log().Count("gateway_unhealthy"), 2) << "of both families";
  // Its port answers all the while.
  SocketTcpProbe direct;
  direct.Begin({at().gateways[at_gateway], kGatewayHealthPort}, clock_.Now());
  ::usleep(100'000);
  EXPECT_THAT(
      direct.Collect(clock_.Now()),
      Contains(testing::Pair(TcpProbeTarget{at().gateways[at_gateway], kGatewayHealthPort}, true)));

  UdpFlow next = world_->Flow(at().internet);
  EXPECT_EQ(Ask(next, server), whole);
  UdpFlow third = world_->Flow(at().internet_too);
  EXPECT_EQ(Ask(third, other), whole);
  Nft(world_->gateway(at_gateway), "delete table inet broken");
  AskGateways(1);
  EXPECT_EQ(Healthy().size(), 1U) << "once is not twice";
  AskGateways(1);
  EXPECT_EQ(Healthy().size(), 2U);
  // What began on the other goes on there, and what began here goes on here.
  EXPECT_EQ(Ask(next, server), whole);
  EXPECT_EQ(Ask(third, other), whole);
  EXPECT_EQ(Ask(flow, server), broken);
  UdpFlow last = world_->Flow(at().internet);
  EXPECT_EQ(Ask(last, server), broken) << "the pair has its gateway again";
  EXPECT_EQ(Counted("drop/leak"), 0U);
}

TEST_P(EgressTunnelTest, ABrokenTranslationTakesItsGatewayOut) {
  tunnel_->SetTunnel();
  AskGateways(1);
  ASSERT_EQ(Healthy().size(), 2U);
  nft::Transaction transaction;
  transaction.Add(kSpokeTable, nft::FlushChain{"egress_probed"});
  ASSERT_TRUE(world_->gateway_tables(0).Apply(transaction).ok());
  AskGateways(3);
  EXPECT_EQ(Healthy(), std::set<std::string>{Gateway(1)});
  EXPECT_GT(Counted(world_->gateway_tables(0), "drop/tunnel"), 0U);
  tunnel_->PutGatewayRules(0);
  AskGateways(2);
  EXPECT_EQ(Healthy().size(), 2U);
  Nft(world_->gateway(1), "delete table inet spoke");
  AskGateways(3);
  EXPECT_EQ(Healthy(), std::set<std::string>{Gateway(0)});
}

TEST_P(EgressTunnelTest, AGatewayThatDrainsIsTakenOutAndKeepsItsFlows) {
  UdpServer server = world_->Serve(at().internet);
  tunnel_->SetTunnel();
  UdpFlow flow = world_->Flow(at().internet);
  const std::string first = Ask(flow, server);
  ASSERT_TRUE(IsGateway(first)) << first;
  const size_t drains = first == Gateway(0) ? 0 : 1;
  tunnel_->Drain(drains);
  AskGateways(3);
  EXPECT_EQ(Healthy(), std::set<std::string>{Gateway(1 - drains)});
  EXPECT_EQ(Ask(flow, server), first);
  UdpFlow next = world_->Flow(at().internet);
  EXPECT_EQ(Ask(next, server), Gateway(1 - drains));
}

TEST_P(EgressTunnelTest, WhatCannotGoByTheTunnelIsDroppedAndCounted) {
  UdpServer server = world_->Serve(at().internet);
  tunnel_->SetTunnel();
  UdpFlow flow = world_->Flow(at().internet);
  const std::string from = Ask(flow, server);
  ASSERT_TRUE(IsGateway(from)) << from;
  // Somebody takes the rules away that lead into it.
  const char* family = GetParam() == ip::Family::kV4 ? "" : "-6 ";
  for (const auto& [mark, gateway] : tunnel_->settings().known_marks) {
    if (gateway.address.family() != GetParam()) continue;
    Ip(world_->node(), fmt::format("{}rule del fwmark {}/{}", family, mark, claims::kFlowMarkMask));
  }
  EXPECT_EQ(Ask(flow, server), "nothing");
  EXPECT_EQ(Counted("drop/leak"), 1U);
  UdpFlow next = world_->Flow(at().internet);
  EXPECT_EQ(Ask(next, server), "nothing");
  EXPECT_EQ(Counted("drop/leak"), 2U);
  clock_.Advance(Gateways::kLook);
  gateways().Tick();
  EXPECT_EQ(Ask(flow, server), from) << "put back";
  // The same with the device.
  Ip(world_->node(), "link del " + std::string(claims::kTunnelLink));
  EXPECT_EQ(Ask(flow, server), "nothing");
  EXPECT_EQ(Counted("drop/leak"), 3U);
  clock_.Advance(Gateways::kLook);
  gateways().Tick();
  EXPECT_EQ(Ask(flow, server), from);
}

TEST_P(EgressTunnelTest, AGatewayForwardsNothingUntranslated) {
  UdpServer server = world_->Serve(at().internet);
  tunnel_->SetTunnel();
  for (size_t i = 0; i < 2; ++i) {
    nft::Transaction transaction;
    transaction.Add(kSpokeTable, nft::FlushChain{"egress_translate"});
    ASSERT_TRUE(world_->gateway_tables(i).Apply(transaction).ok());
  }
  UdpFlow flow = world_->Flow(at().internet);
  EXPECT_EQ(Ask(flow, server), "nothing");
  EXPECT_EQ(Counted(world_->gateway_tables(0), "drop/leak") +
                Counted(world_->gateway_tables(1), "drop/leak"),
            1U);
}

// Computes the checksum of RFC 1071.
uint16_t Checksum(const std::vector<uint8_t>& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); ++i) sum += i % 2 == 0 ? bytes[i] * 256U : bytes[i];
  while (sum > 0xFFFF) sum = (sum & 0xFFFFU) + (sum >> 16U);
  return static_cast<uint16_t>(~sum);
}

// A packet as the tunnel has it: UDP inside, to the Internet server's port.
std::vector<uint8_t> Tunnelled(const ip::Address& from, const ip::Address& to) {
  const bool v4 = from.is_v4();
  const std::string text = from.ToBytes() + to.ToBytes();
  const std::vector<uint8_t> both(text.begin(), text.end());
  const auto put = [](std::vector<uint8_t>& bytes, const std::vector<uint8_t>& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  const auto set = [](std::vector<uint8_t>& bytes, size_t at, uint16_t value) {
    bytes[at] = static_cast<uint8_t>(value >> 8U);
    bytes[at + 1] = static_cast<uint8_t>(value);
  };
  std::vector<uint8_t> udp = {
      0x9C, 0x40, EgressWorld::kPort >> 8, EgressWorld::kPort & 0xFF, 0, 11, 0, 0, 'a', 's', 'k'};
  std::vector<uint8_t> pseudo = both;
  put(pseudo, {0, 0, 0, 11, 0, 0, 0, 17});
  put(pseudo, udp);
  set(udp, 6, Checksum(pseudo));
  std::vector<uint8_t> header = {0x45, 0, 0, 31, 0, 1, 0, 0, 64, 17, 0, 0};
  if (!v4) header = {0x60, 0, 0, 0, 0, 11, 17, 64};
  put(header, both);
  if (v4) set(header, 10, Checksum(header));
  std::vector<uint8_t> bytes = {0x0C, 0, 0, static_cast<uint8_t>(v4 ? 1 : 2), 0, 0, 83, 0};
  put(bytes, header);
  put(bytes, udp);
  return bytes;
}

bool SendTunnelled(const netns::Netns& netns, const ip::Address& outer, const ip::Address& gateway,
                   const std::vector<uint8_t>& packet) {
  bool sent = false;
  In(netns, [&] {
    const os::UniqueFd fd(::socket(gateway.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM, 0));
    const ip::SocketAddress here = ip::ToSocketAddress(outer, 0);
    ASSERT_EQ(::bind(fd.get(), here.get(), here.size), 0);
    const ip::SocketAddress there = ip::ToSocketAddress(gateway, kTunnelPort);
    sent = ::sendto(fd.get(), packet.data(), packet.size(), 0, there.get(), there.size) ==
           static_cast<ssize_t>(packet.size());
  });
  return sent;
}

TEST_P(EgressTunnelTest, NobodyButNodesGetsIntoTheTunnel) {
  UdpServer server = world_->Serve(at().internet);
  UdpServer hub = world_->Serve(at().hub);
  tunnel_->SetTunnel();
  const auto packet = Tunnelled(at().pod, at().internet);
  ASSERT_TRUE(SendTunnelled(world_->node(), at().node, at().gateways[0], packet));
  EXPECT_EQ(server.AnswerOne(), Gateway(0)) << "the test's packet is as the tunnel's";
  // A pod's packet is dropped where it comes from.
  ASSERT_TRUE(SendTunnelled(world_->pod(), at().pod, at().gateways[0], packet));
  EXPECT_EQ(server.AnswerOne(), "");
  EXPECT_EQ(Counted("drop/tunnel"), 1U);
  // A packet of somebody from outside is dropped by the gateway.
  ASSERT_TRUE(SendTunnelled(world_->outside(), at().hub, at().gateways[0], packet));
  EXPECT_EQ(server.AnswerOne(), "");
  EXPECT_EQ(Counted(world_->gateway_tables(0), "drop/tunnel"), 1U);
  // Nobody gets to the cluster or the hub by it, or out with somebody else's address.
  for (const auto& [from, to] :
       {std::pair(at().pod, at().peer), std::pair(at().pod, at().hub),
        std::pair(at().hub, at().internet), std::pair(at().pod, at().gateways[0])}) {
    ASSERT_TRUE(SendTunnelled(world_->node(), at().node, at().gateways[0], Tunnelled(from, to)));
  }
  EXPECT_EQ(server.AnswerOne(), "");
  EXPECT_EQ(hub.AnswerOne(), "");
  EXPECT_EQ(Counted(world_->gateway_tables(0), "drop/tunnel"), 5U);
  // A node that is no gateway takes nothing at all.
  In(world_->gateway(0),
     [&] { ASSERT_TRUE(SendTunnelled(world_->gateway(0), at().gateways[0], at().node, packet)); });
  EXPECT_EQ(server.AnswerOne(), "");
  EXPECT_EQ(Counted("drop/tunnel"), 2U);
}

TEST_P(EgressTunnelTest, APodLearnsHowMuchFitsIntoTheTunnel) {
  tunnel_->SetTunnel();
  int path_mtu = 0;
  In(world_->pod(), [&] {
    const bool v4 = GetParam() == ip::Family::kV4;
    const os::UniqueFd fd(::socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0));
    const int level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
    const int discover = v4 ? IP_PMTUDISC_DO : IPV6_PMTUDISC_DO;
    ASSERT_EQ(::setsockopt(fd.get(), level, v4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, &discover,
                           sizeof(discover)),
              0);
    const ip::SocketAddress there = ip::ToSocketAddress(at().internet, EgressWorld::kPort);
    ASSERT_EQ(::connect(fd.get(), there.get(), there.size), 0);
    const std::vector<char> whole(1500 - (v4 ? 28 : 48));
    EXPECT_GT(::send(fd.get(), whole.data(), whole.size(), 0), 0);
    for (int wait = 0; wait < 200; ++wait) {
      socklen_t size = sizeof(path_mtu);
      ASSERT_EQ(::getsockopt(fd.get(), level, v4 ? IP_MTU : IPV6_MTU, &path_mtu, &size), 0);
      if (path_mtu < 1500) break;
      ::usleep(1000);
    }
    UdpServer server = world_->Serve(at().internet);
    int error = 0;  // The error of the packet that was too long, which the socket tells once more.
    socklen_t error_size = sizeof(error);
    ASSERT_EQ(::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &error_size), 0);
    const std::vector<char> fits(static_cast<size_t>(path_mtu) - (v4 ? 28 : 48));
    EXPECT_GT(::send(fd.get(), fits.data(), fits.size(), 0), 0);
    EXPECT_TRUE(IsGateway(server.AnswerOne()));
  });
  EXPECT_EQ(path_mtu, 1500 - static_cast<int>(TunnelOverhead(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Families, EgressTunnelTest,
                         testing::Values(ip::Family::kV4, ip::Family::kV6), [](const auto& test) {
                           return test.param == ip::Family::kV4 ? "V4" : "V6";
                         });

TEST(EgressTunnel, ANicWithoutRoomForItIsSaidInPlainWords) {
  const auto world = EgressWorld::Make(EgressNetwork::kRouted);
  if (world == nullptr) {
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr);
    GTEST_SKIP() << "needs CAP_SYS_ADMIN";
  }
  const auto routes = NetlinkGatewayRoutes::Create(EgressWorld::kNic).value();
  const auto lead = [&](ip::Family family) {
    return routes->Lead(claims::kFirstGatewayMark,
                        {AddressesOf(family).gateways[0], policy::GatewayTransport::kVxlan});
  };
  Ip(world->node(), fmt::format("link set {} mtu 1335", EgressWorld::kNic));
  ASSERT_TRUE(routes->PutTunnel(kTunnelPort).ok());
  EXPECT_TRUE(lead(ip::Family::kV4).ok());
  EXPECT_THAT(std::string(lead(ip::Family::kV6).message()),
              HasSubstr("the NIC eth0 has an MTU of 1335 bytes; a tunnel for IPv6 needs 1336"));
  // What the NIC carries has changed: the ways are no longer as they should be.
  EXPECT_EQ(routes->Read()->size(), 1U);
  Ip(world->node(), fmt::format("link set {} mtu 1400", EgressWorld::kNic));
  EXPECT_EQ(routes->Read()->size(), 0U);
  ASSERT_TRUE(routes->PutTunnel(kTunnelPort).ok());
  EXPECT_TRUE(lead(ip::Family::kV4).ok());
  EXPECT_EQ(routes->Read()->size(), 1U);
  Ip(world->node(), fmt::format("link set {} mtu 600", EgressWorld::kNic));
  EXPECT_THAT(std::string(routes->PutTunnel(kTunnelPort).message()), HasSubstr("IPv4 needs 612"));
}

}  // namespace
}  // namespace spoke::netagent
