// DestinationGroup, EgressPolicy, and what ClusterNetwork says of spokes and Services.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/policy/object_text.h"
#include "ipam-server/policy/testing/kinds_for_test.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

INSTANTIATE_TEST_SUITE_P(
    DestinationGroup, RefusedSpecTest,
    testing::Values(
        Refused{"Nothing", "DestinationGroup", "{}",
                "f:4: spec: needs at least one block (cidrs) or host (names); delete the group if "
                "it has "
                "none"},
        Refused{"Empty", "DestinationGroup", "{cidrs: []}",
                "f:4: spec: needs at least one block (cidrs) or host (names); delete the group if "
                "it has "
                "none"},
        Refused{"Twice", "DestinationGroup", "\n  cidrs:\n    - 192.0.2.0/24\n    - 192.0.2.0/24",
                "f:7: spec.cidrs[1]: \"192.0.2.0/24\" is listed twice: line 6 has it already; "
                "remove one"},
        Refused{"NoNames", "DestinationGroup", "{cidrs: [], names: []}",
                "f:4: spec: needs at least one block (cidrs) or host (names); delete the group if "
                "it has none"},
        Refused{"AddressAsName", "DestinationGroup",
                "\n  names:\n    - data.example.org\n    - 192.0.2.1",
                "f:7: spec.names[1]: \"192.0.2.1\" is an address: list its block in cidrs"},
        Refused{"NameInside", "DestinationGroup", "{names: [registry.default.svc]}",
                "f:4: spec.names[0]: \"registry.default.svc\" is inside the cluster or the pod: "
                "groups are for the Internet; take it out"},
        Refused{"NameTwice", "DestinationGroup",
                "\n  names:\n    - data.example.org\n    - Data.Example.org",
                "f:7: spec.names[1]: \"Data.Example.org\" is listed twice: line 6 has it already; "
                "remove one"},
        Refused{"Platform", "DestinationGroup",
                "\n  cidrs:\n    - 192.0.2.0/24\n    - 169.254.169.254/32",
                "f:7: spec.cidrs[1]: 169.254.169.254/32 lies in 169.254.0.0/16, which is the "
                "platform's or the node's own in every cluster, and comes before any policy: take "
                "it out"}),
    NameOfCase);

INSTANTIATE_TEST_SUITE_P(
    EgressPolicy, RefusedSpecTest,
    testing::Values(
        Refused{"NoMode", "EgressPolicy", "{destinationCIDRs: [0.0.0.0/0]}",
                "f:4: spec.mode: is required but missing"},
        Refused{"UnknownMode", "EgressPolicy", "{destinationCIDRs: [0.0.0.0/0], mode: drop}",
                "f:4: spec.mode: must be Masquerade, Routed, Gateway or Drop, not \"drop\""},
        Refused{"UnknownKey", "EgressPolicy",
                "{destinationCIDRs: [0.0.0.0/0], mode: Drop, namespace: a}",
                "f:4: spec.namespace: unknown key; did you mean \"namespaces\"?"},
        Refused{"NoDestination", "EgressPolicy", "{mode: Drop}",
                "f:4: spec: names no destination: list destinationCIDRs or destinationGroups, or "
                "write platform: true; for all of them write destinationCIDRs: [0.0.0.0/0, "
                "\"::/0\"]"},
        Refused{"Metadata", "EgressPolicy", "{mode: Drop, destinationCIDRs: [169.254.169.254/32]}",
                "f:4: spec.destinationCIDRs[0]: 169.254.169.254/32 is the platform's metadata "
                "service: write platform: true"},
        Refused{"PlatformRouted", "EgressPolicy", "{mode: Routed, platform: true}",
                "f:4: spec.platform: cannot be reached with mode Routed, since the platform's "
                "services answer the node alone: write mode: Masquerade (or Drop) in a policy of "
                "its own"},
        Refused{"DestinationTwice", "EgressPolicy",
                "\n  mode: Drop\n  destinationCIDRs:\n    - 192.0.2.0/24\n    - 192.0.2.0/24",
                "f:8: spec.destinationCIDRs[1]: \"192.0.2.0/24\" is listed twice: line 7 has it "
                "already; remove one"},
        Refused{"ExcludedIsDestination", "EgressPolicy",
                "\n  mode: Drop\n  destinationCIDRs:\n    - 192.0.2.0/24\n  excludedCIDRs:\n"
                "    - 198.51.100.0/24\n    - 192.0.2.0/24",
                "f:10: spec.excludedCIDRs[1]: \"192.0.2.0/24\" is listed twice: line 7 has it as a "
                "destination; remove one"},
        Refused{"Platform", "EgressPolicy", "{mode: Drop, destinationCIDRs: [169.254.0.0/16]}",
                "f:4: spec.destinationCIDRs[0]: 169.254.0.0/16 lies in 169.254.0.0/16, which is "
                "the platform's or the node's own in every cluster, and comes before any policy: "
                "take it out"},
        Refused{"GatewayWithoutAnything", "EgressPolicy",
                "{mode: Gateway, destinationCIDRs: [0.0.0.0/0]}",
                "f:4: spec.mode: Gateway needs the gateways: write gateway: {addresses: [...]}\n"
                "f:4: spec.mode: Gateway needs a fallback for when no gateway is healthy: write "
                "fallback: Drop, Masquerade or Routed"},
        Refused{"Transport", "EgressPolicy",
                "{mode: Gateway, destinationCIDRs: [0.0.0.0/0], fallback: Drop, gateway: "
                "{addresses: [10.0.0.9], transport: ipip}}",
                "f:4: spec.gateway.transport: must be direct (gateways are next hops: not on "
                "Azure) or vxlan, not \"ipip\""},
        Refused{"TunnelPortOfNoTunnel", "EgressPolicy",
                "{mode: Gateway, destinationCIDRs: [0.0.0.0/0], fallback: Drop, gateway: "
                "{addresses: [10.0.0.9], tunnelPort: 4789}}",
                "f:4: spec.gateway.tunnelPort: means nothing with transport direct: remove it, or "
                "write transport: vxlan"},
        Refused{"TunnelOfAnotherFamily", "EgressPolicy",
                "{mode: Gateway, destinationCIDRs: [0.0.0.0/0], fallback: Drop, gateway: "
                "{addresses: [\"fd00::9\"], transport: vxlan}}",
                "f:4: spec.gateway: has no IPv4 address, but destinationCIDRs has 0.0.0.0/0, and a "
                "tunnel carries IPv4 to IPv4 addresses of gateways alone: add those, or take "
                "0.0.0.0/0 out"},
        Refused{"FallbackGateway", "EgressPolicy",
                "{mode: Gateway, destinationCIDRs: [0.0.0.0/0], gateway: {addresses: [10.0.0.9]}, "
                "fallback: Gateway}",
                "f:4: spec.fallback: cannot be Gateway, since it is for when no gateway is "
                "healthy: write Drop, Masquerade or Routed"},
        Refused{"GatewayWithoutAddresses", "EgressPolicy",
                "{mode: Gateway, destinationCIDRs: [0.0.0.0/0], gateway: {healthPort: 80}, "
                "fallback: Drop}",
                "f:4: spec.gateway.addresses: needs at least one address of a gateway"},
        Refused{"GatewayAddressTwice", "EgressPolicy",
                "{mode: Gateway, destinationCIDRs: [0.0.0.0/0], fallback: Drop,\n  gateway: "
                "{addresses: [10.0.0.9,\n    10.0.0.9]}}",
                "f:6: spec.gateway.addresses[1]: \"10.0.0.9\" is listed twice: line 5 has it "
                "already; remove one"},
        Refused{"DrainingAnother", "EgressPolicy",
                "{mode: Gateway, destinationCIDRs: [0.0.0.0/0], fallback: Drop, gateway: "
                "{addresses: [10.0.0.9], draining: [10.0.0.8]}}",
                "f:4: spec.gateway.draining[0]: 10.0.0.8 is not among addresses: a gateway that "
                "drains stays listed until its flows are over"},
        Refused{"FallbackOfMasquerade", "EgressPolicy",
                "{mode: Masquerade, destinationCIDRs: [0.0.0.0/0], fallback: Drop}",
                "f:4: spec.fallback: means nothing with mode Masquerade: remove it, or write mode: "
                "Gateway"},
        Refused{"LimitWithUnit", "EgressPolicy",
                "{mode: Routed, destinationCIDRs: [0.0.0.0/0], limits: {newConnectionsPerSecond: "
                "200/s}}",
                "f:4: spec.limits.newConnectionsPerSecond: must be a whole number from 1 to "
                "1000000, not \"200/s\""},
        Refused{"LimitZero", "EgressPolicy",
                "{mode: Routed, destinationCIDRs: [0.0.0.0/0], limits: {connections: 0}}",
                "f:4: spec.limits.connections: must be a whole number from 1 to 1000000, not "
                "\"0\""},
        Refused{"NoLimits", "EgressPolicy",
                "{mode: Routed, destinationCIDRs: [0.0.0.0/0], limits: {}}",
                "f:4: spec.limits: says no limit: write connections or newConnectionsPerSecond, or "
                "remove it"},
        Refused{"PartAboveWhole", "EgressPolicy",
                "{mode: Routed, destinationCIDRs: [0.0.0.0/0], limits: {connections: 10, "
                "perDestination: {connections: 20}}}",
                "f:4: spec.limits.perDestination.connections: 20 to one destination is more than "
                "10 to all together: lower it, or raise limits.connections"},
        Refused{"EstablishedOfOthers", "EgressPolicy",
                "{mode: Routed, destinationCIDRs: [0.0.0.0/0], established: cut}",
                "f:4: spec.established: means nothing with mode Routed, which lets connections "
                "begin: remove it, or write mode: Drop"},
        Refused{"EstablishedAsOther", "EgressPolicy",
                "{mode: Drop, destinationCIDRs: [0.0.0.0/0], established: drop}",
                "f:4: spec.established: must be cut or keep, not \"drop\""},
        Refused{"LimitsOfDrop", "EgressPolicy",
                "{mode: Drop, destinationCIDRs: [0.0.0.0/0], limits: {connections: 1}}",
                "f:4: spec.limits: means nothing with mode Drop, which lets no connection through"},
        Refused{"Priority", "EgressPolicy",
                "{mode: Drop, destinationCIDRs: [0.0.0.0/0], priority: high}",
                "f:4: spec.priority: must be a whole number from -1000000 to 1000000, not "
                "\"high\""},
        Refused{"EmptyNamespaces", "EgressPolicy",
                "{mode: Drop, destinationCIDRs: [0.0.0.0/0], namespaces: []}",
                "f:4: spec.namespaces: an empty list selects nothing: remove it to select all "
                "pods"},
        Refused{"SelectorByLabel", "EgressPolicy",
                "{mode: Drop, destinationCIDRs: [0.0.0.0/0], selectors: [{podSelector: "
                "{matchLabels: {app: web}}}]}",
                "f:4: spec.selectors[0].podSelector.matchLabels.app: nodes do not know pods' "
                "labels: select by io.kubernetes.pod.namespace, or list namespaces or teams"},
        Refused{"SelectorOfNothing", "EgressPolicy",
                "{mode: Drop, destinationCIDRs: [0.0.0.0/0], selectors: [{podSelector: "
                "{matchLabels: {}}}]}",
                "f:4: spec.selectors[0].podSelector.matchLabels: selects nothing by name: write "
                "io.kubernetes.pod.namespace: NAME, or leave all selectors out to select all pods"},
        Refused{"NodeSelector", "EgressPolicy",
                "{mode: Drop, destinationCIDRs: [0.0.0.0/0], selectors: [{nodeSelector: {}}]}",
                "f:4: spec.selectors[0].podSelector: is required but missing\n"
                "f:4: spec.selectors[0].nodeSelector: unknown key; did you mean \"podSelector\"?"},
        Refused{"NamespaceTwice", "EgressPolicy",
                "{mode: Drop, destinationCIDRs: [0.0.0.0/0], namespaces: [a],\n  selectors: "
                "[{podSelector: {matchLabels: {io.kubernetes.pod.namespace: a}}}]}",
                "f:5: spec.selectors[0].podSelector.matchLabels.\"io.kubernetes.pod.namespace\": "
                "\"a\" is listed twice: line 4 has it already; remove one"}),
    NameOfCase);

constexpr const char* kWhole =
    "{namespaces: [b], teams: [vision], selectors: [{podSelector: {matchLabels: "
    "{io.kubernetes.pod.namespace: a}}}], destinationCIDRs: [0.0.0.0/0], destinationGroups: "
    "[mirrors], excludedCIDRs: [10.0.0.0/8], mode: Gateway, gateway: {addresses: [10.20.0.8, "
    "10.20.0.7], draining: [10.20.0.8]}, fallback: Drop, limits: {connections: 2000, "
    "newConnectionsPerSecond: 200, perDestination: {connections: 100, newConnectionsPerSecond: "
    "10}}, priority: -5}";

std::string WholeText() {
  return Document("Team", "vision", "{namespaces: [v]}") + "---\n" +
         Document("DestinationGroup", "mirrors", "{cidrs: [192.0.2.0/24]}") + "---\n" +
         Document("EgressPolicy", "all", kWhole);
}

TEST(EgressPolicy, GoesToNodesWhole) {
  const ObjectSet set = Applied(WholeText());
  const auto object = set.Find({"EgressPolicy", "all"});
  ASSERT_NE(object, nullptr);
  const v1::PolicyEntry message = EntryOf(set, object->key);
  EXPECT_EQ(message.key(), "EgressPolicy/all");
  const v1::EgressPolicy& policy = message.egress();
  EXPECT_THAT(policy.namespaces(), ElementsAre("a", "b"));
  EXPECT_THAT(policy.teams(), ElementsAre("vision"));
  EXPECT_THAT(policy.destination_cidrs(), ElementsAre("0.0.0.0/0"));
  EXPECT_THAT(policy.destination_groups(), ElementsAre("mirrors"));
  EXPECT_THAT(policy.excluded_cidrs(), ElementsAre("10.0.0.0/8"));
  EXPECT_EQ(policy.mode(), v1::EgressPolicy::GATEWAY);
  EXPECT_THAT(policy.gateway().addresses(), ElementsAre("10.20.0.7", "10.20.0.8"));
  EXPECT_EQ(policy.gateway().health_port(), 9467U);
  EXPECT_THAT(policy.gateway().draining(), ElementsAre("10.20.0.8"));
  EXPECT_EQ(policy.fallback(), v1::EgressPolicy::DROP);
  EXPECT_EQ(policy.limits().connections(), 2000U);
  EXPECT_EQ(policy.limits().new_connections_per_second(), 200U);
  EXPECT_EQ(policy.limits().connections_per_destination(), 100U);
  EXPECT_EQ(policy.limits().new_connections_per_second_per_destination(), 10U);
  EXPECT_EQ(policy.priority(), -5);
}

TEST(EgressPolicy, MayCutWhatItDrops) {
  const auto said = [](const std::string& text) {
    const ObjectSet set = Applied(
        Document("EgressPolicy", "x", "{mode: Drop, destinationCIDRs: [0.0.0.0/0]" + text + "}"));
    const auto object = set.Find({"EgressPolicy", "x"});
    EXPECT_EQ(ObjectYaml(*object).find("established") != std::string::npos, !text.empty());
    return EntryOf(set, object->key).egress().established();
  };
  EXPECT_EQ(said(""), v1::ESTABLISHED_UNSPECIFIED);
  EXPECT_EQ(said(", established: cut"), v1::CUT);
  EXPECT_EQ(said(", established: keep"), v1::KEEP);
}

TEST(EgressPolicy, NamesThePlatformAlsoForAgentsThatDoNotKnowThat) {
  const ObjectSet set = Applied(
      Document("EgressPolicy", "certs", "{namespaces: [certs], platform: true, mode: Masquerade}"));
  const auto object = set.Find({"EgressPolicy", "certs"});
  ASSERT_NE(object, nullptr);
  const v1::EgressPolicy policy = EntryOf(set, object->key).egress();
  EXPECT_TRUE(policy.platform());
  EXPECT_THAT(policy.destination_cidrs(), ElementsAre("169.254.169.254/32", "168.63.129.16/32"));
  EXPECT_THAT(ObjectYaml(*object), HasSubstr("  platform: true\n"));
}

TEST(EgressPolicy, IsShownAsItWasApplied) {
  const ObjectSet set = Applied(WholeText());
  const std::string shown = ObjectYaml(*set.Find({"EgressPolicy", "all"}));
  EXPECT_THAT(shown, HasSubstr("  gateway:\n    addresses:\n      - \"10.20.0.7\"\n"));
  EXPECT_THAT(shown, HasSubstr("    healthPort: 9467\n"));
  const auto again = Plan(set, shown);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->changes[0].action, ChangeAction::kUnchanged);
}

TEST(EgressPolicy, AGatewayIsReachedAsNextHopUnlessItSaysOtherwise) {
  const auto gateway = [](const std::string& more) {
    const ObjectSet set =
        Applied(Document("EgressPolicy", "x",
                         "{mode: Gateway, destinationCIDRs: [0.0.0.0/0], fallback: Drop, gateway: "
                         "{addresses: [10.0.0.9]" +
                             more + "}}"));
    const auto object = set.Find({"EgressPolicy", "x"});
    return std::pair(EntryOf(set, object->key).egress().gateway(), ObjectYaml(*object));
  };
  const auto [direct, direct_text] = gateway("");
  EXPECT_EQ(direct.transport(), v1::EgressPolicy::Gateway::DIRECT);
  EXPECT_EQ(direct.tunnel_port(), 0U);
  EXPECT_THAT(direct_text, testing::Not(HasSubstr("transport")));
  const auto [vxlan, vxlan_text] = gateway(", transport: vxlan");
  EXPECT_EQ(vxlan.transport(), v1::EgressPolicy::Gateway::VXLAN);
  EXPECT_EQ(vxlan.tunnel_port(), 4789U);
  EXPECT_THAT(vxlan_text, HasSubstr("    transport: vxlan\n    tunnelPort: 4789\n"));
  EXPECT_EQ(gateway(", transport: vxlan, tunnelPort: 8473").first.tunnel_port(), 8473U);
}

TEST(EgressPolicy, NamesTeamsAndGroupsThatAreThere) {
  const auto plan = Plan({}, Document("EgressPolicy", "x",
                                      "\n  mode: Drop\n  teams:\n    - vision\n  "
                                      "destinationGroups:\n    - mirrors"));
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::MessageOf(plan.status()),
            "f:7: spec.teams: there is no Team \"vision\": apply it before, or with this one\n"
            "f:9: spec.destinationGroups: there is no DestinationGroup \"mirrors\": apply it "
            "before, or with this one");
  const ObjectSet set = Applied(WholeText());
  const std::vector<ObjectKey> keys = {{"DestinationGroup", "mirrors"}};
  EXPECT_EQ(base::MessageOf(PlanDelete(set, keys, {}, KindsTime()).status()),
            "DestinationGroup \"mirrors\": EgressPolicy \"all\" names it (spec.destinationGroups): "
            "change or delete that first");
}

TEST(EgressPolicy, DoesNotReachForWhatClusterNetworksKeep) {
  const std::string network =
      Document("ClusterNetwork", "main",
               "{cluster: [10.0.0.0/8], peerSpoke: [172.16.0.0/12], platform: [168.63.129.16/32]}");
  const auto platform = Plan(
      {}, network + "---\n" +
              Document("EgressPolicy", "x", "{mode: Drop, destinationCIDRs: [168.63.129.16/32]}"));
  EXPECT_EQ(base::MessageOf(platform.status()),
            "f:9: spec.destinationCIDRs: 168.63.129.16/32 lies in 168.63.129.16/32, a block of "
            "platform of ClusterNetwork \"main\" (f:4): the platform's addresses are named by "
            "platform: true alone; take it out");
  const auto gateway =
      Plan(Applied(network),
           Document("EgressPolicy", "x",
                    "{mode: Gateway, destinationCIDRs: [0.0.0.0/0], fallback: Drop, gateway: "
                    "{addresses: [172.16.0.9]}}"));
  EXPECT_EQ(base::MessageOf(gateway.status()),
            "f:4: spec.gateway.addresses: 172.16.0.9/32 lies in 172.16.0.0/12, a block of "
            "peerSpoke of ClusterNetwork \"main\" (applied before): nodes could not reach the "
            "gateway there; choose another");
  const auto everything =
      Plan(Applied(network),
           Document("EgressPolicy", "x", "{mode: Drop, destinationCIDRs: [0.0.0.0/0, \"::/0\"]}"));
  EXPECT_TRUE(everything.ok()) << everything.status();
}

TEST(DestinationGroup, GoesToNodesWhole) {
  const ObjectSet set =
      Applied(Document("DestinationGroup", "g", "{cidrs: [198.51.100.0/24, 192.0.2.0/24]}"));
  const auto object = set.Find({"DestinationGroup", "g"});
  const v1::PolicyEntry message = EntryOf(set, object->key);
  EXPECT_EQ(message.key(), "DestinationGroup/g");
  EXPECT_THAT(message.destination_group().cidrs(), ElementsAre("192.0.2.0/24", "198.51.100.0/24"));
}

TEST(DestinationGroup, HasNamesInsteadOfBlocksOrBesideThem) {
  const ObjectSet set = Applied(
      Document("DestinationGroup", "g",
               "{cidrs: [192.0.2.0/24], names: [Data.example.org, \"*.cdn.example.org\"]}") +
      "---\n" + Document("DestinationGroup", "h", "{names: [a.cdn.example.org]}"));
  const v1::PolicyEntry entry = EntryOf(set, {"DestinationGroup", "g"});
  EXPECT_THAT(entry.destination_group().cidrs(), ElementsAre("192.0.2.0/24"));
  EXPECT_THAT(entry.destination_group().names(),
              ElementsAre("*.cdn.example.org", "data.example.org"));
  const auto object = set.Find({"DestinationGroup", "h"});
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(object->spec->ToJson(), R"({"names":["a.cdn.example.org"]})");
  const auto again = Plan(set, ObjectYaml(*set.Find({"DestinationGroup", "g"})));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->changes[0].action, ChangeAction::kUnchanged);
}

TEST(DestinationGroup, HasNoNameOfAnother) {
  const auto plan =
      Plan({}, Document("DestinationGroup", "a", "{names: [data.example.org]}") + "---\n" +
                   Document("DestinationGroup", "b", "{names: [DATA.example.org]}"));
  EXPECT_EQ(base::MessageOf(plan.status()),
            "f:9: spec.names: \"data.example.org\" is a name of DestinationGroup \"a\" (f:4) "
            "already: remove it from one of them");
}

TEST(DestinationGroup, HasNoMoreNamesThanNodesFollow) {
  std::string names = "{names: [a.example.org";
  for (int i = 1; i < 64; ++i) names += ", h" + std::to_string(i) + ".example.org";
  EXPECT_TRUE(Plan({}, Document("DestinationGroup", "a", names + "]}")).ok());
  const auto plan = Plan({}, Document("DestinationGroup", "a", names + ", b.example.org]}"));
  EXPECT_THAT(base::MessageOf(plan.status()),
              HasSubstr("f:4: spec.names: has 65 names, more than the 64 allowed"));
}

TEST(DestinationGroup, OverlapsNoOther) {
  const auto plan =
      Plan({}, Document("DestinationGroup", "a", "{cidrs: [192.0.2.0/24]}") + "---\n" +
                   Document("DestinationGroup", "b", "{cidrs: [192.0.2.128/25]}"));
  EXPECT_EQ(base::MessageOf(plan.status()),
            "f:9: spec.cidrs: 192.0.2.128/25 overlaps 192.0.2.0/24, a block of DestinationGroup "
            "\"a\" (f:4): change one of them");
}

TEST(DestinationGroup, IsOnTheInternet) {
  const auto plan = Plan({}, Document("DestinationGroup", "a", "{cidrs: [10.9.0.0/24]}") + "---\n" +
                                 Document("ClusterNetwork", "n", "{storage: [10.9.0.0/16]}"));
  EXPECT_EQ(base::MessageOf(plan.status()),
            "f:4: spec.cidrs: 10.9.0.0/24 lies in 10.9.0.0/16, a block of storage of "
            "ClusterNetwork \"n\" (f:9): groups are for the Internet, so nothing would be counted "
            "there; take it out");
}

TEST(Spokes, DoNotOverlapAcrossNetworks) {
  const ObjectSet set = Applied(Document("ClusterNetwork", "east", "{peerSpoke: [10.32.0.0/16]}"));
  const auto plan =
      Plan(set, Document("ClusterNetwork", "west", "\n  peerSpoke:\n    - 10.32.4.0/24"));
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::MessageOf(plan.status()),
            "f:6: spec.peerSpoke: 10.32.4.0/24 overlaps 10.32.0.0/16, a block of peerSpoke of "
            "ClusterNetwork \"east\" (applied before): change one of them");
  EXPECT_TRUE(Plan(set, Document("ClusterNetwork", "west", "{peerSpoke: [10.33.0.0/16]}")).ok());
}

TEST(Spokes, OverlapNeitherClusterNorHub) {
  for (const std::string other : {"cluster", "hub"}) {
    const auto plan = Plan({}, Document("ClusterNetwork", "x",
                                        "{" + other +
                                            ": [10.0.0.0/16], peerSpoke: "
                                            "[10.0.4.0/24]}"));
    EXPECT_THAT(base::MessageOf(plan.status()),
                HasSubstr("spec.peerSpoke: 10.0.4.0/24 overlaps 10.0.0.0/16, a block of " + other));
  }
}

TEST(Spokes, HoldNoAddressThatAgentsNeed) {
  const PolicyWorld world{.protected_addresses = {{*ip::Address::Parse("10.33.0.4"),
                                                   "at which agents reach this server"}}};
  const auto plan = Plan({}, Document("ClusterNetwork", "x", "{peerSpoke: [10.32.0.0/11]}"), world);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(plan.status()),
              HasSubstr("f:4: spec.peerSpoke: 10.32.0.0/11 holds 10.33.0.4, at which agents reach "
                        "this server: nodes drop all traffic with it"));
}

TEST(Spokes, AreNotThePlatform) {
  const auto plan = Plan({}, Document("ClusterNetwork", "x", "{peerSpoke: [127.0.0.0/8]}"));
  EXPECT_THAT(base::MessageOf(plan.status()), HasSubstr("f:4: spec.peerSpoke[0]: 127.0.0.0/8 lies "
                                                        "in 127.0.0.0/8, which is the platform's"));
  EXPECT_TRUE(Plan({}, Document("ClusterNetwork", "x", "{platform: [169.254.169.254/32]}")).ok());
}

TEST(Services, AreOfTheClusterAndOfNoPool) {
  const ObjectSet set =
      Applied(Document("ClusterNetwork", "x", "{cluster: [10.0.0.0/8], services: [10.96.0.0/12]}"));
  const auto object = set.Find({"ClusterNetwork", "x"});
  const v1::PolicyEntry message = EntryOf(set, object->key);
  EXPECT_THAT(message.cluster_network().services(), ElementsAre("10.96.0.0/12"));
  EXPECT_EQ(object->spec->ToJson(), R"({"cluster":["10.0.0.0/8"],"services":["10.96.0.0/12"]})");
  const auto pool = Plan(set, Document("Pool", "p", "{cidr: 10.96.4.0/24}"));
  EXPECT_EQ(base::MessageOf(pool.status()),
            "f:4: spec.cidr: 10.96.4.0/24 overlaps 10.96.0.0/12, a block of services of "
            "ClusterNetwork \"x\" (applied before): change one of them");
  EXPECT_FALSE(
      Plan({}, Document("ClusterNetwork", "y", "{hub: [10.0.0.0/8], services: [10.96.0.0/12]}"))
          .ok());
}

}  // namespace
}  // namespace spoke::ipam
