// Tests of doctor: as a table, as JSON, and by its exit code. What it says of devices and the
// kernel is this machine's, so only findings about files below a root of the test's own are looked
// at.
#include <filesystem>
#include <map>

#include "admin-cli/testing/command_fixture.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

class DoctorTest : public CommandTest {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(root_ + "/etc/cni/net.d");
    WriteFile("node/etc/resolv.conf", "");  // Nobody is asked.
    WriteFile("node/etc/cni/net.d/05-bridge.conf", R"({"name": "b", "type": "bridge"})");
  }
  const std::string root_ = dir_.File("node");
};

TEST_F(DoctorTest, AForeignConfigurationThatWinsBlocks) {
  const Outcome outcome = Run("doctor --before-install --root " + root_);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("blocking  cni-config"));
  EXPECT_THAT(outcome.out, HasSubstr("/etc/cni/net.d/05-bridge.conf"));
  EXPECT_THAT(outcome.out, HasSubstr("    mv /etc/cni/net.d/05-bridge.conf"));
  EXPECT_THAT(outcome.out, HasSubstr("pods will not work"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("networkd-network")));
  EXPECT_THAT(Run("doctor -v --before-install --root " + root_).out,
              HasSubstr("ok        networkd-network"));
}

TEST_F(DoctorTest, JsonHasFindingsAndChecks) {
  const auto value = Json("doctor --before-install --root " + root_);
  EXPECT_EQ(value["pods_will_work"], false);
  bool seen = false;
  for (const auto& finding : value["findings"]) {
    if (finding["check"] != "cni-config") continue;
    seen = true;
    EXPECT_EQ(finding["severity"], "blocking");
    EXPECT_EQ(finding["object"], "/etc/cni/net.d/05-bridge.conf");
    EXPECT_NE(finding["why"], "");
    EXPECT_NE(finding["remedy"], "");
  }
  EXPECT_TRUE(seen);
  EXPECT_GE(value["checks"].size(), 15U);
  EXPECT_EQ(Run("doctor -o yaml --before-install --root " + root_).code, 1);
}

TEST_F(DoctorTest, WhatIsNotCheckedIsSaid) {
  const std::string before_install = "doctor --before-install --root " + root_;
  EXPECT_THAT(Run(before_install).out, HasSubstr(" not made (-v), "));
  EXPECT_THAT(Run(before_install).out, Not(HasSubstr("dns-cluster")));
  EXPECT_THAT(Run(before_install + " -v").out,
              testing::ContainsRegex("not made +dns-cluster +node_checks.cluster_dns.servers"));
  std::map<std::string, std::string> states;
  const auto value = Json(before_install);
  for (const auto& check : value["checks"]) states[check["check"]] = check["state"];
  for (const char* id : {"dns-node", "dns-cluster", "metadata", "clock-server"}) {
    EXPECT_EQ(states[id], "not made") << id;
  }
}

// Nobody listens there on any machine: it is loopback, and a rare one of it.
TEST_F(DoctorTest, AResolverThatDoesNotAnswerIsAWarning) {
  WriteFile("node/etc/resolv.conf", "nameserver 127.255.255.254\n");
  const auto value = Json("doctor --before-install --root " + root_);
  std::string what;
  for (const auto& finding : value["findings"]) {
    if (finding["check"] != "dns-node") continue;
    EXPECT_EQ(finding["severity"], "warning");
    EXPECT_EQ(finding["object"], "127.255.255.254");
    what = finding["what"];
  }
  EXPECT_THAT(what, HasSubstr("is asked for localhost"));
}

TEST_F(DoctorTest, WhereSpokeIsInstalledItsPartsAreLookedFor) {
  variables_["HERE"] = "127.0.0.1";
  const std::string config = WriteFile("netagent.yaml", "server: ${HERE}:1\nnic: nosuch0\n");
  const auto value = Json("doctor --root " + root_ + " --config " + config);
  std::map<std::string, std::string> severities;
  for (const auto& finding : value["findings"]) {
    severities[finding["check"]] = finding["severity"];
  }
  for (const char* check : {"agent", "cni-plugin", "cni-bin-dir", "server", "nic"}) {
    EXPECT_EQ(severities[check], "blocking") << check;
  }
}

TEST_F(DoctorTest, AConfigurationThatIsBrokenIsAFinding) {
  const std::string config = WriteFile("netagent.yaml", "nic: eth0\nmtu: many\n");
  EXPECT_THAT(Run("doctor --root " + root_ + " --config " + config).out,
              HasSubstr("netagent.yaml:2: mtu"));
}

TEST_F(DoctorTest, WrongUsageIsTold) {
  EXPECT_EQ(Run("doctor --root " + root_ + "/nosuch").code, 2);
  EXPECT_EQ(Run("doctor --config " + root_ + "/nosuch").code, 2);
  EXPECT_EQ(Run("doctor --pods 0").code, 2);
  EXPECT_EQ(Run("doctor -o name --root " + root_).code, 2);
}

}  // namespace
}  // namespace spoke::ctl
