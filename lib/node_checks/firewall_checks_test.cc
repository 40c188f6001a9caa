// Tests which firewalls keep pods' packets from passing.
#include <utility>

#include "lib/node_checks/testing/healthy_node.h"

namespace spoke::node_checks {
namespace {

using nft::ChainGist;
using nft::Fate;
using nft::RuleGist;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ChainGist Forward(bool drops, std::vector<RuleGist> rules) {
  return {"ip", "filter", "FORWARD", true, drops, std::move(rules)};
}
ChainGist Named(const std::string& name, std::vector<RuleGist> rules) {
  return {"ip", "filter", name, false, false, std::move(rules)};
}
RuleGist Of(Fate fate, const std::string& target = "") { return {.fate = fate, .target = target}; }
RuleGist If(RuleGist rule) {
  rule.conditional = true;
  return rule;
}
RuleGist OnDevice(RuleGist rule, const std::string& device) {
  rule.devices.push_back(device);
  return If(std::move(rule));
}
RuleGist OnState(RuleGist rule) {
  rule.on_state = true;
  return If(std::move(rule));
}

std::vector<Finding> FindingsWith(std::vector<ChainGist> chains) {
  NodeFacts facts = HealthyNode();
  facts.chains = std::move(chains);
  return FindingsOf(facts, "forward-rules");
}

// This is as Docker leaves it, beside kube-proxy.
TEST(ForwardRules, DockersPolicyBlocksThoughItLetsItsOwnPass) {
  const auto found =
      FindingsWith({Forward(true, {Of(Fate::kJump, "DOCKER-USER"), Of(Fate::kJump, "KUBE-FORWARD"),
                                   OnDevice(OnState(Of(Fate::kAccept)), "docker0"),
                                   OnDevice(Of(Fate::kAccept), "docker0")}),
                    Named("DOCKER-USER", {Of(Fate::kReturn)}),
                    Named("KUBE-FORWARD", {OnState(Of(Fate::kDrop)), OnState(Of(Fate::kAccept))})});
  ASSERT_THAT(found, ElementsAre(Blocking("ip filter FORWARD")));
  EXPECT_THAT(found[0].remedy, HasSubstr("iptables -A FORWARD -i spk+ -j ACCEPT"));
}

TEST(ForwardRules, ARuleForPodsLinksMakesItAWarning) {
  EXPECT_THAT(FindingsWith({Forward(true, {OnDevice(Of(Fate::kAccept), "spk*")})}),
              ElementsAre(Warning("ip filter FORWARD")));
  // The rule goes by address, which may be pods' or not.
  EXPECT_THAT(FindingsWith({Forward(true, {If(Of(Fate::kAccept))})}),
              ElementsAre(Warning("ip filter FORWARD")));
  // The rule is in a chain that is led to.
  EXPECT_THAT(FindingsWith({Forward(true, {Of(Fate::kJump, "MINE")}),
                            Named("MINE", {OnDevice(Of(Fate::kAccept), "s*")})}),
              ElementsAre(Warning("ip filter FORWARD")));
  EXPECT_THAT(FindingsWith({Forward(true, {If(Of(Fate::kMap))})}),
              ElementsAre(Warning("ip filter FORWARD")));
}

TEST(ForwardRules, WhoReturnsMeetsThePolicy) {
  EXPECT_THAT(FindingsWith({Forward(true, {Of(Fate::kReturn), Of(Fate::kAccept)})}),
              ElementsAre(Blocking("ip filter FORWARD")));
}

// Each of 16 chains leads to the next 100 times: as many ways as no time would do for.
TEST(ForwardRules, ManyWaysToOneChainAreJudgedOnce) {
  std::vector<ChainGist> chains = {
      Forward(true, std::vector<RuleGist>(100, If(Of(Fate::kJump, "C0"))))};
  for (int i = 0; i < 15; ++i) {
    const std::string next = "C" + std::to_string(i + 1);
    chains.push_back(
        Named("C" + std::to_string(i), std::vector<RuleGist>(100, If(Of(Fate::kJump, next)))));
  }
  chains.push_back(Named("C15", {OnDevice(Of(Fate::kAccept), "spk*")}));
  EXPECT_THAT(FindingsWith(chains), ElementsAre(Warning("ip filter FORWARD")));
}

TEST(ForwardRules, WhatAcceptsAllEndsTheChain) {
  EXPECT_THAT(FindingsWith({Forward(true, {Of(Fate::kAccept)})}), IsEmpty());
  EXPECT_THAT(FindingsWith({Forward(true, {Of(Fate::kGoto, "ALL")}),
                            Named("ALL", {Of(Fate::kNone), Of(Fate::kAccept)})}),
              IsEmpty());
}

// This is as firewalld does it: the policy accepts, the last rule rejects.
TEST(ForwardRules, ALastRuleThatRejectsAllIsAsGoodAsAPolicy) {
  ChainGist chain = {"inet",
                     "firewalld",
                     "filter_FORWARD",
                     true,
                     false,
                     {OnState(Of(Fate::kAccept)), OnState(Of(Fate::kMap)), Of(Fate::kReject)}};
  const auto found = FindingsWith({chain});
  ASSERT_THAT(found, ElementsAre(Blocking("inet firewalld filter_FORWARD")));
  EXPECT_THAT(found[0].remedy, HasSubstr("nft insert rule inet firewalld filter_FORWARD"));
}

TEST(ForwardRules, RulesThatDropSomeAreAWarningThatNamesTheirChain) {
  EXPECT_THAT(FindingsWith({Forward(false, {Of(Fate::kJump, "MINE")}),
                            Named("MINE", {If(Of(Fate::kDrop))})}),
              ElementsAre(Warning("ip filter MINE")));
}

TEST(ForwardRules, DropsThatArePlainlyNotAboutPodsAreNotNamed) {
  EXPECT_THAT(
      FindingsWith({Forward(false, {OnDevice(Of(Fate::kDrop), "docker0"), OnState(Of(Fate::kDrop)),
                                    Of(Fate::kJump, "KUBE-FORWARD")}),
                    Named("KUBE-FORWARD", {If(Of(Fate::kDrop))})}),
      IsEmpty());
  // The names of kube-router's chains begin like kube-proxy's.
  EXPECT_THAT(FindingsWith({Forward(false, {Of(Fate::kJump, "KUBE-ROUTER-FORWARD")}),
                            Named("KUBE-ROUTER-FORWARD", {If(Of(Fate::kDrop))})}),
              ElementsAre(Warning("ip filter KUBE-ROUTER-FORWARD")));
  // There is only the agent's own.
  EXPECT_THAT(FindingsWith({{"inet", "spoke", "forward", true, false, {If(Of(Fate::kDrop))}}}),
              IsEmpty());
}

TEST(ForwardRules, Ipv6CountsWhereThereIsSome) {
  NodeFacts facts = HealthyNode();
  facts.chains = {{"ip6", "filter", "FORWARD", true, true, {}}};
  EXPECT_THAT(FindingsOf(facts, "forward-rules"), ElementsAre(Blocking("ip6 filter FORWARD")));
  facts.nic->has_v6 = false;
  EXPECT_THAT(FindingsOf(facts, "forward-rules"), IsEmpty());
}

TEST(ForwardRules, LegacyTablesAreChangedWithTheirOwnProgram) {
  ChainGist chain = Forward(true, {});
  chain.table = "filter (legacy)";
  const auto found = FindingsWith({chain});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].remedy, HasSubstr("iptables-legacy -A FORWARD"));
}

// The kernel has no loops; what was read while it changed may.
TEST(ForwardRules, ALoopOfChainsEnds) {
  EXPECT_THAT(
      FindingsWith({Forward(true, {Of(Fate::kJump, "A")}), Named("A", {Of(Fate::kJump, "B")}),
                    Named("B", {Of(Fate::kJump, "A"), Of(Fate::kJump, "GONE")})}),
      ElementsAre(Blocking("ip filter FORWARD")));
}

TEST(ForwardRules, WhatCouldNotBeReadIsSaid) {
  NodeFacts facts = HealthyNode();
  facts.firewall_status = absl::PermissionDeniedError("Operation not permitted");
  EXPECT_THAT(FindingsOf(facts, "forward-rules"), ElementsAre(Warning("forward")));
}

}  // namespace
}  // namespace spoke::node_checks
