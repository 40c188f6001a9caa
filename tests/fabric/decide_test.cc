#include "tests/fabric/decide.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fabric/counters.h"
#include "tests/fabric/frames_for_test.h"

namespace spoke::fabric {
namespace {

constexpr std::string_view kOne = "02:00:00:00:00:01";
constexpr std::string_view kTwo = "02:00:00:00:00:02";
constexpr std::string_view kAll = "ff:ff:ff:ff:ff:ff";
constexpr std::string_view kFabric = "12:34:56:78:9a:bc";

// Node 1 holds 10.0.0.4, fd00::4 and the pods 10.0.64.1 and fd00:64::1; node 2 likewise with 5, 2.
NicTable Table() {
  const auto one = [](std::string_view text) { return ip::Prefix::Host(Ip(text)); };
  return NicTable::Build({{"node1", "port1", Mac(kOne), {Ip("10.0.0.4"), Ip("fd00::4")}},
                          {"node2", "port2", Mac(kTwo), {Ip("10.0.0.5"), Ip("fd00::5")}}},
                         {{1, one("10.0.64.1"), Mac(kOne), "node1"},
                          {2, one("fd00:64::1"), Mac(kOne), "node1"},
                          {3, one("10.0.64.2"), Mac(kTwo), "node2"},
                          {4, one("fd00:64::2"), Mac(kTwo), "node2"}})
      .value();
}

FrameBytes ArpFrame(std::string_view operation, std::string_view mac, std::string_view sender_mac,
                    std::string_view sender, std::string_view target) {
  return Ethernet(kAll, mac, "0806") + Arp(operation, sender_mac, sender, target);
}

FrameBytes V4Frame(std::string_view mac, std::string_view source, std::string_view destination) {
  return Ethernet(kFabric, mac, "0800") + Ipv4(source, destination);
}

FrameBytes V6Frame(std::string_view mac, std::string_view source, std::string_view destination) {
  return Ethernet(kFabric, mac, "86dd") + Ipv6(source, destination);
}

FrameBytes SolicitationFrame(std::string_view source, std::string_view target) {
  return Ethernet("33:33:ff:00:00:01", kOne, "86dd") + Solicitation(source, target, "ff");
}

FrameBytes Cut(FrameBytes bytes, size_t by) {
  bytes.resize(bytes.size() - by);
  return bytes;
}

struct DropCase {
  std::string name;
  FrameBytes frame;  // Comes from node 1's NIC.
  DropReason want;
};

class Drops : public testing::TestWithParam<DropCase> {};

TEST_P(Drops, ForTheReason) {
  EXPECT_EQ(Decide(Table(), 0, GetParam().frame), Decision(Drop{GetParam().want}));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Drops,
    testing::Values(
        DropCase{"EmptyFrame", {}, DropReason::kMalformed},
        DropCase{"TruncatedPacket", Cut(V4Frame(kOne, "10.0.64.1", "10.0.64.2"), 3),
                 DropReason::kMalformed},
        DropCase{"OtherEthertype", Ethernet(kAll, kOne, "88cc") + Hex("0207"),
                 DropReason::kEthertype},
        DropCase{"VlanTag", Ethernet(kFabric, kOne, "8100") + Hex("0001 0800"),
                 DropReason::kEthertype},
        DropCase{"ForeignMac", V4Frame(kTwo, "10.0.64.1", "10.0.64.2"), DropReason::kSourceMac},
        DropCase{"ForeignMacOtherEthertype", Ethernet(kAll, kTwo, "88cc"), DropReason::kSourceMac},
        DropCase{"ForeignMacInArpFrame", ArpFrame("0001", kTwo, kOne, "10.0.0.4", "10.0.0.1"),
                 DropReason::kSourceMac},
        DropCase{"ForeignArpSenderMac", ArpFrame("0001", kOne, kTwo, "10.0.0.4", "10.0.0.1"),
                 DropReason::kSourceMac},
        DropCase{"ForeignArpSenderAddress", ArpFrame("0001", kOne, kOne, "10.0.0.5", "10.0.0.1"),
                 DropReason::kSourceAddress},
        DropCase{"ArpProbe", ArpFrame("0001", kOne, kOne, "0.0.0.0", "10.0.0.4"),
                 DropReason::kSourceAddress},
        DropCase{"ArpReplyNobodyAskedFor", ArpFrame("0002", kOne, kOne, "10.0.0.4", "10.0.0.5"),
                 DropReason::kArpReply},
        DropCase{"AddressOfAnotherNic", V4Frame(kOne, "10.0.64.2", "10.0.0.5"),
                 DropReason::kSourceAddress},
        DropCase{"AddressNobodyHolds", V4Frame(kOne, "172.17.0.2", "10.0.0.5"),
                 DropReason::kSourceAddress},
        DropCase{"V6AddressOfAnotherNic", V6Frame(kOne, "fd00:64::2", "fd00::5"),
                 DropReason::kSourceAddress},
        DropCase{"V6LinkLocalPacket", V6Frame(kOne, "fe80::1", "fd00::5"),
                 DropReason::kSourceAddress},
        DropCase{"V6DuplicateAddressDetection", SolicitationFrame("::", "fd00::4"),
                 DropReason::kSourceAddress},
        DropCase{"V6SolicitationInAForeignName", SolicitationFrame("fd00::5", "fd00::1"),
                 DropReason::kSourceAddress},
        DropCase{"NobodyHoldsTheDestination", V4Frame(kOne, "10.0.64.1", "10.0.64.77"),
                 DropReason::kUnknownDestination},
        DropCase{"Broadcast", V4Frame(kOne, "10.0.0.4", "255.255.255.255"),
                 DropReason::kUnknownDestination},
        DropCase{"V6Multicast", V6Frame(kOne, "fd00::4", "ff02::1"),
                 DropReason::kUnknownDestination}),
    [](const auto& test) { return test.param.name; });

TEST(Decide, EveryDropReasonHasItsOwnNameAndLine) {
  std::string text = Counters{}.ToText();
  for (const DropReason reason : kDropReasons) {
    const std::string line = "dropped_" + std::string(NameOf(reason)) + "=0\n";
    const size_t at = text.find(line);
    ASSERT_NE(at, std::string::npos) << line;
    text.erase(at, line.size());
  }
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("dropped_")));
}

TEST(Counters, CountsByReason) {
  Counters counters;
  counters.forwarded = 12;
  counters.DroppedFor(DropReason::kSourceMac) += 3;
  EXPECT_THAT(counters.ToText(), testing::HasSubstr("forwarded=12\n"));
  EXPECT_THAT(counters.ToText(), testing::HasSubstr("dropped_source_mac=3\n"));
}

struct ForwardCase {
  std::string name;
  size_t from;
  FrameBytes frame;
  size_t to;
  FrameBytes want;
};

class Forwards : public testing::TestWithParam<ForwardCase> {};

TEST_P(Forwards, ToTheHolderBehindNewMacs) {
  const ForwardCase& c = GetParam();
  EXPECT_EQ(Decide(Table(), c.from, c.frame), Decision(Forward{c.to, c.want}));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Forwards,
    testing::Values(ForwardCase{"PodToPod", 0, V4Frame(kOne, "10.0.64.1", "10.0.64.2"), 1,
                                Ethernet(kTwo, kFabric, "0800") + Ipv4("10.0.64.1", "10.0.64.2")},
                    ForwardCase{"PodToNode", 1, V4Frame(kTwo, "10.0.64.2", "10.0.0.4"), 0,
                                Ethernet(kOne, kFabric, "0800") + Ipv4("10.0.64.2", "10.0.0.4")},
                    ForwardCase{"BackToTheSameNic", 0, V4Frame(kOne, "10.0.0.4", "10.0.64.1"), 0,
                                Ethernet(kOne, kFabric, "0800") + Ipv4("10.0.0.4", "10.0.64.1")},
                    ForwardCase{
                        "V6", 0, V6Frame(kOne, "fd00:64::1", "fd00:64::2"), 1,
                        Ethernet(kTwo, kFabric, "86dd") + Ipv6("fd00:64::1", "fd00:64::2")}),
    [](const auto& test) { return test.param.name; });

TEST(Decide, AnswersEveryArpRequestItself) {
  for (const std::string target : {"10.0.0.1", "10.0.0.5", "10.0.64.2", "192.0.2.9", "10.0.0.4"}) {
    const Decision want =
        Reply{Ethernet(kOne, kFabric, "0806") + Hex("0001 0800 06 04 0002") + Wire(Mac(kFabric)) +
              Wire(Ip(target)) + Wire(Mac(kOne)) + Wire(Ip("10.0.64.1"))};
    EXPECT_EQ(Decide(Table(), 0, ArpFrame("0001", kOne, kOne, "10.0.64.1", target)), want)
        << target;
  }
}

TEST(Decide, AnswersNeighbourSolicitationsOfNodesAndOfTheirRouters) {
  for (const std::string source : {"fd00::4", "fd00:64::1", "fe80::ff:fe00:1"}) {
    const Decision decision = Decide(Table(), 0, SolicitationFrame(source, "fd00::1"));
    const auto* reply = std::get_if<Reply>(&decision);
    ASSERT_NE(reply, nullptr) << source;
    const FrameBytes start = Ethernet(kOne, kFabric, "86dd") + Hex("60000000 0020 3a ff") +
                             Wire(Ip("fd00::1")) + Wire(Ip(source)) + Hex("88 00");
    ASSERT_GE(reply->frame.size(), start.size());
    EXPECT_EQ(FrameBytes(reply->frame.begin(),
                         reply->frame.begin() + static_cast<std::ptrdiff_t>(start.size())),
              start);
  }
}

}  // namespace
}  // namespace spoke::fabric
