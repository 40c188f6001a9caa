// Tests of other programs on the node: cloud-init, udev, systemd-networkd, other network plugins.
#include "lib/node_checks/testing/healthy_node.h"

namespace spoke::node_checks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ForeignFile File(const std::string& path, const std::string& text) {
  return {path, path.substr(path.rfind('/') + 1), text, {}};
}

TEST(OtherNetworks, LeftoversAreNamedOncePerPlugin) {
  NodeFacts facts = HealthyNode();
  for (const char* name : {"cni0", "flannel.1", "cali1234", "cali5678", "cilium_host", "azure0"}) {
    facts.links.push_back({name, "", true, 1500});
  }
  const auto found = FindingsOf(facts, "other-networks");
  ASSERT_THAT(found, ElementsAre(Warning("cni0"), Warning("flannel.1"), Warning("azure0"),
                                 Warning("cilium_host"), Warning("cali1234")));
  EXPECT_THAT(found[4].what, HasSubstr("2 of them"));
}

TEST(OtherNetworks, OrdinaryDevicesAreNone) {
  NodeFacts facts = HealthyNode();
  for (const char* name : {"docker0", "ens3", "weave1", "tunl0", "kube-ipvs0"}) {
    facts.links.push_back({name, "", false, 1500});
  }
  EXPECT_THAT(FindingsOf(facts, "other-networks"), IsEmpty());
  facts.links[facts.links.size() - 2].up = true;  // Somebody uses tunl0.
  EXPECT_THAT(FindingsOf(facts, "other-networks"), ElementsAre(Warning("tunl0")));
}

TEST(CloudInit, MustLeaveSecondaryAddressesAlone) {
  NodeFacts facts = HealthyNode();
  facts.cloud_init = CloudInitFacts{.configures_addresses = true};
  EXPECT_THAT(FindingsOf(facts, "cloud-init"), ElementsAre(Warning("/etc/cloud/cloud.cfg")));
  facts.cloud_init->decided_by = "/etc/cloud/cloud.cfg.d/10.cfg";
  EXPECT_THAT(FindingsOf(facts, "cloud-init"),
              ElementsAre(Warning("/etc/cloud/cloud.cfg.d/10.cfg")));
  facts.cloud_init = CloudInitFacts{.unreadable = {"a.cfg: no YAML"}};
  EXPECT_EQ(FindingsOf(facts, "cloud-init").size(), 1U);
  facts.settings.azure = false;
  EXPECT_THAT(FindingsOf(facts, "cloud-init"), IsEmpty());
}

// This is udev's own default: the address with which a link was made is left alone.
TEST(UdevLink, ThePersistentPolicyIsNoTrapForLinksMadeWithAnAddress) {
  NodeFacts facts = HealthyNode();
  facts.link_files = {File("/usr/lib/systemd/network/99-default.link",
                           "[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep kernel\n"
                           "MACAddressPolicy=persistent\n")};
  EXPECT_THAT(FindingsOf(facts, "udev-link"), IsEmpty());
}

TEST(UdevLink, AFileThatChangesPodsLinksIsATrap) {
  const std::string path = "/etc/systemd/network/10-jumbo.link";
  NodeFacts facts = HealthyNode();
  facts.link_files = {File(path, "[Match]\nOriginalName=*\n[Link]\nMTUBytes=9000\n")};
  const auto found = FindingsOf(facts, "udev-link");
  ASSERT_THAT(found, ElementsAre(Warning(path)));
  EXPECT_THAT(found[0].what, HasSubstr("MTUBytes=9000"));
  // The first file that matches is the only one.
  facts.link_files.insert(facts.link_files.begin(),
                          File("/etc/systemd/network/00-spoke.link",
                               "[Match]\nOriginalName=spk*\n[Link]\nNamePolicy=keep\n"));
  EXPECT_THAT(FindingsOf(facts, "udev-link"), IsEmpty());
}

TEST(NetworkdNetwork, AFileThatTakesPodsLinksIsATrapWhereNetworkdRuns) {
  const std::string path = "/etc/systemd/network/20-all.network";
  NodeFacts facts = HealthyNode();
  facts.network_files = {File(path, "[Match]\nName=*\n[Network]\nDHCP=yes\n")};
  EXPECT_THAT(FindingsOf(facts, "networkd-network"), IsEmpty());
  facts.networkd_runs = true;
  EXPECT_THAT(FindingsOf(facts, "networkd-network"), ElementsAre(Warning(path)));
  facts.network_files[0].text += "[Link]\nUnmanaged=yes\n";
  EXPECT_THAT(FindingsOf(facts, "networkd-network"), IsEmpty());
  facts.network_files[0].text = "[Match]\nMACAddress=00:0d:3a:00:00:01\n";
  EXPECT_THAT(FindingsOf(facts, "networkd-network"), IsEmpty());
  facts.network_files[0].status = absl::PermissionDeniedError("no");
  EXPECT_THAT(FindingsOf(facts, "networkd-network"), ElementsAre(Warning(path)));
}

TEST(NetworkdForeign, IsToLeaveRoutesAndRulesOfOthers) {
  NodeFacts facts = HealthyNode();
  facts.networkd_runs = true;
  EXPECT_THAT(FindingsOf(facts, "networkd-foreign"), ElementsAre(Warning("systemd-networkd")));
  facts.networkd_conf = {
      File("/etc/systemd/networkd.conf", "[Network]\n#ManageForeignRoutes=no\n"),
      File("/etc/systemd/networkd.conf.d/50.conf", "[Network]\nManageForeignRoutes=no\n")};
  const auto found = FindingsOf(facts, "networkd-foreign");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].what, HasSubstr("removes rules"));
  facts.networkd_conf.push_back(File("/etc/systemd/networkd.conf.d/90.conf",
                                     "[Network]\nManageForeignRoutingPolicyRules = off\n"));
  EXPECT_THAT(FindingsOf(facts, "networkd-foreign"), IsEmpty());
}

}  // namespace
}  // namespace spoke::node_checks
