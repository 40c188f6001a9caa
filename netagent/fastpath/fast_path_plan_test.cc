#include "netagent/fastpath/fast_path_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ip::Address A(const std::string& text) { return ip::Address::Parse(text).value(); }
ip::Prefix P(const std::string& text) { return ip::Prefix::Parse(text).value(); }

ClassMap Classes(policy::ClusterNetwork network) {
  Policy policy{.version = 1};
  policy.entries["ClusterNetwork/main"] = {
      .key = "ClusterNetwork/main", .bytes = {}, .value = std::move(network)};
  return ClassMap::Compile(policy, {}).value();
}

// Returns the network of the node 10.0.1.4/24 on device 2, with a gateway.
NodeNetwork Network() {
  return {.uplink = "nic0",
          .uplink_index = 2,
          .uplink_mtu = 1500,
          .addresses = {{A("10.0.1.4"), 24}, {A("127.0.0.1"), 8}, {A("fd00::4"), 64}},
          .routes = {{.destination = P("0.0.0.0/0"), .device = 2, .gateway = A("10.0.1.1")},
                     {.destination = P("10.0.1.0/24"), .device = 2},
                     {.destination = P("::/0"), .device = 2, .gateway = A("fe80::1")},
                     {.destination = P("fd00::/64"), .device = 2}}};
}

TEST(PlanHopsTest, FollowsTheMainTableInsideTheCluster) {
  EXPECT_THAT(
      PlanHops(Classes({.cluster = policy::Blocks({"10.0.0.0/16"})}), Network(), ip::Family::kV4),
      ElementsAre(FastHop{A("10.0.0.0"), A("10.0.0.255"), A("10.0.1.1")},
                  FastHop{A("10.0.1.1"), A("10.0.1.3"), std::nullopt},
                  FastHop{A("10.0.1.5"), A("10.0.1.254"), std::nullopt},
                  FastHop{A("10.0.2.0"), A("10.0.255.255"), A("10.0.1.1")}));
  EXPECT_THAT(
      PlanHops(Classes({.cluster = policy::Blocks({"fd00::/62"})}), Network(), ip::Family::kV6),
      ElementsAre(FastHop{A("fd00::1"), A("fd00::3"), std::nullopt},
                  FastHop{A("fd00::5"), A("fd00::ffff:ffff:ffff:ffff"), std::nullopt},
                  FastHop{A("fd00:0:0:1::"), A("fd00:0:0:3:ffff:ffff:ffff:ffff"), A("fe80::1")}));
}

TEST(PlanHops, WhatMustMeetTheRulesIsInNone) {
  const auto all =
      PlanHops(Classes({.cluster = policy::Blocks({"10.0.0.0/16"})}), Network(), ip::Family::kV4);
  const ip::Address gateway = A("10.0.7.7");
  const auto hops = PlanHops(Classes({.cluster = policy::Blocks({"10.0.0.0/16"})}), Network(),
                             ip::Family::kV4, {gateway});
  EXPECT_EQ(hops.size(), all.size() + 1);
  for (const FastHop& hop : hops) EXPECT_FALSE(hop.first <= gateway && gateway <= hop.last);
}

TEST(PlanHopsTest, LeavesServicesAndOtherClassesAlone) {
  EXPECT_THAT(PlanHops(Classes({.cluster = policy::Blocks({"10.8.0.0/13"}),
                                .hub = policy::Blocks({"10.9.0.0/16"}),
                                .services = policy::Blocks({"10.8.0.0/17"})}),
                       Network(), ip::Family::kV4),
              ElementsAre(FastHop{A("10.8.128.0"), A("10.8.255.255"), A("10.0.1.1")},
                          FastHop{A("10.10.0.0"), A("10.15.255.255"), A("10.0.1.1")}));
}

TEST(PlanHopsTest, LeavesAloneWhatIsRoutedElsewhere) {
  NodeNetwork network = Network();
  network.routes.push_back({.destination = P("10.4.0.0/16"), .device = 9});
  // The route is unreachable.
  network.routes.push_back({.destination = P("10.5.0.0/16"), .device = 0});
  // The better metric wins, whatever the order.
  network.routes.push_back(
      {.destination = P("10.6.0.0/16"), .metric = 5, .device = 2, .gateway = A("10.0.1.9")});
  network.routes.push_back({.destination = P("10.6.0.0/16"), .metric = 9, .device = 9});
  // This route is of our own, which pods here have.
  network.routes.push_back({.destination = P("10.7.0.1/32"), .device = 77, .ours = true});
  EXPECT_THAT(
      PlanHops(Classes({.cluster = policy::Blocks({"10.4.0.0/14"})}), network, ip::Family::kV4),
      ElementsAre(FastHop{A("10.6.0.0"), A("10.6.255.255"), A("10.0.1.9")},
                  FastHop{A("10.7.0.0"), A("10.7.255.255"), A("10.0.1.1")}));
}

TEST(PlanHopsTest, NeverTakesLoopbackLinkLocalOrMulticast) {
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    for (const FastHop& hop :
         PlanHops(Classes({.cluster =
                               policy::Blocks({"0.0.0.0/0", "::/0", "169.254.0.0/17", "127.0.0.0/9",
                                               "224.0.0.0/5", "fe80::/11", "ff02::/16"})}),
                  Network(), family)) {
      for (const char* never :
           {"127.0.0.1", "169.254.1.1", "224.0.0.1", "255.255.255.255", "0.0.0.0", "::", "::1",
            "fe80::1", "ff02::1", "10.0.1.4", "10.0.1.255", "10.0.1.0", "fd00::4"}) {
        EXPECT_FALSE(hop.first <= A(never) && A(never) <= hop.last) << never;
      }
    }
  }
}

TEST(FastPathPlanTest, KnowsWhichAddressesAreThisNodes) {
  NodeNetwork network = Network();
  network.routes.push_back({.destination = P("10.0.1.7/32"), .device = 77, .ours = true});
  // The address is idle.
  network.routes.push_back({.destination = P("10.0.1.8/32"), .device = 0, .ours = true});
  network.routes.push_back({.destination = P("fd00::7/128"), .device = 77, .ours = true});
  network.routes.push_back({.destination = P("10.0.9.9/32"), .device = 9});
  const auto plan =
      FastPathPlan::Plan({}, Classes({.cluster = policy::Blocks({"10.0.0.0/8"})}), network);
  EXPECT_THAT(plan.Local(), ElementsAre(A("10.0.1.4"), A("10.0.1.7"), A("10.0.1.8"), A("127.0.0.1"),
                                        A("fd00::4"), A("fd00::7")));
}

TEST(FastPathPlanTest, SaysWhyItIsOff) {
  const ClassMap classes = Classes({.cluster = policy::Blocks({"10.0.0.0/8"})});
  EXPECT_EQ(FastPathPlan::Plan({}, classes, Network()).state(), "on");
  EXPECT_THAT(FastPathPlan::Plan({.wanted = false}, classes, Network()).state(),
              HasSubstr("configuration"));
  EXPECT_THAT(FastPathPlan::Plan({.missing = "bpf"}, classes, Network()).state(),
              HasSubstr("lacks bpf"));
  EXPECT_FALSE(FastPathPlan::Plan({}, Classes({}), Network()).on());
  NodeNetwork other = Network();
  other.foreign_rules = true;
  EXPECT_FALSE(FastPathPlan::Plan({}, classes, other).on());
  other = Network();
  other.uplink_index = 0;
  EXPECT_THAT(FastPathPlan::Plan({}, classes, other).state(), HasSubstr("nic0"));
}

TEST(FastPathPlanTest, IsOffWhereTheClusterIsInTooManyPieces) {
  NodeNetwork network = Network();
  for (uint32_t i = 0; i <= kMaxFastHops; ++i) {
    network.addresses.push_back({ip::Address::V4(0x0A100000 + 4 * i), 32});
  }
  const auto plan =
      FastPathPlan::Plan({}, Classes({.cluster = policy::Blocks({"10.16.0.0/16"})}), network);
  EXPECT_FALSE(plan.on());
  EXPECT_THAT(plan.state(), HasSubstr("pieces"));
  EXPECT_TRUE(plan.Table().hops.empty());
}

TEST(FastPathPlanTest, TakesOnlyPodsWhosePacketsItMayForward) {
  const auto plan =
      FastPathPlan::Plan({}, Classes({.cluster = policy::Blocks({"10.0.0.0/8"})}), Network());
  const TrafficPod pod{
      .host_link = "spk1", .host_index = 7, .addresses = {A("10.0.1.7")}, .mtu = 1500};
  EXPECT_EQ(plan.WhyNot(pod, false), "");
  EXPECT_THAT(plan.WhyNot(pod, true), HasSubstr("policy"));
  TrafficPod jumbo = pod;
  jumbo.mtu = 9000;
  EXPECT_THAT(plan.WhyNot(jumbo, false), HasSubstr("9000"));
  TrafficPod shaped = pod;
  shaped.shaped = true;
  EXPECT_THAT(plan.WhyNot(shaped, false), HasSubstr("limited"));
  TrafficPod second = pod;
  second.on_first_nic = false;
  EXPECT_NE(plan.WhyNot(second, false), "");
}

}  // namespace
}  // namespace spoke::netagent
