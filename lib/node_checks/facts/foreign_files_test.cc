// Tests of others' files: network configurations, systemd's files, the table of mounts.
#include "lib/node_checks/facts/foreign_files.h"

#include <string>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::node_checks {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NetworkConfigName, IsOneThatRuntimesLoad) {
  for (const char* name : {"10-a.conf", "a.conflist", "b.json"}) {
    EXPECT_TRUE(IsNetworkConfigName(name)) << name;
  }
  for (const char* name : {"10-a.conf.off", "a.conflist.tmp", "conf", ""}) {
    EXPECT_FALSE(IsNetworkConfigName(name)) << name;
  }
}

TEST(NetworkConfig, ListAndSinglePluginAreToldByTheName) {
  const char* const list = R"({"name": "n", "plugins": [{"type": "a"}, {"type": "b"}]})";
  EXPECT_TRUE(ReadNetworkConfig("x.conflist", list).usable);
  EXPECT_THAT(ReadNetworkConfig("x.conflist", list).plugins, ElementsAre("a", "b"));
  EXPECT_FALSE(ReadNetworkConfig("x.conf", list).usable);
  EXPECT_TRUE(ReadNetworkConfig("x.json", R"({"type": "bridge"})").usable);
}

TEST(NetworkConfig, WhatNoRuntimeTakesSaysWhy) {
  for (const char* text :
       {"", "{", "[]", "7", R"({"name": "n"})", R"({"name": "n", "plugins": []})",
        R"({"name": "n", "plugins": {}})", R"({"name": "n", "plugins": [7]})",
        R"({"name": "n", "plugins": [{"type": 7}]})", R"({"plugins": [{"type": "a"}]})"}) {
    const NetworkConfig config = ReadNetworkConfig("x.conflist", text);
    EXPECT_FALSE(config.usable) << text;
    EXPECT_NE(config.problem, "") << text;
  }
}

TEST(SystemdFile, SettingsAreReadWithTheirSections) {
  EXPECT_THAT(ReadSystemdFile("Lost=1\n# c\n[Match]\n Name = en* \\\n# c\n  eth0\n\n; c\n"
                              "[Link]\r\nMTUBytes=1500\r\nnothing\n[Match\n"),
              ElementsAre(SystemdSetting{"Match", "Name", "en*  eth0"},
                          SystemdSetting{"Link", "MTUBytes", "1500"}));
  EXPECT_THAT(ReadSystemdFile(""), IsEmpty());
  EXPECT_EQ(LastValue(ReadSystemdFile("[A]\nk=1\nk=2\n[B]\nk=3\n"), "A", "k"), "2");
}

TEST(SystemdFile, PatternsMatchAsSystemdsDo) {
  EXPECT_TRUE(PatternsMatch("en* spk*", "spk1"));
  EXPECT_FALSE(PatternsMatch("en* eth0", "spk1"));
  EXPECT_FALSE(PatternsMatch("* !spk*", "spk1"));
  EXPECT_TRUE(PatternsMatch("!en*", "spk1"));
  EXPECT_FALSE(PatternsMatch("", "spk1"));
  EXPECT_FALSE(PatternsMatch("[", "spk1"));
}

TEST(SystemdFile, APodsLinkIsAVethWithANameOfOurs) {
  const auto matches = [](const char* text) {
    return MatchesPodLink(ReadSystemdFile(text), "spk0123456789ab");
  };
  EXPECT_TRUE(matches("[Match]\nOriginalName=*\n"));
  EXPECT_TRUE(matches("[Match]\nKind=veth\n"));
  EXPECT_TRUE(matches("[Match]\nType=ether\nVirtualization=yes\n"));
  EXPECT_FALSE(matches("[Match]\nKind=!veth\nName=*\n"));
  EXPECT_FALSE(matches("[Match]\nType=wlan\n"));
  EXPECT_FALSE(matches("[Match]\nPath=pci-*\n"));
  EXPECT_FALSE(matches("[Match]\nDriver=hv_netvsc\n"));
  EXPECT_FALSE(matches("[Network]\nDHCP=yes\n"));
}

TEST(SystemdFile, BooleansAreSystemds) {
  EXPECT_TRUE(IsTrue("YES", false));
  EXPECT_FALSE(IsTrue("off", true));
  EXPECT_TRUE(IsTrue("perhaps", true));
}

constexpr const char* kMounts =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "23 22 0:20 / /run rw,nosuid shared:5 master:1 - tmpfs tmpfs rw,size=8k\n"
    "24 22 8:2 / /opt/cni ro,relatime - xfs /dev/sdb rw\n"
    "25 22 8:3 / /mnt/a\\040b rw - ext4 /dev/sdc ro\n"
    "rubbish\n";

TEST(MountTable, TheLongestPointAboveDecides) {
  EXPECT_EQ(FindMount(kMounts, "/etc/cni")->file_system, "ext4");
  EXPECT_EQ(FindMount(kMounts, "/run/spoke")->file_system, "tmpfs");
  EXPECT_EQ(FindMount(kMounts, "/runner")->point, "/");
  EXPECT_TRUE(FindMount(kMounts, "/opt/cni/bin")->read_only);
  EXPECT_FALSE(FindMount(kMounts, "/opt")->read_only);
  // The file system itself is read-only.
  EXPECT_TRUE(FindMount(kMounts, "/mnt/a b/c")->read_only);
  EXPECT_FALSE(FindMount("", "/").has_value());
}

TEST(MountTable, OfTwoOnOnePointTheLastIsSeen) {
  const std::string twice = fmt::format("{}30 22 0:9 / /opt/cni rw - tmpfs none rw\n", kMounts);
  EXPECT_EQ(FindMount(twice, "/opt/cni/bin")->file_system, "tmpfs");
}

}  // namespace
}  // namespace spoke::node_checks
