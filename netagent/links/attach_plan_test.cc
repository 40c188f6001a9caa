#include "netagent/links/attach_plan.h"

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

const ip::Address kV4 = ip::Address::Parse("10.1.2.3").value();
const ip::Address kV6 = ip::Address::Parse("fd00::5").value();

TEST(HostLinkName, FitsTheKernelAndDependsOnBothPartsOfTheKey) {
  const std::string name = HostLinkName({std::string(200, 'a'), "eth0"});
  EXPECT_EQ(name.size(), 15U);
  EXPECT_EQ(name.substr(0, 3), "spk");
  EXPECT_NE(HostLinkName({"ab", "c"}), HostLinkName({"a", "bc"}));
  EXPECT_NE(HostLinkName({"a", "eth0"}), HostLinkName({"a", "eth1"}));
}

TEST(HostLinkName, NeverChanges) {
  // A DEL by a newer agent must find what an older one made.
  EXPECT_EQ(HostLinkName({"c0ffee", "eth0"}), HostLinkName({"c0ffee", "eth0"}));
  EXPECT_EQ(HostLinkName({"c0ffee", "eth0"}), "spk2ba21fd802e7");
}

TEST(PlanAttach, DerivesUnicastLocalMacsThatDiffer) {
  const auto spec = PlanAttach({"c0ffee", "eth0"}, {kV4, kV6}, 1500);
  ASSERT_TRUE(spec.ok());
  EXPECT_NE(spec->host_mac, spec->pod_mac);
  for (const auto& mac : {spec->host_mac, spec->pod_mac}) {
    EXPECT_FALSE(mac.is_multicast());
    EXPECT_EQ(mac.octets[0] & 2, 2);
  }
  EXPECT_EQ(*PlanAttach({"c0ffee", "eth0"}, {kV4, kV6}, 1500), *spec);
}

TEST(PlanAttach, TakesWhatWasAskedFor) {
  const auto mac = ip::MacAddress::Parse("02:00:5e:00:53:01").value();
  const AttachOptions options{.pod_mac = mac,
                              .mtu = 1400,
                              .ordinal = 1,
                              .bandwidth = {.ingress_rate = units::BitRate(1'000'000)}};
  const AttachSpec spec = PlanAttach({"c0ffee", "eth0"}, {kV4}, 1500, options).value();
  EXPECT_EQ(spec.pod_mac, mac);
  EXPECT_EQ(spec.mtu, 1400U);
  EXPECT_EQ(spec.ordinal, 1U);
  EXPECT_EQ(spec.bandwidth, options.bandwidth);
  EXPECT_FALSE(PlanAttach({"c", "eth0"}, {kV4}, 1500,
                          {.pod_mac = ip::MacAddress::Parse("01:00:5e:00:53:01").value()})
                   .ok());
  EXPECT_FALSE(PlanAttach({"c", "eth0"}, {kV6}, 1500, {.mtu = 1279}).ok());
}

TEST(PlanAttach, RefusesWhatTheKernelWouldMangle) {
  EXPECT_FALSE(PlanAttach({"c", "eth0"}, {}, 1500).ok());
  EXPECT_FALSE(PlanAttach({"c", "eth0"}, {kV4, kV4}, 1500).ok());
  EXPECT_FALSE(PlanAttach({"c", "eth0"}, {kV4}, 67).ok());
  EXPECT_TRUE(PlanAttach({"c", "eth0"}, {kV4}, 68).ok());
  EXPECT_FALSE(PlanAttach({"c", "eth0"}, {kV4, kV6}, 1279).ok());
}

}  // namespace
}  // namespace spoke::netagent
