// Tests of Spoke's parts in their places, and of what else a runtime finds there.
#include <utility>

#include "lib/node_checks/testing/healthy_node.h"

namespace spoke::node_checks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ForeignFile File(const std::string& name, const std::string& text) {
  return {"/etc/cni/net.d/" + name, name, text, {}};
}
constexpr const char* kBridge = R"({"name": "cbr0", "type": "bridge"})";

NodeFacts With(const ForeignFile& file) {
  NodeFacts facts = HealthyNode();
  const bool before = file.name < facts.cni_files[0].name;
  facts.cni_files.insert(before ? facts.cni_files.begin() : facts.cni_files.end(), file);
  return facts;
}

TEST(NetworkConfigs, OneThatSortsBeforeOursWins) {
  const auto found = FindingsOf(With(File("05-bridge.conf", kBridge)), "cni-config");
  ASSERT_THAT(found, ElementsAre(Blocking("/etc/cni/net.d/05-bridge.conf")));
  EXPECT_THAT(found[0].what, HasSubstr("bridge"));
  EXPECT_THAT(found[0].remedy, HasSubstr("mv /etc/cni/net.d/05-bridge.conf"));
}

TEST(NetworkConfigs, OneThatSortsBehindOursIsOfNoMatter) {
  EXPECT_THAT(FindingsOf(With(File("87-podman.conflist",
                                   R"({"name": "p", "plugins": [{"type": "bridge"}]})")),
                         "cni-config"),
              IsEmpty());
}

// Names sort by their bytes: "1-" before "10-", capitals before small letters.
TEST(NetworkConfigs, OrderIsThatOfBytes) {
  EXPECT_EQ(FindingsOf(With(File("1-a.conf", kBridge)), "cni-config").size(), 1U);
  EXPECT_EQ(FindingsOf(With(File("10-Z.conf", kBridge)), "cni-config").size(), 1U);
  EXPECT_THAT(FindingsOf(With(File("9-a.conf", kBridge)), "cni-config"), IsEmpty());
}

TEST(NetworkConfigs, AnOlderFileOfOursDoesNotDisturb) {
  NodeFacts facts = With(File("05-spoke.conflist", HealthyNode().cni_files[0].text));
  EXPECT_THAT(FindingsOf(facts, "cni-config"), IsEmpty());
}

TEST(NetworkConfigs, ABrokenOneBeforeOursBlocksAndBehindItWarns) {
  EXPECT_THAT(FindingsOf(With(File("00-x.conflist", "{")), "cni-config"),
              ElementsAre(Blocking("/etc/cni/net.d/00-x.conflist")));
  EXPECT_THAT(FindingsOf(With(File("99-x.json", "[]")), "cni-config"),
              ElementsAre(Warning("/etc/cni/net.d/99-x.json")));
  ForeignFile unreadable = File("00-y.conf", "");
  unreadable.status = absl::PermissionDeniedError("Permission denied");
  EXPECT_THAT(FindingsOf(With(unreadable), "cni-config"),
              ElementsAre(Blocking("/etc/cni/net.d/00-y.conf")));
}

TEST(NetworkConfigs, WithoutOursPodsDoNotStartOnceSpokeIsInstalled) {
  NodeFacts facts = HealthyNode();
  facts.cni_files.clear();
  EXPECT_THAT(FindingsOf(facts, "cni-config"),
              ElementsAre(Blocking("/etc/cni/net.d/10-spoke.conflist")));
  for (const Stage stage : {Stage::kBeforeInstall, Stage::kAgent}) {
    facts.settings.stage = stage;
    EXPECT_THAT(FindingsOf(facts, "cni-config"), IsEmpty());
  }
  // One that will win is seen before ours is there.
  facts.cni_files = {File("05-bridge.conf", kBridge), File("20-bridge.conf", kBridge)};
  EXPECT_THAT(FindingsOf(facts, "cni-config"),
              ElementsAre(Blocking("/etc/cni/net.d/05-bridge.conf")));
}

TEST(NetworkConfigs, TheDirectoryIsThere) {
  NodeFacts facts = HealthyNode();
  facts.cni_files.clear();
  facts.cni_status = absl::NotFoundError("no");
  EXPECT_THAT(FindingsOf(facts, "cni-config"), ElementsAre(Blocking("/etc/cni/net.d")));
  facts.settings.stage = Stage::kBeforeInstall;
  EXPECT_THAT(FindingsOf(facts, "cni-config"), ElementsAre(Warning("/etc/cni/net.d")));
  facts.cni_status = absl::PermissionDeniedError("no");
  EXPECT_THAT(FindingsOf(facts, "cni-config"), ElementsAre(Warning("/etc/cni/net.d")));
  facts.settings.conf_dir.clear();  // The directory is not ours to look at.
  EXPECT_THAT(FindingsOf(facts, "cni-config"), IsEmpty());
}

TEST(BinDirectory, FullReadOnlyOrMissingBlocksWhereThereIsNoPlugin) {
  NodeFacts healthy = HealthyNode();
  healthy.plugin = {};
  const auto severity_of = [](const NodeFacts& facts) {
    const auto found = FindingsOf(facts, "cni-bin-dir");
    return found.size() == 1 ? std::string(NameOf(found[0].severity)) : "";
  };
  for (const bool has_plugin : {false, true}) {
    NodeFacts facts = healthy;
    facts.plugin = {.exists = has_plugin, .runs = has_plugin};
    const std::string wanted = has_plugin ? "warning" : "blocking";
    EXPECT_EQ(severity_of(facts), "");
    facts.bin_dir.free_bytes = 1000;
    EXPECT_EQ(severity_of(facts), wanted);
    facts.bin_dir.free_bytes.reset();
    facts.bin_dir.free_files = 0;
    EXPECT_EQ(severity_of(facts), wanted);
    facts.bin_dir.read_only = true;
    EXPECT_EQ(severity_of(facts), wanted);
    facts.bin_dir = {};
    EXPECT_EQ(severity_of(facts), wanted);
    facts.settings.stage = Stage::kBeforeInstall;
    EXPECT_EQ(severity_of(facts), "warning");
    facts.settings.bin_dir.clear();
    EXPECT_EQ(severity_of(facts), "");
  }
}

TEST(Chain, WhatIsChainedMustBeThere) {
  NodeFacts facts = HealthyNode();
  facts.cni_files[0].text = R"({"name": "spoke", "plugins": [{"type": "spoke"}, {"type": "portmap"},
                                {"type": "tuning"}]})";
  facts.cni_programs = {{"portmap", "/opt/cni/bin"}, {"tuning", "/opt/cni/bin"}};
  EXPECT_THAT(FindingsOf(facts, "cni-chain"), IsEmpty());
  facts.cni_programs.erase("portmap");
  const auto missing = FindingsOf(facts, "cni-chain");
  ASSERT_THAT(missing, ElementsAre(Blocking("/opt/cni/bin/portmap")));
  EXPECT_THAT(missing[0].what, HasSubstr("/etc/cni/net.d/10-spoke.conflist names it"));
  // Another runtime may look there too.
  facts.cni_programs["portmap"] = "/usr/lib/cni";
  const auto elsewhere = FindingsOf(facts, "cni-chain");
  ASSERT_THAT(elsewhere, ElementsAre(Warning("/opt/cni/bin/portmap")));
  EXPECT_THAT(elsewhere[0].remedy, HasSubstr("install -m 0755 /usr/lib/cni/portmap /opt/cni/bin/"));
  for (auto* const directory : {&facts.settings.conf_dir, &facts.settings.bin_dir}) {
    const std::string before = std::exchange(*directory, "");
    EXPECT_THAT(FindingsOf(facts, "cni-chain"), IsEmpty());
    *directory = before;
  }
  facts.cni_files.clear();
  EXPECT_THAT(FindingsOf(facts, "cni-chain"), IsEmpty());
}

TEST(Chain, TheBandwidthPluginDoesNotWorkInIt) {
  NodeFacts facts = HealthyNode();
  facts.cni_files[0].text =
      R"({"name": "spoke", "plugins": [{"type": "spoke"}, {"type": "bandwidth"}]})";
  facts.cni_programs = {{"bandwidth", "/opt/cni/bin"}};
  const auto found = FindingsOf(facts, "cni-chain");
  ASSERT_THAT(found, ElementsAre(Warning("/etc/cni/net.d/10-spoke.conflist")));
  EXPECT_THAT(found[0].remedy, HasSubstr("take it out of the chain"));
}

TEST(Plugin, IsThereRunsAndIsTheAgents) {
  NodeFacts facts = HealthyNode();
  facts.plugin.same_as_own = false;
  EXPECT_THAT(FindingsOf(facts, "cni-plugin"), ElementsAre(Warning("/opt/cni/bin/spoke")));
  facts.plugin.runs = false;
  EXPECT_THAT(FindingsOf(facts, "cni-plugin"), ElementsAre(Blocking("/opt/cni/bin/spoke")));
  facts.plugin = {};
  EXPECT_THAT(FindingsOf(facts, "cni-plugin"), ElementsAre(Blocking("/opt/cni/bin/spoke")));
  facts.settings.stage = Stage::kBeforeInstall;
  EXPECT_THAT(FindingsOf(facts, "cni-plugin"), IsEmpty());
}

TEST(Agent, AnswersOnceInstalled) {
  NodeFacts facts = HealthyNode();
  facts.agent = absl::NotFoundError("no such file");
  EXPECT_THAT(FindingsOf(facts, "agent"), ElementsAre(Blocking("/run/spoke/cni.sock")));
  facts.agent = absl::PermissionDeniedError("no");
  EXPECT_THAT(FindingsOf(facts, "agent"), ElementsAre(Warning("/run/spoke/cni.sock")));
  facts.settings.stage = Stage::kAgent;
  EXPECT_THAT(FindingsOf(facts, "agent"), IsEmpty());
}

TEST(AgentConfiguration, ThatCannotBeReadBlocks) {
  NodeFacts facts = HealthyNode();
  facts.configuration = absl::InvalidArgumentError("netagent.yaml:3: nic: must be text");
  EXPECT_THAT(FindingsOf(facts, "agent-config"), ElementsAre(Blocking("agent configuration")));
  facts.configuration = absl::NotFoundError("no file");
  EXPECT_THAT(FindingsOf(facts, "agent-config"), ElementsAre(Warning("agent configuration")));
}

TEST(StateDirectory, IsOnTmpfs) {
  NodeFacts facts = HealthyNode();
  facts.state_dir.file_system = "ext4";
  EXPECT_THAT(FindingsOf(facts, "state-dir"), ElementsAre(Warning("/run/spoke/netagent")));
  facts.state_dir.file_system = "";  // The file system is not known.
  EXPECT_THAT(FindingsOf(facts, "state-dir"), IsEmpty());
}

TEST(Server, AwayBlocksANodeThatHasNeverServed) {
  NodeFacts facts = HealthyNode();
  facts.server = absl::NotFoundError("'ipam.example' has no address");
  EXPECT_THAT(FindingsOf(facts, "server"), ElementsAre(Warning("ipam.example:7443")));
  facts.cni_files.clear();
  EXPECT_THAT(FindingsOf(facts, "server"), ElementsAre(Blocking("ipam.example:7443")));
  facts.settings.stage = Stage::kAgent;  // The agent asks, which has the session itself.
  EXPECT_THAT(FindingsOf(facts, "server"), IsEmpty());
}

}  // namespace
}  // namespace spoke::node_checks
