#include "tests/fabric/decide.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fabric/counters.h"
#include "tests/fabric/frames_for_test.h"
#include "tests/fabric/icmp.h"

namespace spoke::fabric {
namespace {

constexpr std::string_view kOne = "02:00:00:00:00:01";
constexpr std::string_view kTwo = "02:00:00:00:00:02";
constexpr std::string_view kAll = "ff:ff:ff:ff:ff:ff";
constexpr std::string_view kFabric = "12:34:56:78:9a:bc";

// Returns a table: node 1 holds 10.0.0.4, fd00::4 and the pods 10.0.64.1 and fd00:64::1; node 2 the
// same with 5 and 2.
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

Decision Fate(size_t from, const FrameBytes& frame, const Rules& rules = {}) {
  return Decide(Table(), rules, {from, frame});
}

struct DropCase {
  std::string name;
  FrameBytes frame;  // The frame comes from node 1's NIC.
  DropReason want;
};

class Drops : public testing::TestWithParam<DropCase> {};

TEST_P(Drops, ForTheReason) {
  EXPECT_EQ(Fate(0, GetParam().frame), Decision(Drop{GetParam().want}));
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
                 DropReason::kVlanTag},
        DropCase{"PriorityTag",
                 Ethernet(kFabric, kOne, "8100") + Hex("e000 0800") + Ipv4("10.0.0.4", "10.0.0.5"),
                 DropReason::kVlanTag},
        DropCase{"ServiceTag", Ethernet(kFabric, kOne, "88a8") + Hex("0001 8100 0002 0800"),
                 DropReason::kVlanTag},
        DropCase{"BackToTheSender", V4Frame(kOne, "10.0.0.4", "10.0.64.1"),
                 DropReason::kBackToSender},
        DropCase{"BackToTheSameAddress", V4Frame(kOne, "10.0.64.1", "10.0.64.1"),
                 DropReason::kBackToSender},
        DropCase{"V6BackToTheSender", V6Frame(kOne, "fd00::4", "fd00:64::1"),
                 DropReason::kBackToSender},
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
  EXPECT_EQ(Fate(c.from, c.frame), Decision(Forward{c.to, c.want}));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Forwards,
    testing::Values(ForwardCase{"PodToPod", 0, V4Frame(kOne, "10.0.64.1", "10.0.64.2"), 1,
                                Ethernet(kTwo, kFabric, "0800") + Ipv4("10.0.64.1", "10.0.64.2")},
                    ForwardCase{"PodToNode", 1, V4Frame(kTwo, "10.0.64.2", "10.0.0.4"), 0,
                                Ethernet(kOne, kFabric, "0800") + Ipv4("10.0.64.2", "10.0.0.4")},
                    ForwardCase{
                        "V6", 0, V6Frame(kOne, "fd00:64::1", "fd00:64::2"), 1,
                        Ethernet(kTwo, kFabric, "86dd") + Ipv6("fd00:64::1", "fd00:64::2")}),
    [](const auto& test) { return test.param.name; });

// The nodes of the table are in one subnet of each family, its pods in another.
Rules TwoSubnets() {
  Rules rules;
  rules.gateways =
      Gateways::Build({ParseGateway("10.0.0.1/24").value(), ParseGateway("10.0.64.3/30").value(),
                       ParseGateway("fd00::1/64").value(), ParseGateway("fd00:64::3/126").value()})
          .value();
  rules.mtu = 40;
  return rules;
}

// Returns the frame with the byte at `at`, counted behind the Ethernet header, set to `value`.
FrameBytes With(FrameBytes bytes, size_t at, uint8_t value) {
  bytes[14 + at] = value;
  return bytes;
}

// Returns the frame with a TTL or hop limit of 1.
FrameBytes LastHopV4(FrameBytes bytes) { return With(std::move(bytes), 8, 1); }
FrameBytes LastHopV6(FrameBytes bytes) { return With(std::move(bytes), 7, 1); }

TEST(Decide, APacketBetweenSubnetsLosesAHop) {
  const Decision v4 = Fate(0, V4Frame(kOne, "10.0.0.4", "10.0.64.2"), TwoSubnets());
  // A checksum of zero is wrong, and stays so: 0x100 more.
  EXPECT_EQ(
      v4, Decision(Forward{
              1, With(With(Ethernet(kTwo, kFabric, "0800") + Ipv4("10.0.0.4", "10.0.64.2"), 8, 63),
                      10, 1)}));
  Rules wide = TwoSubnets();
  wide.mtu = 0;
  const Decision v6 = Fate(0, V6Frame(kOne, "fd00::4", "fd00:64::2"), wide);
  EXPECT_EQ(v6,
            Decision(Forward{
                1, With(Ethernet(kTwo, kFabric, "86dd") + Ipv6("fd00::4", "fd00:64::2"), 7, 63)}));
}

TEST(Decide, APacketWithinASubnetKeepsItsLastHop) {
  const FrameBytes frame = LastHopV4(V4Frame(kOne, "10.0.0.4", "10.0.0.5"));
  EXPECT_EQ(Fate(0, frame, TwoSubnets()),
            Decision(Forward{
                1, LastHopV4(Ethernet(kTwo, kFabric, "0800") + Ipv4("10.0.0.4", "10.0.0.5"))}));
}

struct RefuseCase {
  std::string name;
  FrameBytes frame;  // The frame comes from node 1's NIC.
  DropReason reason;
  IcmpError error;
  std::string from;  // The gateway that says so.
};

class Refuses : public testing::TestWithParam<RefuseCase> {};

TEST_P(Refuses, ByAnIcmpErrorOfTheSendersGateway) {
  const RefuseCase& c = GetParam();
  EXPECT_EQ(
      Fate(0, c.frame, TwoSubnets()),
      Decision(Refuse{c.reason, BuildIcmpError(c.error, c.frame, Ip(c.from), Mac(kFabric), 40)}));
  // Nobody can say so without a router.
  EXPECT_TRUE(std::holds_alternative<Drop>(Fate(0, c.frame)) ||
              std::holds_alternative<Forward>(Fate(0, c.frame)));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Refuses,
    testing::Values(RefuseCase{"NoRoute", V4Frame(kOne, "10.0.0.4", "192.0.2.1"),
                               DropReason::kUnknownDestination, IcmpError::kNoRoute, "10.0.0.1"},
                    RefuseCase{"NoHost", V4Frame(kOne, "10.0.0.4", "10.0.0.77"),
                               DropReason::kUnknownDestination, IcmpError::kNoHost, "10.0.0.1"},
                    RefuseCase{"APodsGateway", V4Frame(kOne, "10.0.64.1", "192.0.2.1"),
                               DropReason::kUnknownDestination, IcmpError::kNoRoute, "10.0.64.3"},
                    RefuseCase{"HopLimit", LastHopV4(V4Frame(kOne, "10.0.0.4", "10.0.64.2")),
                               DropReason::kHopLimit, IcmpError::kHopLimit, "10.0.0.1"},
                    RefuseCase{"NoRouteBeforeHopLimit",
                               LastHopV4(V4Frame(kOne, "10.0.0.4", "192.0.2.1")),
                               DropReason::kUnknownDestination, IcmpError::kNoRoute, "10.0.0.1"},
                    RefuseCase{"V6NoRoute", V6Frame(kOne, "fd00::4", "2001:db8::1"),
                               DropReason::kUnknownDestination, IcmpError::kNoRoute, "fd00::1"},
                    RefuseCase{"V6NoHost", V6Frame(kOne, "fd00:64::1", "fd00::77"),
                               DropReason::kUnknownDestination, IcmpError::kNoHost, "fd00:64::3"},
                    RefuseCase{"V6HopLimit", LastHopV6(V6Frame(kOne, "fd00::4", "fd00:64::2")),
                               DropReason::kHopLimit, IcmpError::kHopLimit, "fd00::1"},
                    RefuseCase{"V6TooBig", V6Frame(kOne, "fd00::4", "fd00:64::2"),
                               DropReason::kTooBig, IcmpError::kTooBig, "fd00::1"}),
    [](const auto& test) { return test.param.name; });

TEST(Decide, AGatewayOfTheNicSpeaksToAPodWithoutASubnet) {
  Rules rules;
  rules.gateways = Gateways::Build({ParseGateway("10.0.0.1/24").value()}).value();
  const FrameBytes frame = V4Frame(kOne, "10.0.64.1", "192.0.2.1");
  EXPECT_EQ(Fate(0, frame, rules),
            Decision(Refuse{
                DropReason::kUnknownDestination,
                BuildIcmpError(IcmpError::kNoRoute, frame, Ip("10.0.0.1"), Mac(kFabric), 0)}));
  // There is none of the other family.
  EXPECT_EQ(Fate(0, V6Frame(kOne, "fd00::4", "fd00::77"), rules),
            Decision(Drop{DropReason::kUnknownDestination}));
}

TEST(Decide, SaysNothingAboutErrors) {
  // The packet has ICMP, destination unreachable, in place of UDP.
  const FrameBytes frame = With(With(V4Frame(kOne, "10.0.0.4", "192.0.2.1"), 9, 1), 20, 3);
  EXPECT_EQ(Fate(0, frame, TwoSubnets()), Decision(Drop{DropReason::kUnknownDestination}));
}

TEST(Decide, GatewaysAnswerNothingButQuestionsAboutNeighbours) {
  for (const std::string gateway : {"10.0.0.1", "10.0.64.3"}) {
    EXPECT_EQ(Fate(0, V4Frame(kOne, "10.0.0.4", gateway), TwoSubnets()),
              Decision(Drop{DropReason::kToGateway}));
  }
  EXPECT_EQ(Fate(0, V6Frame(kOne, "fd00::4", "fd00::1"), TwoSubnets()),
            Decision(Drop{DropReason::kToGateway}));
  EXPECT_TRUE(std::holds_alternative<Reply>(
      Fate(0, SolicitationFrame("fe80::1", "fd00::1"), TwoSubnets())));
}

TEST(Decide, SaysNothingToMany) {
  for (const std::string destination : {"255.255.255.255", "224.0.0.1"}) {
    EXPECT_EQ(Fate(0, V4Frame(kOne, "10.0.0.4", destination), TwoSubnets()),
              Decision(Drop{DropReason::kUnknownDestination}));
  }
  for (const std::string destination : {"ff02::1", "fe80::1"}) {
    EXPECT_EQ(Fate(0, V6Frame(kOne, "fd00::4", destination), TwoSubnets()),
              Decision(Drop{DropReason::kUnknownDestination}));
  }
}

TEST(Decide, MeasuresPacketsAsTheyAreOnAWire) {
  Rules rules = TwoSubnets();
  rules.mtu = 28;
  const FrameBytes may_be_cut = V4Frame(kOne, "10.0.0.4", "10.0.0.5");
  const FrameBytes whole = With(may_be_cut, 6, 0x40);
  const auto fate = [&](const FrameBytes& frame, size_t segment_bytes) {
    return Decide(Table(), rules, {0, frame, segment_bytes});
  };
  EXPECT_TRUE(std::holds_alternative<Forward>(fate(whole, 0)));
  EXPECT_TRUE(std::holds_alternative<Forward>(fate(whole, 28)));
  EXPECT_EQ(fate(whole, 29), Decision(Refuse{DropReason::kTooBig,
                                             BuildIcmpError(IcmpError::kTooBig, whole,
                                                            Ip("10.0.0.1"), Mac(kFabric), 28)}));
  EXPECT_EQ(fate(may_be_cut, 29), Decision(Drop{DropReason::kTooBig}));
  rules.mtu = 27;
  EXPECT_TRUE(std::holds_alternative<Refuse>(fate(whole, 0)));
  EXPECT_TRUE(std::holds_alternative<Forward>(fate(whole, 20)));
}

// Returns what a tagged frame from node 1's NIC becomes, where tags are delivered.
Decision TaggedFate(const FrameBytes& frame) {
  Rules rules = TwoSubnets();
  rules.delivers_tags = true;
  return Fate(0, frame, rules);
}

TEST(Decide, DeliversTagsAsTheyAreWhereAsked) {
  const std::string tags[] = {"8100 0064 0800", "8100 e000 0800", "88a8 0001 8100 0002 0800"};
  for (const std::string& tag : tags) {
    // The packet is of somebody else, by somebody else, with its last hop: a leak is to be seen.
    const FrameBytes packet = Hex(tag) + Ipv4("10.9.9.9", "10.0.64.2");
    EXPECT_EQ(TaggedFate(Wire(Mac(kFabric)) + Wire(Mac("02:00:00:00:00:77")) + packet),
              Decision(Forward{1, Wire(Mac(kTwo)) + Wire(Mac(kFabric)) + packet, true}));
  }
  const FrameBytes arp = Hex("8100 0064 0806") + Arp("0001", kOne, "10.0.0.4", "10.0.0.5");
  EXPECT_EQ(TaggedFate(Wire(Mac(kAll)) + Wire(Mac(kOne)) + arp),
            Decision(Forward{1, Wire(Mac(kTwo)) + Wire(Mac(kFabric)) + arp, true}));
}

TEST(Decide, DropsTagsThatAreForNobodyElse) {
  const FrameBytes start = Wire(Mac(kFabric)) + Wire(Mac(kOne)) + Hex("8100 0064");
  EXPECT_EQ(TaggedFate(start + Hex("0800") + Ipv4("10.0.0.4", "10.0.64.1")),
            Decision(Drop{DropReason::kBackToSender}));
  EXPECT_EQ(TaggedFate(start + Hex("0800") + Ipv4("10.0.0.4", "192.0.2.1")),
            Decision(Drop{DropReason::kUnknownDestination}));
  EXPECT_EQ(TaggedFate(start + Hex("88cc")), Decision(Drop{DropReason::kEthertype}));
  EXPECT_EQ(TaggedFate(start + Hex("0800 45")), Decision(Drop{DropReason::kMalformed}));
}

TEST(Decide, AnswersEveryArpRequestItself) {
  for (const std::string target : {"10.0.0.1", "10.0.0.5", "10.0.64.2", "192.0.2.9", "10.0.0.4"}) {
    const Decision want =
        Reply{Ethernet(kOne, kFabric, "0806") + Hex("0001 0800 06 04 0002") + Wire(Mac(kFabric)) +
              Wire(Ip(target)) + Wire(Mac(kOne)) + Wire(Ip("10.0.64.1"))};
    EXPECT_EQ(Fate(0, ArpFrame("0001", kOne, kOne, "10.0.64.1", target)), want) << target;
  }
}

TEST(Decide, AnswersNeighbourSolicitationsOfNodesAndOfTheirRouters) {
  for (const std::string source : {"fd00::4", "fd00:64::1", "fe80::ff:fe00:1"}) {
    const Decision decision = Fate(0, SolicitationFrame(source, "fd00::1"));
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
