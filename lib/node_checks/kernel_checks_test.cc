// Tests of kernel features, sysctls and the NIC: found when wrong, silent when right.
#include "lib/node_checks/testing/healthy_node.h"

namespace spoke::node_checks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(KernelChecks, AHealthyNodeHasNoFindings) {
  const Report report = Examine(HealthyNode());
  for (const Finding& finding : report.findings) {
    ADD_FAILURE() << finding.id << ": " << finding.object << " " << finding.what;
  }
  EXPECT_TRUE(report.pods_will_work());
  EXPECT_GE(report.checks.size(), 20U);
}

TEST(KernelChecks, OnlyWhatPodsCannotLiveWithoutBlocks) {
  const struct {
    KernelFeature feature;
    const char* id;
    Severity severity;
  } rows[] = {{KernelFeature::kVeth, "kernel-veth", Severity::kBlocking},
              {KernelFeature::kNftables, "kernel-nftables", Severity::kBlocking},
              {KernelFeature::kTokenBucket, "kernel-tbf", Severity::kWarning},
              {KernelFeature::kClassifiers, "kernel-bpf", Severity::kWarning},
              {KernelFeature::kIfb, "kernel-ifb", Severity::kWarning},
              {KernelFeature::kHtb, "kernel-htb", Severity::kWarning}};
  for (const auto& row : rows) {
    NodeFacts facts = HealthyNode();
    facts.kernel[row.feature] = {FeatureState::Answer::kMissing, "create link probe0: unknown"};
    const auto found = FindingsOf(facts, row.id);
    ASSERT_EQ(found.size(), 1U) << row.id;
    EXPECT_EQ(found[0].severity, row.severity) << row.id;
    EXPECT_THAT(found[0].what, HasSubstr("create link probe0: unknown"));
    EXPECT_THAT(found[0].remedy, HasSubstr("modprobe"));
  }
}

TEST(KernelChecks, WhatCouldNotBeTriedIsSaidAndDoesNotBlock) {
  NodeFacts facts = HealthyNode();
  facts.kernel[KernelFeature::kVeth] = {FeatureState::Answer::kUnknown, "Operation not permitted"};
  EXPECT_THAT(FindingsOf(facts, "kernel-veth"), ElementsAre(Warning("veth")));
}

TEST(KernelChecks, WhatIsSwitchedOffIsNotLookedAt) {
  NodeFacts facts = HealthyNode();
  facts.settings.counts = false;
  facts.kernel[KernelFeature::kNftables] = {FeatureState::Answer::kMissing, "no"};
  EXPECT_THAT(Examine(facts).findings, IsEmpty());
}

TEST(KernelChecks, QueuesAreForPodsWithLimitsOfTheirOwnToo) {
  NodeFacts facts = HealthyNode();
  facts.settings.counts = false;
  facts.kernel[KernelFeature::kIfb] = {FeatureState::Answer::kMissing, "no"};
  EXPECT_THAT(FindingsOf(facts, "kernel-ifb"), ElementsAre(Warning("ifb")));
}

TEST(KernelChecks, ForwardingBlocksUnlessTheAgentHasYetToStart) {
  NodeFacts facts = HealthyNode();
  facts.sysctls["net.ipv4.ip_forward"] = "0";
  EXPECT_THAT(FindingsOf(facts, "forwarding"), ElementsAre(Blocking("net.ipv4.ip_forward")));
  facts.settings.stage = Stage::kBeforeInstall;
  EXPECT_THAT(FindingsOf(facts, "forwarding"), ElementsAre(Warning("net.ipv4.ip_forward")));
  facts.settings.stage = Stage::kAgent;
  EXPECT_THAT(FindingsOf(facts, "forwarding"), ElementsAre(Blocking("net.ipv4.ip_forward")));
}

TEST(KernelChecks, ForwardingOfTheNicAloneIsSeenToo) {
  NodeFacts facts = HealthyNode();
  facts.settings.nic = "eth0.7";
  facts.sysctls["net.ipv4.conf.eth0/7.forwarding"] = "0";
  EXPECT_THAT(FindingsOf(facts, "forwarding"),
              ElementsAre(Blocking("net.ipv4.conf.eth0/7.forwarding")));
}

TEST(KernelChecks, ForwardingOfIpv6MattersWhereThereIsSome) {
  NodeFacts facts = HealthyNode();
  facts.sysctls["net.ipv6.conf.all.forwarding"] = "0";
  const auto found = FindingsOf(facts, "forwarding-v6");
  ASSERT_THAT(found, ElementsAre(Warning("net.ipv6.conf.all.forwarding")));
  // Without this the node would lose the route that it has by router advertisements.
  EXPECT_THAT(found[0].remedy, HasSubstr("accept_ra=2"));
  facts.nic->has_v6 = false;
  EXPECT_THAT(FindingsOf(facts, "forwarding-v6"), IsEmpty());
}

TEST(KernelChecks, TheLargerReversePathFilterDecides) {
  NodeFacts facts = HealthyNode();
  facts.sysctls["net.ipv4.conf.all.rp_filter"] = "1";  // The NIC's 2 is larger.
  EXPECT_THAT(FindingsOf(facts, "rp-filter"), IsEmpty());
  facts.sysctls["net.ipv4.conf.eth0.rp_filter"] = "0";
  EXPECT_THAT(FindingsOf(facts, "rp-filter"), ElementsAre(Warning("net.ipv4.conf.all.rp_filter")));
  facts.sysctls["net.ipv4.conf.all.rp_filter"] = "0";
  facts.sysctls["net.ipv4.conf.eth0.rp_filter"] = "1";
  EXPECT_THAT(FindingsOf(facts, "rp-filter"), ElementsAre(Warning("net.ipv4.conf.eth0.rp_filter")));
  EXPECT_THAT(FindingsOf(facts, "rp-filter")[0].settings,
              ElementsAre(KernelSetting{"net.ipv4.conf.eth0.rp_filter", "2"}));
}

TEST(KernelChecks, TheNeighbourTableHasRoomForTheSubnet) {
  const std::string name = "net.ipv4.neigh.default.gc_thresh3";
  NodeFacts facts = HealthyNode();
  facts.nic->v4_length = 16;
  auto found = FindingsOf(facts, "neighbour-table");
  ASSERT_THAT(found, ElementsAre(Warning(name)));
  EXPECT_THAT(found[0].what, HasSubstr("65646 neighbours"));
  EXPECT_THAT(found[0].remedy, HasSubstr("gc_thresh3 = 82057"));
  const std::string prefix = "net.ipv4.neigh.default.gc_thresh";
  EXPECT_THAT(found[0].settings, ElementsAre(KernelSetting{prefix + "3", "82057"},
                                             KernelSetting{prefix + "2", "73852"},
                                             KernelSetting{prefix + "1", "65646"}))
      << "the largest first: none is above the next at any time";
  facts.sysctls[prefix + "2"] = "80000";
  EXPECT_EQ(FindingsOf(facts, "neighbour-table")[0].settings[1].value, "80000")
      << "none is made smaller";
  facts.sysctls[name] = "90000";
  facts.sysctls["net.ipv4.neigh.default.gc_thresh2"] = "100000";
  EXPECT_THAT(FindingsOf(facts, "neighbour-table"),
              ElementsAre(Warning("net.ipv4.neigh.default.gc_thresh2")));
  facts.sysctls["net.ipv4.neigh.default.gc_thresh2"] = "85000";
  EXPECT_THAT(FindingsOf(facts, "neighbour-table"), IsEmpty());
  facts.neighbours = 89'000;
  EXPECT_THAT(FindingsOf(facts, "neighbour-table"), ElementsAre(Warning(name)));
  facts.sysctls.erase(name);  // This is as in a namespace that is not the first.
  EXPECT_THAT(FindingsOf(facts, "neighbour-table"), IsEmpty());
}

TEST(KernelChecks, TheTableOfConnectionsIsLargeAndNotFull) {
  const std::string name = "net.netfilter.nf_conntrack_max";
  NodeFacts facts = HealthyNode();
  facts.connections = 250'000;
  EXPECT_THAT(FindingsOf(facts, "connection-table"), ElementsAre(Warning(name)));
  facts.connections = 10;
  facts.sysctls[name] = "8192";
  EXPECT_THAT(FindingsOf(facts, "connection-table"), ElementsAre(Warning(name)));
  facts.sysctls[name] = "no number";
  EXPECT_THAT(FindingsOf(facts, "connection-table"), IsEmpty());
}

TEST(KernelChecks, WhatKeepsTheFastPathOffIsSaidWhereItYields) {
  const std::string loose = "net.netfilter.nf_conntrack_tcp_loose";
  NodeFacts facts = HealthyNode();
  facts.sysctls[loose] = "1";
  EXPECT_THAT(FindingsOf(facts, "strict-tracking"), IsEmpty());
  EXPECT_THAT(FindingsOf(facts, "ipvs"), IsEmpty());
  facts.sysctls[loose] = "0";
  facts.virtual_services = true;
  EXPECT_THAT(FindingsOf(facts, "strict-tracking"), ElementsAre(Warning(loose)));
  EXPECT_THAT(FindingsOf(facts, "ipvs"), ElementsAre(Warning("IPVS")));
  facts.settings.fast_path = false;
  EXPECT_THAT(FindingsOf(facts, "strict-tracking"), IsEmpty());
  EXPECT_THAT(FindingsOf(facts, "ipvs"), IsEmpty());
}

TEST(KernelChecks, TheNicIsThereAndUp) {
  NodeFacts facts = HealthyNode();
  facts.nic->link.up = false;
  EXPECT_THAT(FindingsOf(facts, "nic"), ElementsAre(Blocking("eth0")));
  facts.nic.reset();
  EXPECT_THAT(FindingsOf(facts, "nic"), ElementsAre(Blocking("eth0")));
  facts.links_status = absl::PermissionDeniedError("no");
  EXPECT_THAT(FindingsOf(facts, "nic"), ElementsAre(Warning("eth0")));
}

TEST(KernelChecks, PodsLinksAreNotLongerThanTheNic) {
  NodeFacts facts = HealthyNode();
  facts.settings.mtu = 9000;
  EXPECT_THAT(FindingsOf(facts, "mtu"), ElementsAre(Warning("eth0")));
  facts.settings.mtu = 0;
  facts.links[2].mtu = 3900;
  EXPECT_THAT(FindingsOf(facts, "mtu"), ElementsAre(Warning("spk0")));
  facts.links[2].name = "veth7";  // This one is not ours.
  EXPECT_THAT(FindingsOf(facts, "mtu"), IsEmpty());
}

}  // namespace
}  // namespace spoke::node_checks
