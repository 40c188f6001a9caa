#include "netagent/egress/cut_rules.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"

namespace spoke::netagent {
namespace {

ip::Address A(const std::string& text) { return ip::Address::Parse(text).value(); }

policy::Entry Network(const std::string& name, std::vector<ip::Prefix> peers, bool keep) {
  return {.key = "ClusterNetwork/" + name,
          .bytes = "",
          .value = policy::ClusterNetwork{.cluster = {},
                                          .hub = {},
                                          .peer_spoke = std::move(peers),
                                          .platform = {},
                                          .storage = {},
                                          .services = {},
                                          .established = keep ? policy::Established::kKeep
                                                              : policy::Established::kUnspecified}};
}

policy::EgressPolicy Closed(std::vector<ip::Prefix> blocks, bool cut, int32_t priority = 0) {
  return {.namespaces = {"web"},
          .teams = {},
          .destination_cidrs = std::move(blocks),
          .destination_groups = {},
          .excluded_cidrs = {},
          .mode = policy::EgressMode::kDrop,
          .priority = priority,
          .established = cut ? policy::Established::kCut : policy::Established::kUnspecified};
}

Policy Of(const std::vector<policy::Entry>& entries) {
  Policy policy{.version = 1};
  for (const policy::Entry& entry : entries) policy.entries[entry.key] = entry;
  return policy;
}

policy::Entry Egress(const std::string& name, policy::EgressPolicy policy) {
  return {.key = "EgressPolicy/" + name, .bytes = "", .value = std::move(policy)};
}

CutRules Rules(const Policy& policy) {
  const ClassMap classes = ClassMap::Compile(policy, {}).value();
  const TrafficPod pod{.host_link = "spk1",
                       .host_index = 1,
                       .addresses = {A("10.1.0.5"), A("fd00::5")},
                       .pod_namespace = "web",
                       .pod_name = "web-1",
                       .pod_uid = "1"};
  return {policy, classes, EgressRules::Compile(policy, classes, {}, {}).value(), {{"spk1", pod}}};
}

TrackedFlow Flow(const std::string& from, const std::string& to, uint32_t mark = 0) {
  return {.ends = {A(from), A(to), A(to), A(from)}, .mark = mark};
}

TEST(CutRules, OfNoPolicyCutsNothing) {
  EXPECT_TRUE(CutRules().empty());
  EXPECT_EQ(CutRules().FateOf(Flow("10.1.0.5", "192.0.2.1")), FlowFate::kStays);
  EXPECT_TRUE(Rules(Of({Egress("a", Closed(policy::Blocks({"192.0.2.0/24"}), false))})).empty());
}

TEST(CutRules, PeerSpokesAreCutUnlessEachNetworkThatNamesSomeKeepsThem) {
  const auto fate = [](const std::vector<policy::Entry>& entries) {
    const CutRules rules = Rules(Of(entries));
    EXPECT_EQ(rules.FateOf(Flow("10.1.0.5", "192.0.2.1")), FlowFate::kStays);
    EXPECT_EQ(rules.FateOf(Flow("10.18.0.1", "10.1.0.5")),
              rules.FateOf(Flow("10.1.0.5", "10.18.0.1")));
    return rules.FateOf(Flow("10.1.0.5", "10.18.0.1"));
  };
  EXPECT_EQ(fate({Network("a", policy::Blocks({"10.18.0.0/16"}), false)}), FlowFate::kEnded);
  EXPECT_EQ(fate({Network("a", policy::Blocks({"10.18.0.0/16"}), true)}), FlowFate::kStays);
  EXPECT_EQ(fate({Network("a", policy::Blocks({"10.18.0.0/16"}), true),
                  Network("b", policy::Blocks({"10.19.0.0/16"}), false)}),
            FlowFate::kEnded);
  EXPECT_EQ(fate({Network("a", policy::Blocks({"10.18.0.0/16"}), true),
                  Network("b", policy::Blocks({"10.19.0.0/16"}), true)}),
            FlowFate::kStays);
}

TEST(CutRules, WhatThoseInForceEndTooIsNotToBeCounted) {
  const auto peers = [](const std::string& block, bool keep = false) {
    return Network("a", policy::Blocks({block}), keep);
  };
  const policy::Entry group{
      .key = "DestinationGroup/far",
      .bytes = "",
      .value = policy::DestinationGroup{.cidrs = policy::Blocks({"192.0.2.0/24"})}};
  const CutRules in_force = Rules(Of({peers("10.18.0.0/16")}));
  EXPECT_TRUE(Rules(Of({})).EndNoMoreThan(CutRules()));
  EXPECT_TRUE(Rules(Of({})).EndNoMoreThan(in_force));
  EXPECT_TRUE(Rules(Of({peers("10.18.0.0/16", true)})).EndNoMoreThan(in_force));
  EXPECT_TRUE(Rules(Of({peers("10.18.0.0/16"), group})).EndNoMoreThan(in_force));
  EXPECT_FALSE(in_force.EndNoMoreThan(CutRules()));
  EXPECT_FALSE(in_force.EndNoMoreThan(Rules(Of({peers("10.18.0.0/16", true)}))));
  EXPECT_FALSE(Rules(Of({peers("10.18.0.0/15")})).EndNoMoreThan(in_force));
  EXPECT_FALSE(Rules(Of({peers("10.19.0.0/16")})).EndNoMoreThan(in_force));
  const CutRules egress = Rules(Of({Egress("b", Closed(policy::Blocks({"192.0.2.0/24"}), true))}));
  EXPECT_FALSE(egress.EndNoMoreThan(egress)) << "what pods there are is not compared";
}

TEST(CutRules, WhatCountsIsWherePacketsAreRouted) {
  const CutRules rules = Rules(Of({Network("a", policy::Blocks({"10.18.0.0/16"}), false)}));
  const auto fate = [&](const char* a, const char* b, const char* c, const char* d) {
    return rules.FateOf({.ends = {A(a), A(b), A(c), A(d)}});
  };
  EXPECT_EQ(fate("10.1.0.5", "10.96.0.1", "10.18.0.1", "10.1.0.5"), FlowFate::kEnded);
  // The Service's address is in a peer's block, and its endpoint is not.
  EXPECT_EQ(fate("10.1.0.5", "10.18.0.1", "10.1.0.6", "10.1.0.5"), FlowFate::kStays);
  EXPECT_EQ(fate("10.1.0.5", "192.0.2.1", "192.0.2.1", "10.18.0.1"), FlowFate::kStays);
}

TEST(CutRules, APolicysFirstSayDecidesAboutAPodsFlowsOut) {
  const CutRules rules =
      Rules(Of({Egress("a", Closed(policy::Blocks({"192.0.2.0/24"}), true)),
                Egress("b", Closed(policy::Blocks({"0.0.0.0/0", "::/0"}), false))}));
  EXPECT_EQ(rules.FateOf(Flow("10.1.0.5", "192.0.2.1")), FlowFate::kCut);
  EXPECT_EQ(rules.FateOf(Flow("10.1.0.5", "198.51.100.1")), FlowFate::kStays) << "that one keeps";
  EXPECT_EQ(rules.FateOf(Flow("10.1.0.6", "192.0.2.1")), FlowFate::kStays) << "no pod of this node";
  EXPECT_EQ(rules.FateOf(Flow("192.0.2.1", "10.1.0.5")), FlowFate::kStays) << "began outside";
  EXPECT_EQ(rules.FateOf(Flow("10.1.0.5", "192.0.2.1", claims::kFlowMasqueraded)), FlowFate::kCut);
  EXPECT_EQ(rules.FateOf(Flow("10.1.0.5", "192.0.2.1", claims::kFlowCut)), FlowFate::kStays);
  EXPECT_EQ(rules.FateOf(Flow("10.1.0.5", "198.51.100.1", claims::kFlowCut)), FlowFate::kReleased);
}

TEST(CutRules, TheFirstOfWhatEndsAreNamedWithTheirPods) {
  const CutRules rules = Rules(Of({Network("a", policy::Blocks({"10.18.0.0/16"}), false),
                                   Egress("a", Closed(policy::Blocks({"192.0.2.0/24"}), true))}));
  CutsByRule count;
  for (const TrackedFlow& flow :
       {Flow("10.1.0.5", "192.0.2.1"), Flow("10.18.0.1", "10.1.0.5"), Flow("10.1.0.6", "10.18.0.2"),
        Flow("10.1.0.5", "198.51.100.1")}) {
    rules.Count(flow, rules.FateOf(flow), count);
  }
  const node_api::CutFlow web{
      .pod_namespace = "web", .pod_name = "web-1", .address = A("10.1.0.5")};
  node_api::CutFlow out = web;
  out.far_address = A("192.0.2.1");
  node_api::CutFlow in = web;
  in.far_address = A("10.18.0.1");
  in.peer_spoke = true;
  const node_api::CutFlow of_no_pod{
      .address = A("10.1.0.6"), .far_address = A("10.18.0.2"), .peer_spoke = true};
  EXPECT_THAT(count.flows, testing::ElementsAre(out, in, of_no_pod));
  for (int i = 0; i < 20; ++i) rules.Count(Flow("10.1.0.5", "192.0.2.1"), FlowFate::kCut, count);
  EXPECT_EQ(count.flows.size(), CutsByRule::kMaxFlows);
  EXPECT_EQ(count.egress, 21U);
}

TEST(CutRules, WhatIsClosedIsLeftToExpire) {
  const CutRules rules = Rules(Of({Network("a", policy::Blocks({"10.18.0.0/16"}), false),
                                   Egress("a", Closed(policy::Blocks({"192.0.2.0/24"}), true))}));
  for (const char* far : {"10.18.0.1", "192.0.2.1", "198.51.100.1"}) {
    TrackedFlow flow = Flow("10.1.0.5", far);
    flow.closed = true;
    CutsByRule count;
    rules.Count(flow, rules.FateOf(flow), count);
    EXPECT_EQ(rules.FateOf(flow), FlowFate::kStays) << far;
    EXPECT_EQ(count, CutsByRule()) << far;
  }
}

TEST(CutLimit, IsAShareBeyondAHandful) {
  const CutLimit limit{.permille = 50};
  EXPECT_TRUE(limit.Admits({.connections = 10, .peer_spoke = 10}));
  EXPECT_FALSE(limit.Admits({.connections = 11, .peer_spoke = 10, .egress = 1}));
  EXPECT_TRUE(limit.Admits({.connections = 400, .peer_spoke = 10, .egress = 10}));
  EXPECT_FALSE(limit.Admits({.connections = 400, .peer_spoke = 21}));
  EXPECT_FALSE(CutLimit{}.Admits({.connections = 1'000'000, .egress = 11}));
  EXPECT_TRUE(CutLimit{.permille = 1000}.Admits({.connections = 11, .egress = 11}));
}

}  // namespace
}  // namespace spoke::netagent
