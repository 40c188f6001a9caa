// Tests of what is counted between two looks: found when wrong, silent when right.
#include <utility>

#include "lib/node_checks/testing/healthy_node.h"

namespace spoke::node_checks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

NodeFacts With(const NetworkCounters& counted) {
  NodeFacts facts = HealthyNode();
  facts.counted = counted;
  return facts;
}

TEST(NetworkChecks, AGatewayThatIsSilentIsTold) {
  NodeFacts facts = HealthyNode();
  facts.gateways = {{.address = "10.0.0.1"}, {.address = "fd00::1", .silent = true}};
  EXPECT_THAT(FindingsOf(facts, "gateway"), ElementsAre(Warning("fd00::1")));
}

TEST(NetworkChecks, TheFirstLookSaysNothing) {
  const NodeFacts facts = HealthyNode();
  EXPECT_EQ(facts.counted, std::nullopt);
  for (const char* id : {"nic-errors", "nic-carrier", "nic-speed", "tcp-resent", "ports"}) {
    EXPECT_THAT(FindingsOf(facts, id), IsEmpty()) << id;
  }
}

TEST(NetworkChecks, ErrorsCountWhenTheyAreMoreThanAFew) {
  EXPECT_THAT(FindingsOf(With({.packets = 100'000, .errors = 9}), "nic-errors"), IsEmpty());
  EXPECT_THAT(FindingsOf(With({.packets = 1'000'000, .errors = 99}), "nic-errors"), IsEmpty());
  const auto found = FindingsOf(With({.packets = 100'000, .errors = 10}), "nic-errors");
  EXPECT_THAT(found, ElementsAre(Warning("eth0")));
  EXPECT_THAT(found[0].what, HasSubstr("had errors in 10 of 100000 packets"));
}

TEST(NetworkChecks, WhatFoundNoRoomIsAFindingOfItsOwn) {
  const auto found =
      FindingsOf(With({.packets = 100'000, .errors = 20, .missed = 500}), "nic-errors");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_THAT(found[1].what, HasSubstr("no room for 500"));
  EXPECT_THAT(found[1].remedy, HasSubstr("ethtool -G eth0"));
}

TEST(NetworkChecks, WhatTheKernelDropsIsFoundWhenItIsMoreThanASwitchSays) {
  EXPECT_THAT(FindingsOf(With({.packets = 10'000, .dropped = 999}), "nic-errors"), IsEmpty());
  EXPECT_THAT(FindingsOf(With({.packets = 1'100'000, .dropped = 1000}), "nic-errors"), IsEmpty());
  const auto found = FindingsOf(With({.packets = 1'000'000, .dropped = 1000}), "nic-errors");
  EXPECT_THAT(found, ElementsAre(Warning("eth0")));
  EXPECT_THAT(found[0].what, HasSubstr("dropped 1000 of 1000000 packets"));
}

TEST(NetworkChecks, ALinkThatFlapsIsFound) {
  EXPECT_THAT(FindingsOf(With({.carrier_lost = 1}), "nic-carrier"), IsEmpty());
  EXPECT_THAT(FindingsOf(With({.carrier_lost = 2}), "nic-carrier"), ElementsAre(Warning("eth0")));
}

TEST(NetworkChecks, ALinkThatHasBecomeSlowerIsFound) {
  NodeFacts facts = HealthyNode();
  facts.speed_mbit = facts.best_speed_mbit = 100'000;
  EXPECT_THAT(FindingsOf(facts, "nic-speed"), IsEmpty());
  facts.speed_mbit = 25'000;
  EXPECT_THAT(FindingsOf(facts, "nic-speed"), ElementsAre(Warning("eth0")));
}

TEST(NetworkChecks, WhatTcpSendsAgainIsFoundAmongMany) {
  EXPECT_THAT(FindingsOf(With({.tcp_sent = 999, .tcp_resent = 500}), "tcp-resent"), IsEmpty());
  EXPECT_THAT(FindingsOf(With({.tcp_sent = 10'000, .tcp_resent = 499}), "tcp-resent"), IsEmpty());
  const auto found = FindingsOf(With({.tcp_sent = 10'000, .tcp_resent = 500}), "tcp-resent");
  EXPECT_THAT(found, ElementsAre(Warning("TCP")));
  EXPECT_THAT(found[0].what, HasSubstr("5.0 % of 10000"));
}

TEST(NetworkChecks, CountersThatStandStillWhilePacketsPassAreFoundAtTheSecondLook) {
  const auto found = [](std::vector<PodPackets> looks) {
    NodeFacts facts = HealthyNode();
    facts.settings.stage = Stage::kAgent;
    facts.pod_packets = std::move(looks);
    return FindingsOf(facts, "counters");
  };
  EXPECT_THAT(found({}), IsEmpty());
  EXPECT_THAT(found({{5000, 0}}), IsEmpty()) << "they are not read at one moment";
  EXPECT_THAT(found({{5000, 0}, {5000, 500}}), IsEmpty());
  EXPECT_THAT(found({{5000, 5000}, {5000, 0}}), IsEmpty());
  EXPECT_THAT(found({{5000, 0}, {999, 0}}), IsEmpty()) << "too few to tell";
  const auto still = found({{5000, 0}, {1000, 99}});
  EXPECT_THAT(still, ElementsAre(Warning("traffic")));
  EXPECT_THAT(still[0].what, HasSubstr("6000 packets at 2 looks in a row, and 99 of them"));
}

TEST(NetworkChecks, CountersAreComparedByTheAgentAlone) {
  const auto why = [](NodeFacts facts) {
    for (const CheckNotMade& check : Examine(facts).not_made) {
      if (check.id == "counters") return check.why;
    }
    return std::string();
  };
  NodeFacts facts = HealthyNode();
  EXPECT_EQ(why(facts), "") << "services have not been asked yet";
  facts.services.emplace();
  EXPECT_THAT(why(facts), HasSubstr("only the agent"));
  facts.settings.stage = Stage::kAgent;
  EXPECT_EQ(why(facts), "");
  facts.settings.counts = false;
  EXPECT_THAT(why(facts), HasSubstr("traffic.enabled"));
}

TEST(NetworkChecks, PortsThatRunOutAreFound) {
  NodeFacts facts = HealthyNode();
  facts.sysctls["net.ipv4.ip_local_port_range"] = "32768\t60999";
  facts.tcp_sockets = 20'000;
  EXPECT_THAT(FindingsOf(facts, "ports"), IsEmpty());
  facts.tcp_sockets = 23'000;
  EXPECT_THAT(FindingsOf(facts, "ports"), ElementsAre(Warning("net.ipv4.ip_local_port_range")));
  for (const char* range : {"", "1", "9 1", "a b", "1 2 3"}) {
    facts.sysctls["net.ipv4.ip_local_port_range"] = range;
    EXPECT_THAT(FindingsOf(facts, "ports"), IsEmpty()) << range;
  }
}

TEST(NetworkCounters, AreWhatCameBetweenTwoLooks) {
  const NetworkCounters before{.packets = 10, .errors = 1, .tcp_sent = 100, .tcp_resent = 7};
  const NetworkCounters now{
      .packets = 15, .errors = 1, .missed = 2, .tcp_sent = 130, .tcp_resent = 8};
  EXPECT_EQ(Difference(before, now),
            (NetworkCounters{.packets = 5, .missed = 2, .tcp_sent = 30, .tcp_resent = 1}));
  EXPECT_EQ(Difference(now, before), std::nullopt) << "the device was made anew";
}

TEST(NetworkCounters, AreReadAsTheKernelPrintsThem) {
  NetworkCounters counters;
  ParseTcpCounters(
      "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
      "Tcp: RtoAlgorithm RtoMin MaxConn OutSegs RetransSegs InErrs\n"
      "Tcp: 1 200 -1 4711 42 0\n"
      "Udp: InDatagrams\nUdp: 7\n",
      counters);
  EXPECT_EQ(counters.tcp_sent, 4711U);
  EXPECT_EQ(counters.tcp_resent, 42U);
  for (const char* text :
       {"", "Tcp:", "Tcp: OutSegs\n", "Tcp: OutSegs\nTcp: 1 2\n", "Tcp: OutSegs\nTcp: many\n"}) {
    NetworkCounters none;
    ParseTcpCounters(text, none);
    EXPECT_EQ(none, NetworkCounters()) << text;
  }
  EXPECT_EQ(ParseTcpSockets("sockets: used 300\nTCP: inuse 11 orphan 0 tw 4 alloc 20 mem 3\nUDP: "
                            "inuse 3 mem 1\n"),
            15U);
  EXPECT_EQ(ParseTcpSockets(""), std::nullopt);
  EXPECT_EQ(ParseTcpSockets("TCP: orphan 3\n"), std::nullopt);
  EXPECT_EQ(ParseTcpSockets("TCP: inuse\n"), std::nullopt);
}

TEST(NetworkCounters, OfADeviceThatCannotBeReadAreLeftOut) {
  EXPECT_THAT(ParsePackets("", "spk"), IsEmpty());
  for (const char* text :
       {"spk1", "spk1:", "spk1: 1 2 3\n", "spk1: 1 x 0 0 0 0 0 0 3 4\n",
        "spk1: 1 2 0 0 0 0 0 0 3 -4\n", "   ", "\n\n", "xspk1: 1 2 0 0 0 0 0 0 3 4"}) {
    EXPECT_THAT(ParsePackets(text, "spk"), IsEmpty()) << text;
  }
  EXPECT_THAT(ParsePackets("spk1: 1 2\nspk2: 1 2 0 0 0 0 0 0 3 4", "spk"),
              testing::ElementsAre(testing::Pair("spk2", 6)));
}

}  // namespace
}  // namespace spoke::node_checks
