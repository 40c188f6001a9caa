// Each kind: what its files may say, what comes of it, and how it refuses the rest.
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/policy/kind.h"
#include "ipam-server/policy/kinds/pool.h"
#include "ipam-server/policy/kinds/team.h"
#include "ipam-server/policy/object_text.h"
#include "ipam-server/policy/testing/kinds_for_test.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_P(RefusedSpecTest, SaysWhereWhatAndWhatToDo) {
  const Refused& c = GetParam();
  const auto plan = Plan({}, Document(c.kind, "x", c.spec));
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(base::MessageOf(plan.status()), std::string_view(c.want));
}

INSTANTIATE_TEST_SUITE_P(
    Pool, RefusedSpecTest,
    testing::Values(
        Refused{"NoCidr", "Pool", "{vnet: v}", "f:4: spec.cidr: is required but missing"},
        Refused{"HostBits", "Pool", "{cidr: 10.1.0.5/16}",
                "f:4: spec.cidr: \"10.1.0.5/16\" is not a CIDR block: bits are set behind the "
                "length; did you mean 10.1.0.0/16?"},
        Refused{"UnknownKey", "Pool", "{cidr: 10.1.0.0/16, reserved: 3}",
                "f:4: spec.reserved: unknown key; known here: blockPrefixLength, cidr, namespaces, "
                "nodeAddresses, nodeLabels, reserveFirst, reserveLast, vnet"},
        Refused{"MistypedKey", "Pool", "{cidr: 10.1.0.0/16, reserveLats: 3}",
                "f:4: spec.reserveLats: unknown key; did you mean \"reserveLast\"?"},
        Refused{"NothingLeft", "Pool", "{cidr: 10.1.0.0/30}",
                "f:4: spec.cidr: 10.1.0.0/30 has no address left without the 4 reserved first "
                "(reserveFirst) and 1 last (reserveLast): take a larger one or reserve fewer"},
        Refused{
            "NoWholeBlock", "Pool", "{cidr: 10.1.0.0/27, blockPrefixLength: 28}",
            "f:4: spec.cidr: 10.1.0.0/27 has no whole block of /28 left without the 4 reserved "
            "first (reserveFirst) and 1 last (reserveLast): take a larger one or reserve fewer"},
        Refused{"BlockTooLarge", "Pool", "{cidr: 10.1.0.0/24, blockPrefixLength: 24}",
                "f:4: spec.blockPrefixLength: must be from 25 to 32 in a pool of 10.1.0.0/24, not "
                "24"},
        Refused{"BlockTooLong", "Pool", "{cidr: 10.1.0.0/24, blockPrefixLength: 64}",
                "f:4: spec.blockPrefixLength: must be from 25 to 32 in a pool of 10.1.0.0/24, not "
                "64"},
        Refused{"BlockOfOneAddress", "Pool",
                "{cidr: 10.1.0.0/32, blockPrefixLength: 32, reserveFirst: 0, reserveLast: 0}",
                "f:4: spec.blockPrefixLength: 10.1.0.0/32 is one address and has no blocks: remove "
                "it"},
        Refused{"MinAboveMax", "Pool", "{cidr: 10.1.0.0/24, nodeAddresses: {min: 9, max: 8}}",
                "f:4: spec.nodeAddresses.min: 9 is more than max, 8: lower it, or raise max"},
        Refused{"SpareAsText", "Pool", "{cidr: 10.1.0.0/24, nodeAddresses: {spare: half}}",
                "f:4: spec.nodeAddresses.spare: must be a number from 0 up to 100, not \"half\""},
        Refused{"NodeLabelKey", "Pool", "{cidr: 10.1.0.0/24, nodeLabels: {-zone: 2}}",
                "f:4: spec.nodeLabels.-zone: is not a label of a node: write it as zone, or as "
                "example.com/zone"},
        Refused{"NodeLabelValue", "Pool", "{cidr: 10.1.0.0/24, nodeLabels: {zone: a b}}",
                "f:4: spec.nodeLabels.zone: the value of a label must be 1 to 63 letters, digits, "
                "'-', '_' and '.', with a letter or digit at both ends, not \"a b\""},
        Refused{
            "Namespace", "Pool", "{cidr: 10.1.0.0/24, namespaces: [A]}",
            "f:4: spec.namespaces[0]: a namespace: must be 1 to 63 of a-z, 0-9 and '-', with no "
            "'-' at either end, not \"A\""},
        Refused{"NamespaceTwice", "Pool", "{cidr: 10.1.0.0/24, namespaces: [a, a]}",
                "f:4: spec.namespaces[1]: \"a\" is listed twice: line 4 has it already; remove "
                "one"},
        Refused{"Vnet", "Pool", "{cidr: 10.1.0.0/24, vnet: a b}",
                "f:4: spec.vnet: must be the name or the id of a virtual network: up to 512 "
                "letters, digits and signs of ASCII, without spaces"},
        Refused{"SeveralAtOnce", "Pool", "{cidr: x, reserveFirst: -1, vnet: }",
                "f:4: spec.cidr: \"x\" is not a CIDR block: write it as address/length\n"
                "f:4: spec.reserveFirst: must be a whole number from 0 to 4294967295, not \"-1\"\n"
                "f:4: spec.vnet: has no value: it must be text; remove the key to get the "
                "default"}),
    NameOfCase);

INSTANTIATE_TEST_SUITE_P(
    ClusterNetwork, RefusedSpecTest,
    testing::Values(
        Refused{"SaysNothing", "ClusterNetwork", "{}",
                "f:4: spec: says nothing: list the blocks of cluster, hub, peerSpoke, platform, "
                "storage or services"},
        Refused{"OnlyEmptyLists", "ClusterNetwork", "{hub: []}",
                "f:4: spec: says nothing: list the blocks of cluster, hub, peerSpoke, platform, "
                "storage or services"},
        Refused{"HostBits", "ClusterNetwork", "{hub: [10.1.0.0/16, 10.2.0.1/16]}",
                "f:4: spec.hub[1]: \"10.2.0.1/16\" is not a CIDR block: bits are set behind the "
                "length; did you mean 10.2.0.0/16?"},
        Refused{"NotAList", "ClusterNetwork", "{hub: 10.1.0.0/16}",
                "f:4: spec.hub: must be a list, not a single value"},
        Refused{"Twice", "ClusterNetwork", "{hub: [10.1.0.0/16, 10.1.0.0/16]}",
                "f:4: spec.hub[1]: \"10.1.0.0/16\" is listed twice: line 4 has it already; remove "
                "one"},
        Refused{"OwnClassesOverlap", "ClusterNetwork",
                "{hub: [10.0.0.0/8], storage: [10.9.0.0/20]}",
                "f:4: spec.storage: 10.9.0.0/20 overlaps 10.0.0.0/8, a block of hub of "
                "ClusterNetwork \"x\" (f:4): change one of them"},
        Refused{"EstablishedWithoutPeers", "ClusterNetwork",
                "{hub: [10.1.0.0/16], established: keep}",
                "f:4: spec.established: means nothing without peerSpoke, with which alone nothing "
                "may be connected: remove it, or list peerSpoke"},
        Refused{"EstablishedAsOther", "ClusterNetwork",
                "{peerSpoke: [10.1.0.0/16], established: yes}",
                "f:4: spec.established: must be cut or keep, not \"yes\""},
        Refused{"ProbeOutside", "ClusterNetwork",
                "{hub: [10.8.0.0/16], probes: {hub: [10.9.0.10:443]}}",
                "f:4: spec.probes.hub[0]: 10.9.0.10:443 is in no block of hub: list its block "
                "there, or name another target"},
        Refused{"ProbeOfAnotherClass", "ClusterNetwork",
                "{hub: [10.8.0.0/16], probes: {peerSpoke: [10.8.0.10:443]}}",
                "f:4: spec.probes.peerSpoke[0]: 10.8.0.10:443 is in no block of peerSpoke: list "
                "its block there, or name another target"},
        Refused{"ProbeWithoutAPort", "ClusterNetwork",
                "{hub: [10.8.0.0/16], probes: {hub: [10.8.0.10]}}",
                "f:4: spec.probes.hub[0]: '10.8.0.10' is no address with a port: write "
                "ADDRESS:PORT or [ADDRESS]:PORT"},
        Refused{"ProbeTwice", "ClusterNetwork",
                "{hub: [10.8.0.0/16], probes: {hub: [10.8.0.10:443, 10.8.0.10:443]}}",
                "f:4: spec.probes.hub[1]: \"10.8.0.10:443\" is listed twice: line 4 has it "
                "already; remove one"},
        Refused{"TooManyProbes", "ClusterNetwork",
                "{hub: [10.8.0.0/16], probes: {hub: [10.8.0.1:1, 10.8.0.1:2, 10.8.0.1:3, "
                "10.8.0.1:4, 10.8.0.1:5, 10.8.0.1:6, 10.8.0.1:7, 10.8.0.1:8, 10.8.0.1:9]}}",
                "f:4: spec.probes.hub: lists 9 targets, more than the 8 that nodes try: remove "
                "some"},
        Refused{"UnknownProbes", "ClusterNetwork",
                "{hub: [10.8.0.0/16], probes: {storage: [10.8.0.10:443]}}",
                "f:4: spec.probes.storage: unknown key; known here: hub, peerSpoke"}),
    NameOfCase);

INSTANTIATE_TEST_SUITE_P(
    Team, RefusedSpecTest,
    testing::Values(
        Refused{"NoNamespaces", "Team", "{}", "f:4: spec.namespaces: is required but missing"},
        Refused{"EmptyNamespaces", "Team", "{namespaces: []}",
                "f:4: spec.namespaces: needs at least one namespace; delete the team if "
                "it has none"},
        Refused{"BadNamespace", "Team", "{namespaces: [kube_system]}",
                "f:4: spec.namespaces[0]: a namespace: must be 1 to 63 of a-z, 0-9 and "
                "'-', with no '-' at either end, not \"kube_system\""}),
    NameOfCase);

TEST(Kinds, AreInOrderAndFound) {
  std::string last;
  for (const Kind& kind : Kinds()) {
    EXPECT_LT(last, kind.name);
    EXPECT_EQ(FindKind(kind.name), &kind);
    last = kind.name;
  }
  EXPECT_EQ(FindKind("pool"), nullptr);
  EXPECT_EQ(KnownKinds(),
            "BandwidthBudget, BandwidthLimit, ClusterNetwork, DestinationGroup, EgressPolicy, "
            "NodeRemedy, Pool, Team");
}

TEST(Pool, ReadsEveryField) {
  const ObjectSet set = Applied(Document(
      "Pool", "p",
      "{cidr: 10.1.0.0/16, reserveFirst: 16, reserveLast: 2, blockPrefixLength: 28, vnet: v, "
      "nodeLabels: {zone: 2, example.com/gpu: h100}, namespaces: [b, a], "
      "nodeAddresses: {min: 1, batch: 2, spare: 1.5, max: 3}}"));
  PoolSpec want;
  want.name = "p";
  want.cidr = *ip::Prefix::Parse("10.1.0.0/16");
  want.reserve_first = 16;
  want.reserve_last = 2;
  want.block_length = 28;
  want.vnet = "v";
  want.node_labels = {{"zone", "2"}, {"example.com/gpu", "h100"}};
  want.namespaces = {"a", "b"};
  want.target = TargetPolicy{.min = 1, .batch = 2, .spare = 1.5, .max = 3};
  EXPECT_THAT(PoolsOf(set), ElementsAre(want));
}

TEST(Pool, HasDefaultsAndWritesThemDown) {
  const ObjectSet set =
      Applied(Document("Pool", "p", "{cidr: fd00::/64, nodeAddresses: {max: 20}}"));
  const PolicyObject& object = *set.Find({"Pool", "p"});
  ASSERT_NE(PoolOf(object), nullptr);
  EXPECT_EQ(PoolOf(object)->reserve_first, 4U);
  EXPECT_EQ(object.spec->ToJson(),
            "{\"cidr\":\"fd00::/64\",\"nodeAddresses\":{\"batch\":16,\"max\":20,\"min\":16,"
            "\"spare\":0.5},\"reserveFirst\":4,\"reserveLast\":1}");
  EXPECT_FALSE(object.spec->ForNodes(object.key).has_value());
}

TEST(Pool, OverlapsNeitherAnotherPoolNorAnotherClassOfTraffic) {
  const std::string pool = Document("Pool", "p", "{cidr: 10.1.0.0/16}");
  auto plan = Plan({}, pool + "---\n" + Document("Pool", "q", "{cidr: 10.1.4.0/24}"));
  EXPECT_EQ(
      base::MessageOf(plan.status()),
      "f:9: spec.cidr: 10.1.4.0/24 overlaps 10.1.0.0/16, the cidr of Pool \"p\" (f:4): change "
      "one of them");
  plan = Plan({}, pool + "---\n" + Document("ClusterNetwork", "c", "{hub: [10.0.0.0/8]}"));
  EXPECT_EQ(base::MessageOf(plan.status()),
            "f:9: spec.hub: 10.0.0.0/8 overlaps 10.1.0.0/16, the cidr of Pool \"p\" (f:4): change "
            "one of them");
  plan = Plan({}, pool + "---\n" + Document("ClusterNetwork", "c", "{cluster: [10.0.0.0/8]}"));
  EXPECT_TRUE(plan.ok()) << plan.status();
}

struct PoolChange {
  const char* name;
  const char* after;
  const char* want;  // Part of the message; "" when it is allowed.
};
std::ostream& operator<<(std::ostream& out, const PoolChange& c) { return out << c.name; }

class UsedPoolTest : public testing::TestWithParam<PoolChange> {};

TEST_P(UsedPoolTest, ChangesOnlyAroundWhatIsHeld) {
  const ObjectSet set = Applied(Document("Pool", "p", "{cidr: 10.1.0.0/24}"));
  PolicyWorld world;
  world.used[{"Pool", "p"}] = {
      .held = 3, .lowest = ip::Address::V4(0x0A010005), .highest = ip::Address::V4(0x0A010064)};
  const PoolChange& c = GetParam();
  const auto plan = Plan(set, Document("Pool", "p", c.after), world);
  if (*c.want == '\0') {
    EXPECT_TRUE(plan.ok()) << plan.status();
    return;
  }
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(plan.status()), HasSubstr(c.want));
  EXPECT_TRUE(Plan(set, Document("Pool", "p", c.after)).ok()) << "it may while nothing is used";
}

INSTANTIATE_TEST_SUITE_P(
    Cases, UsedPoolTest,
    testing::Values(
        PoolChange{"Grows", "{cidr: 10.1.0.0/16}", ""},
        PoolChange{"ShrinksOutsideTheUsed", "{cidr: 10.1.0.0/25}", ""},
        PoolChange{"ShrinksUnderTheUsed", "{cidr: 10.1.0.0/26}",
                   "f:4: spec: 3 addresses of pool \"p\" are in use, so it cannot shrink to "
                   "10.1.0.0/26, where 10.1.0.100 would no longer be usable; drain the nodes that "
                   "have them first"},
        PoolChange{"Moves", "{cidr: 10.2.0.0/16}", "10.1.0.5 would no longer be usable"},
        PoolChange{"ReservesUsed", "{cidr: 10.1.0.0/24, reserveFirst: 6}",
                   "10.1.0.5 would no longer"},
        PoolChange{"Blocks", "{cidr: 10.1.0.0/24, blockPrefixLength: 28}",
                   "the length of its blocks cannot change"},
        PoolChange{"AnotherVnet", "{cidr: 10.1.0.0/24, vnet: other}",
                   "it cannot move to another vnet"},
        PoolChange{"OtherNodes", "{cidr: 10.1.0.0/24, nodeLabels: {zone: 1}}", ""}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Pool, CannotBeDeletedWhileUsed) {
  const ObjectSet set = Applied(Document("Pool", "p", "{cidr: 10.1.0.0/24}"));
  PolicyWorld world;
  world.used[{"Pool", "p"}] = {
      .held = 3, .lowest = ip::Address::V4(0x0A010005), .highest = ip::Address::V4(0x0A010064)};
  const std::vector<ObjectKey> keys = {{"Pool", "p"}};
  EXPECT_EQ(PlanDelete(set, keys, world, KindsTime()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(PlanDelete(set, keys, {}, KindsTime()).ok());
}

TEST(Pool, OfTheConfigurationIsRespected) {
  PoolSpec spec;
  spec.name = "default";
  spec.cidr = *ip::Prefix::Parse("10.1.0.0/16");
  PolicyWorld world;
  world.configured.push_back(ConfiguredPool(spec));
  const auto plan = Plan({}, Document("Pool", "p", "{cidr: 10.1.2.0/24}"), world);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(plan.status()),
              HasSubstr("the cidr of Pool \"default\" (in the server's configuration)"));
}

TEST(ClusterNetwork, GoesToNodesWhole) {
  const ObjectSet set =
      Applied(Document("ClusterNetwork", "main",
                       "{cluster: [10.2.0.0/16, 10.1.0.0/16], hub: [fd00::/8], peerSpoke: "
                       "[10.3.0.0/16], platform: [169.254.169.254/32], storage: [10.4.0.0/16]}"));
  const PolicyObject& object = *set.Find({"ClusterNetwork", "main"});
  const auto entry = object.spec->ForNodes(object.key);
  ASSERT_TRUE(entry.has_value());
  v1::PolicyEntry message;
  ASSERT_TRUE(message.ParseFromString(entry->value));
  EXPECT_EQ(message.key(), "ClusterNetwork/main");
  const v1::ClusterNetworkPolicy& policy = message.cluster_network();
  EXPECT_THAT(policy.cluster(), ElementsAre("10.1.0.0/16", "10.2.0.0/16"));
  EXPECT_THAT(policy.hub(), ElementsAre("fd00::/8"));
  EXPECT_THAT(policy.peer_spoke(), ElementsAre("10.3.0.0/16"));
  EXPECT_THAT(policy.platform(), ElementsAre("169.254.169.254/32"));
  EXPECT_THAT(policy.storage(), ElementsAre("10.4.0.0/16"));
}

TEST(ClusterNetwork, SaysWhatBecomesOfConnectionsOnlyWhereItWasSaid) {
  const auto said = [](const std::string& text) {
    const ObjectSet set =
        Applied(Document("ClusterNetwork", "main", "{peerSpoke: [10.32.0.0/11]" + text + "}"));
    const PolicyObject& object = *set.Find({"ClusterNetwork", "main"});
    EXPECT_EQ(ObjectYaml(object).find("established") != std::string::npos, !text.empty());
    return EntryOf(set, object.key).cluster_network().established();
  };
  EXPECT_EQ(said(""), v1::ESTABLISHED_UNSPECIFIED);
  EXPECT_EQ(said(", established: cut"), v1::CUT);
  EXPECT_EQ(said(", established: keep"), v1::KEEP);
}

TEST(ClusterNetwork, SaysWhatNodesTryOnlyWhereItWasSaid) {
  const auto applied = [](const std::string& text) {
    return Applied(
        Document("ClusterNetwork", "main",
                 "{hub: [10.8.0.0/16, fd08::/16], peerSpoke: [10.32.0.0/11]" + text + "}"));
  };
  const ObjectKey key{"ClusterNetwork", "main"};
  EXPECT_EQ(ObjectYaml(*applied("").Find(key)).find("probes"), std::string::npos);
  const ObjectSet set =
      applied(", probes: {hub: ['[fd08::1]:443', 10.8.0.10:443], peerSpoke: [10.32.0.1:22]}");
  const std::string yaml = ObjectYaml(*set.Find(key));
  EXPECT_THAT(yaml, HasSubstr("probes:"));
  const v1::ClusterNetworkPolicy policy = EntryOf(set, key).cluster_network();
  EXPECT_THAT(policy.hub_probes(), ElementsAre("10.8.0.10:443", "[fd08::1]:443"));
  EXPECT_THAT(policy.peer_spoke_probes(), ElementsAre("10.32.0.1:22"));
  // What is printed is read as the same object.
  const auto again = Plan(set, yaml);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(EntryOf(Applied(yaml), key).cluster_network().SerializeAsString(),
            policy.SerializeAsString());
}

TEST(ClusterNetwork, ClassesAreApartAcrossObjects) {
  const auto plan = Plan({}, Document("ClusterNetwork", "a", "{cluster: [10.0.0.0/8]}") + "---\n" +
                                 Document("ClusterNetwork", "b",
                                          "{cluster: [10.0.0.0/16],\n  storage: [10.9.0.0/20]}"));
  EXPECT_EQ(base::MessageOf(plan.status()),
            "f:10: spec.storage: 10.9.0.0/20 overlaps 10.0.0.0/8, a block of cluster of "
            "ClusterNetwork \"a\" (f:4): change one of them");
}

TEST(Team, GoesToNodesWhole) {
  const ObjectSet set = Applied(Document("Team", "vision", "{namespaces: [b, a]}"));
  const PolicyObject& object = *set.Find({"Team", "vision"});
  const v1::PolicyEntry message = EntryOf(set, object.key);
  EXPECT_EQ(message.key(), "Team/vision");
  EXPECT_THAT(message.team().namespaces(), ElementsAre("a", "b"));
  EXPECT_EQ(PoolOf(object), nullptr);
}

TEST(Team, IsFoundByItsNamespaces) {
  const ObjectSet set = Applied(Document("Team", "vision", "{namespaces: [b, a]}") + "---\n" +
                                Document("Team", "language", "{namespaces: [c]}"));
  EXPECT_EQ(TeamsByNamespace(set), (std::map<std::string, std::string>{
                                       {"a", "vision"}, {"b", "vision"}, {"c", "language"}}));
}

TEST(Team, ANamespaceBelongsToOne) {
  const ObjectSet set = Applied(Document("Team", "vision", "{namespaces: [a, b]}"));
  const auto plan = Plan(set, Document("Team", "language", "{namespaces:\n  - c\n  - b}"));
  // Flow and block style do not mix; the file is wrong in itself.
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  const auto clash = Plan(set, Document("Team", "language", "\n  namespaces:\n    - c\n    - b"));
  EXPECT_EQ(clash.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      base::MessageOf(clash.status()),
      "f:7: spec.namespaces: \"b\" is a namespace of Team \"vision\" (applied before) already: "
      "remove it from one of them");
}

}  // namespace
}  // namespace spoke::ipam
