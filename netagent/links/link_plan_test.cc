#include "netagent/links/link_plan.h"

#include <functional>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/claims.h"
#include "netagent/links/testing/link_acts.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

AttachSpec Spec(uint32_t ordinal = 0, cni::Bandwidth bandwidth = {}) {
  return PlanAttach({"pod", "eth0"}, {A("10.1.0.5"), A("fd00::5")}, 1500,
                    {.ordinal = ordinal, .bandwidth = bandwidth})
      .value();
}

// Returns the plan without what only follows from another operation.
LinkOperations Found(LinkOperations plan) {
  std::erase_if(plan, [](const LinkOperation& operation) { return operation.found.empty(); });
  return plan;
}

std::string Texts(const LinkOperations& plan) {
  std::string text;
  for (const LinkOperation& operation : plan) text += operation.found + "\n";
  return text;
}

// One thing that went wrong, and the one difference that has to be found.
struct Case {
  std::string name;
  std::function<void(HostSide&, PodSide&)> damage;
  Part part;
  std::string text;
  std::optional<ip::Address> address = std::nullopt;
};

class PlanLinkTest : public testing::TestWithParam<Case> {};

TEST_P(PlanLinkTest, FindsExactlyWhatDiffers) {
  const AttachSpec spec = Spec(
      0, {.ingress_rate = units::BitRate(8'000'000), .egress_rate = units::BitRate(4'000'000)});
  HostSide host = BuiltHostSide(spec);
  PodSide pod = BuiltPodSide(spec);
  ASSERT_EQ(Texts(PlanLink(spec, {host, pod})), "");
  GetParam().damage(host, pod);
  const LinkOperations found = Found(PlanLink(spec, {host, pod}));
  ASSERT_EQ(found.size(), 1U) << Texts(found);
  EXPECT_EQ(found[0].part, GetParam().part);
  EXPECT_THAT(found[0].found, HasSubstr(GetParam().text));
  EXPECT_EQ(found[0].address, GetParam().address);
}

// The law: a plan that was applied leaves nothing to plan.
TEST_P(PlanLinkTest, ReachesWhatTheSpecSaysInOneRound) {
  const AttachSpec spec = Spec(
      0, {.ingress_rate = units::BitRate(8'000'000), .egress_rate = units::BitRate(4'000'000)});
  HostSide host = BuiltHostSide(spec);
  PodSide pod = BuiltPodSide(spec);
  GetParam().damage(host, pod);
  for (const LinkOperation& operation : PlanLink(spec, {host, pod})) {
    ApplyTo(spec, operation, host, pod);
  }
  // Only the pod can put the name of its own link right.
  EXPECT_EQ(Texts(PlanLink(spec, {host, pod})).empty(), GetParam().part != Part::kPodLink);
}

// The same law without the pod's side: only what is on the node is planned.
TEST_P(PlanLinkTest, WithoutThePodNothingIsSaidOfIt) {
  const AttachSpec spec = Spec(
      0, {.ingress_rate = units::BitRate(8'000'000), .egress_rate = units::BitRate(4'000'000)});
  HostSide host = BuiltHostSide(spec);
  PodSide pod = BuiltPodSide(spec);
  GetParam().damage(host, pod);
  for (const LinkOperation& operation : Found(PlanLink(spec, {.host = host}))) {
    EXPECT_FALSE(IsInPod(operation.part)) << operation.found;
    EXPECT_EQ(operation.part, GetParam().part) << operation.found;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PlanLinkTest,
    testing::Values(
        Case{"HostLinkGone", [](HostSide& h, PodSide&) { h = {}; }, Part::kHostLink,
             "is gone from the node"},
        Case{"HostDown", [](HostSide& h, PodSide&) { h.up = false; }, Part::kHostUp,
             "is down on the node"},
        Case{"HostMac", [](HostSide& h, PodSide&) { h.mac.octets[5] ^= 1U; }, Part::kHostMac,
             "on the node, not 0a:"},
        Case{"HostMtu", [](HostSide& h, PodSide&) { h.mtu = 1400; }, Part::kHostMtu,
             "MTU 1400 on the node, but 1500 in the pod"},
        Case{"HostRpFilter", [](HostSide& h, PodSide&) { h.settings[8] = 0; }, Part::kHostSetting,
             "rp_filter is 0, not 1"},
        Case{"HostProxyArp", [](HostSide& h, PodSide&) { h.settings[3] = 1; }, Part::kHostSetting,
             "proxy_arp is 1, not 0"},
        Case{"HostAddressGeneration", [](HostSide& h, PodSide&) { h.address_generation = 0; },
             Part::kHostSetting, "makes itself IPv6 addresses (mode 0)"},
        Case{"HostAcceptRa", [](HostSide& h, PodSide&) { h.accept_ra = 2; }, Part::kHostRouters,
             "accept_ra is 2, not 0"},
        Case{"HostNeighbourV6", [](HostSide& h, PodSide&) { h.neighbours.pop_back(); },
             Part::kHostNeighbour, "neighbour entry of fd00::5 on spk", A("fd00::5")},
        Case{"HostNeighbourMac", [](HostSide& h, PodSide&) { h.neighbours[0].mac.octets[5] ^= 1U; },
             Part::kHostNeighbour, "neighbour entry of 10.1.0.5 on spk", A("10.1.0.5")},
        Case{"HostRoute", [](HostSide& h, PodSide&) { h.routes.erase(h.routes.begin()); },
             Part::kHostRoute, "route to 10.1.0.5 by spk", A("10.1.0.5")},
        Case{"IngressLimitGone", [](HostSide& h, PodSide&) { h.limit.reset(); },
             Part::kIngressLimit, "is not limited, not 8000000 bit/s"},
        Case{"IngressLimitOther", [](HostSide& h, PodSide&) { h.limit = units::BitRate(1); },
             Part::kIngressLimit, "is 1 bit/s, not 8000000 bit/s"},
        Case{"PodRenamed", [](HostSide&, PodSide& p) { p.name = "eth9"; }, Part::kPodLink,
             "is called eth9 in the pod, not eth0"},
        Case{"PodDown", [](HostSide&, PodSide& p) { p.up = false; }, Part::kPodUp,
             "link eth0 is down in the pod"},
        Case{"PodAddressV6", [](HostSide&, PodSide& p) { p.addresses.pop_back(); },
             Part::kPodAddress, "address fd00::5 is gone from eth0 in the pod", A("fd00::5")},
        Case{"PodNeighbour",
             [](HostSide&, PodSide& p) { p.neighbours.erase(p.neighbours.begin()); },
             Part::kPodNeighbour, "gateway 169.254.1.1 on eth0 is gone", A("10.1.0.5")},
        Case{"PodNeighbourMac", [](HostSide&, PodSide& p) { p.neighbours[1].mac.octets[5] ^= 1U; },
             Part::kPodNeighbour, "gateway fe80::1 on eth0 has MAC", A("fd00::5")},
        Case{"PodDefaultRoute", [](HostSide&, PodSide& p) { p.routes.pop_back(); }, Part::kPodRoute,
             "default route by fe80::1", A("fd00::5")},
        Case{"PodDefaultRouteElsewhere",
             [](HostSide&, PodSide& p) { p.routes[1].gateway = A("192.0.2.1"); }, Part::kPodRoute,
             "default route by 169.254.1.1", A("10.1.0.5")},
        Case{"PodGatewayRoute", [](HostSide&, PodSide& p) { p.routes.erase(p.routes.begin()); },
             Part::kPodRoute, "route to the gateway 169.254.1.1", A("10.1.0.5")}),
    [](const auto& test) { return test.param.name; });

std::vector<Part> PartsOf(const LinkOperations& plan) {
  std::vector<Part> parts;
  for (const LinkOperation& operation : plan) parts.push_back(operation.part);
  return parts;
}

TEST(PlanLink, ALinkThatIsNotThereIsMadeWithAllThatBelongsToIt) {
  AttachSpec spec =
      PlanAttach({"pod", "net1"}, {A("fd00::5"), A("10.1.0.5")}, 1500,
                 {.ordinal = 1, .bandwidth = {.ingress_rate = units::BitRate(8'000'000)}})
          .value();
  spec.source_tables = {{A("10.1.0.5"), 84'000'007}};
  const LinkOperations plan = PlanLink(spec, {});
  EXPECT_THAT(PartsOf(plan),
              ElementsAre(Part::kHostLink, Part::kHostSetting, Part::kHostRouters,
                          Part::kIngressLimit, Part::kHostUp, Part::kHostNeighbour,
                          Part::kHostNeighbour, Part::kHostRule, Part::kHostRoute, Part::kHostRoute,
                          Part::kPodAddress, Part::kPodNeighbour, Part::kPodRoute, Part::kPodRule,
                          Part::kPodAddress, Part::kPodNeighbour, Part::kPodRoute, Part::kPodRule));
  // IPv4 comes first in the pod: where IPv6 is switched off, only later requests are refused.
  EXPECT_EQ(plan[9].address, A("10.1.0.5"));
  EXPECT_EQ(Texts(PlanLink(spec, {BuiltHostSide(spec), BuiltPodSide(spec)})), "");
}

TEST(PlanLink, ForNoLinkItRemovesWhatLeadsToTheLinkAndTheLink) {
  AttachSpec spec = Spec();
  spec.source_tables = {{A("10.1.0.5"), 84'000'007}};
  const AttachSpec none = NoLink(spec.host_link);
  const LinkOperations plan = PlanLink(none, {.host = BuiltHostSide(spec)});
  EXPECT_THAT(PartsOf(plan),
              ElementsAre(Part::kHostRoute, Part::kHostRoute, Part::kHostLink, Part::kHostRule));
  EXPECT_EQ(plan[3].table, 84'000'007U);
  // What is remembered may be less than what there is.
  EXPECT_THAT(PartsOf(PlanLink(none, {})), ElementsAre(Part::kHostLink));
}

// What a pod without IPv6 says to all nodes, or to routers, the node does not hear.
TEST(PlanLink, APodWithoutIpv6HasAHostLinkWithoutIt) {
  const AttachSpec spec = PlanAttach({"pod", "eth0"}, {A("10.1.0.5")}, 1500, {}).value();
  EXPECT_EQ(RouterSettingOf(spec).name, "disable_ipv6");
  HostSide host = BuiltHostSide(spec);
  const PodSide pod = BuiltPodSide(spec);
  EXPECT_EQ(host.disable_ipv6, 1U);
  host.accept_ra = 2;
  EXPECT_EQ(Texts(PlanLink(spec, {host, pod})), "");
  host.disable_ipv6 = 0;
  EXPECT_THAT(Texts(PlanLink(spec, {host, pod})), HasSubstr("disable_ipv6 is 0, not 1"));
  // As earlier agents left it.
  host.accept_ra = 0;
  EXPECT_EQ(Texts(PlanLink(spec, {host, pod})), "");
  // Of a kernel without IPv6 there is nothing to say.
  host.accept_ra = host.disable_ipv6 = std::nullopt;
  EXPECT_EQ(Texts(PlanLink(spec, {host, pod})), "");
}

TEST(PlanLink, WhatOthersAddedIsNoDifference) {
  const AttachSpec spec = Spec();
  HostSide host = BuiltHostSide(spec);
  PodSide pod = BuiltPodSide(spec);
  host.neighbours.push_back({A("10.1.0.99"), {}});
  host.routes.push_back(A("10.1.0.99"));
  host.limit = units::BitRate(1);
  pod.addresses.push_back(A("192.0.2.7"));
  pod.neighbours.push_back({A("192.0.2.1"), {}});
  pod.routes.push_back({ip::Prefix::Parse("192.0.2.0/24").value(), std::nullopt, 254});
  pod.rules.push_back({ip::Prefix::Parse("192.0.2.0/24").value(), 7});
  EXPECT_EQ(Texts(PlanLink(spec, {host, pod})), "");
}

TEST(PlanLink, MacAndMtuThatALaterPluginGaveThePodAreTheOnesToFollow) {
  const AttachSpec spec = Spec();
  HostSide host = BuiltHostSide(spec);
  PodSide pod = BuiltPodSide(spec);
  const ip::MacAddress tuned{{0x0E, 1, 2, 3, 4, 5}};
  pod.mac = tuned;
  pod.mtu = 1400;
  for (const LinkOperation& operation : PlanLink(spec, {host, pod})) {
    ApplyTo(spec, operation, host, pod);
  }
  EXPECT_EQ(host.mtu, 1400U);
  for (const PermanentNeighbour& entry : host.neighbours) EXPECT_EQ(entry.mac, tuned);
  EXPECT_EQ(Texts(PlanLink(spec, {host, pod})), "");
}

TEST(PlanLink, ThePodsMacIsTheOneItsNeighbourEntriesMustHave) {
  const AttachSpec spec = Spec();
  const HostSide host = BuiltHostSide(spec);
  PodSide pod = BuiltPodSide(spec);
  pod.mac.octets[5] ^= 1U;
  // Packets for the pod would be dropped as somebody else's.
  const auto found = PlanLink(spec, {host, pod});
  ASSERT_EQ(found.size(), 2U) << Texts(found);
  EXPECT_EQ(found[0].part, Part::kHostNeighbour);
  EXPECT_EQ(found[1].address, A("fd00::5"));
  EXPECT_EQ(Texts(PlanLink(spec, {.host = host})), "");
}

TEST(PlanLink, ALinkOfSomebodyElseUnderThePodLinksNameIsNamed) {
  const AttachSpec spec = Spec();
  PodSide pod = BuiltPodSide(spec);
  pod.name = "eth1";
  pod.impostor = "dummy";
  EXPECT_THAT(Texts(PlanLink(spec, {BuiltHostSide(spec), pod})),
              HasSubstr("link eth0 of the pod is a dummy of somebody else's"));
}

TEST(PlanLink, ALaterLinkHasARuleAndATableOfItsOwn) {
  const AttachSpec spec = Spec(/*ordinal=*/1);
  const HostSide host = BuiltHostSide(spec);
  const PodSide built = BuiltPodSide(spec);
  EXPECT_EQ(Texts(PlanLink(spec, {host, built})), "");

  PodSide pod = built;
  pod.rules.erase(pod.rules.begin());
  auto found = PlanLink(spec, {host, pod});
  ASSERT_EQ(found.size(), 1U) << Texts(found);
  EXPECT_EQ(found[0].part, Part::kPodRule);
  EXPECT_THAT(found[0].found, HasSubstr("rule for what comes from 10.1.0.5"));

  pod = built;
  pod.routes.clear();
  pod.routes.push_back({ip::Prefix::Parse("0.0.0.0/0").value(), claims::kGatewayV4, 254});
  found = PlanLink(spec, {host, pod});
  EXPECT_THAT(Texts(found), HasSubstr("default route by 169.254.1.1"));
  EXPECT_THAT(Texts(found), HasSubstr("default route by fe80::1"));
}

TEST(PlanLink, AnAddressOfAnotherNicHasARuleOnTheNode) {
  AttachSpec spec = Spec();
  spec.source_tables = {{A("10.1.0.5"), 84'000'007}};
  HostSide host = BuiltHostSide(spec);
  EXPECT_EQ(Texts(PlanLink(spec, {.host = host})), "");
  host.rules[0].table = 7;
  const auto found = PlanLink(spec, {.host = host});
  ASSERT_EQ(found.size(), 1U) << Texts(found);
  EXPECT_EQ(found[0].part, Part::kHostRule);
  EXPECT_THAT(found[0].found, HasSubstr("from 10.1.0.5 into table 84000007 is gone"));
}

TEST(PlanLink, ASettingThatTheKernelDoesNotHaveIsNotJudged) {
  const AttachSpec spec = Spec();
  HostSide host = BuiltHostSide(spec);
  host.settings.resize(9);
  host.address_generation.reset();
  EXPECT_EQ(Texts(PlanLink(spec, {.host = host})), "");
}

TEST(Parts, EachHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(kLastPart); ++i) {
    names.insert(NameOf(static_cast<Part>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kLastPart) + 1);
  EXPECT_EQ(NameOf(Part::kHostRoute), "host_route");
  EXPECT_EQ(NameOf(Part::kPodRule), "pod_rule");
  EXPECT_FALSE(IsInPod(Part::kHostRoute));
  EXPECT_TRUE(IsInPod(Part::kPodLink));
}

}  // namespace
}  // namespace spoke::netagent
