// Tests of a node's facts from a root directory made for the test. Devices and rules are the
// machine's, so nothing is asserted of these here: see tests/netns.
#include "lib/node_checks/facts/facts_reader.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/node_checks/examine.h"
#include "tests/support/temp_dir.h"

namespace spoke::node_checks {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::Pair;

class FactsReaderTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& text) {
    const std::string file = root_.File(path);
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file) << text;
  }
  NodeFacts Read(NodeSettings settings = {}) {
    settings.plugin = root_.File("own-plugin");
    FactsReader reader({.root = root_.path(),
                        .proc = root_.File("proc"),
                        .probe_kernel =
                            [this] {
                              ++probes_;
                              return kernel_;
                            }},
                       std::move(settings));
    (void)reader.Read();
    return reader.Read();
  }

  const testing_support::TempDir root_;
  std::map<KernelFeature, FeatureState> kernel_ = {
      {KernelFeature::kVeth, {FeatureState::Answer::kPresent, ""}}};
  int probes_ = 0;
};

TEST_F(FactsReaderTest, AnEmptyRootIsNoFailure) {
  const NodeFacts facts = Read();
  EXPECT_THAT(facts.sysctls, IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(facts.cni_status)) << facts.cni_status;
  EXPECT_FALSE(facts.bin_dir.exists);
  EXPECT_FALSE(facts.plugin.exists);
  EXPECT_TRUE(absl::IsNotFound(facts.agent)) << facts.agent;
  EXPECT_FALSE(facts.cloud_init.has_value());
  EXPECT_FALSE(facts.networkd_runs);
  EXPECT_FALSE(Examine(facts).pods_will_work());
}

TEST_F(FactsReaderTest, SysctlsAreNamedAsSysctlNamesThem) {
  Put("proc/sys/net/ipv4/ip_forward", "1\n");
  Put("proc/sys/net/ipv4/conf/eth0.7/rp_filter", "2\n");
  Put("proc/sys/net/netfilter/nf_conntrack_count", "42\n");
  Put("proc/net/stat/arp_cache", "entries  allocs\n0000001f  00000003\n0000001f  00000001\n");
  const NodeFacts facts = Read({.nic = "eth0.7"});
  EXPECT_THAT(facts.sysctls, ElementsAre(Pair("net.ipv4.conf.eth0/7.rp_filter", "2"),
                                         Pair("net.ipv4.ip_forward", "1"),
                                         Pair("net.netfilter.nf_conntrack_count", "42")));
  EXPECT_EQ(facts.connections, 42U);
  EXPECT_EQ(facts.neighbours, 31U);
}

TEST_F(FactsReaderTest, WhatIsCountedIsThatSinceTheLookBefore) {
  const std::string device = "sys/class/net/eth0/";
  const auto put = [&](int packets, int errors, int speed) {
    Put(device + "statistics/rx_packets", std::to_string(packets) + "\n");
    Put(device + "statistics/tx_packets", "5\n");
    Put(device + "statistics/rx_errors", std::to_string(errors) + "\n");
    Put(device + "carrier_down_count", "3\n");
    Put(device + "speed", std::to_string(speed) + "\n");
  };
  put(100, 2, 100'000);
  Put("proc/net/snmp", "Tcp: OutSegs RetransSegs\nTcp: 50 4\n");
  Put("proc/net/sockstat", "TCP: inuse 6 orphan 0 tw 1 alloc 8 mem 1\n");
  FactsReader reader({.root = root_.path(),
                      .proc = root_.File("proc"),
                      .probe_kernel = [this] { return kernel_; }},
                     {});
  const NodeFacts first = reader.Read();
  EXPECT_EQ(first.counted, std::nullopt);
  EXPECT_EQ(first.tcp_sockets, 7U);
  EXPECT_EQ(first.speed_mbit, 100'000U);
  put(130, 9, 25'000);
  const NodeFacts second = reader.Read();
  EXPECT_EQ(second.counted, (NetworkCounters{.packets = 30, .errors = 7}));
  EXPECT_EQ(second.speed_mbit, 25'000U);
  EXPECT_EQ(second.best_speed_mbit, 100'000U);
  put(1, 0, -1);
  const NodeFacts anew = reader.Read();
  EXPECT_EQ(anew.counted, std::nullopt) << "the device was made anew";
  EXPECT_EQ(anew.speed_mbit, std::nullopt);
}

TEST_F(FactsReaderTest, WhatPodsLinksCarriedIsReadForAnAgentThatCounts) {
  EXPECT_THAT(Read({.stage = Stage::kAgent}).link_packets, IsEmpty());
  Put("proc/net/dev",
      "Inter-|   Receive                            |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
      "  eth0: 90000    1000    0    0    0     0          0         0     9000    1000    0\n"
      "spk0123456789ab:    2100      30    1    2    0     0          0         0 840 12 0 0\n");
  EXPECT_THAT(Read({.stage = Stage::kAgent}).link_packets,
              ElementsAre(Pair("spk0123456789ab", 42)));
  EXPECT_THAT(Read({.counts = false, .stage = Stage::kAgent}).link_packets, IsEmpty());
  EXPECT_THAT(Read({.stage = Stage::kInstalled}).link_packets, IsEmpty());
}

TEST_F(FactsReaderTest, VirtualServicesAreThoseOfIpvs) {
  EXPECT_FALSE(Read().virtual_services);
  // This is as the kernel prints it: net/netfilter/ipvs/ip_vs_ctl.c.
  const std::string available =
      "IP Virtual Server version 1.2.1 (size=4096)\n"
      "Prot LocalAddress:Port Scheduler Flags\n"
      "  -> RemoteAddress:Port Forward Weight ActiveConn InActConn\n";
  Put("proc/net/ip_vs", available);
  EXPECT_FALSE(Read().virtual_services);
  Put("proc/net/ip_vs", available + "UDP  0A60000A:0035 rr\n");
  EXPECT_TRUE(Read().virtual_services);
}

TEST_F(FactsReaderTest, WhatRuntimesLoadIsReadInTheirOrder) {
  Put("etc/cni/net.d/10-spoke.conflist", "{}");
  Put("etc/cni/net.d/05-a.conf", "{");
  Put("etc/cni/net.d/05-a.conf.off", "{");
  std::filesystem::create_directories(root_.File("etc/cni/net.d/01-directory.conf"));
  std::filesystem::create_symlink("nowhere", root_.File("etc/cni/net.d/99-gone.json"));
  // Nobody would ever write into it.
  ASSERT_EQ(::mkfifo(root_.File("etc/cni/net.d/02-pipe.conf").c_str(), 0600), 0);
  const NodeFacts facts = Read();
  ASSERT_THAT(facts.cni_files, ElementsAre(Field(&ForeignFile::name, "05-a.conf"),
                                           Field(&ForeignFile::name, "10-spoke.conflist"),
                                           Field(&ForeignFile::name, "99-gone.json")));
  EXPECT_EQ(facts.cni_files[0].path, "/etc/cni/net.d/05-a.conf");
  EXPECT_EQ(facts.cni_files[0].text, "{");
  EXPECT_FALSE(facts.cni_files[2].status.ok());
}

TEST_F(FactsReaderTest, ThePluginIsComparedWithTheAgents) {
  Put("opt/cni/bin/spoke", "new");
  Put("own-plugin", "new");
  NodeFacts facts = Read();
  EXPECT_TRUE(facts.bin_dir.exists);
  EXPECT_GT(facts.bin_dir.free_bytes.value_or(0), 0U);
  EXPECT_TRUE(facts.plugin.exists);
  EXPECT_FALSE(facts.plugin.runs);
  EXPECT_EQ(facts.plugin.same_as_own, true);
  ASSERT_EQ(::chmod(root_.File("opt/cni/bin/spoke").c_str(), 0755), 0);
  Put("own-plugin", "newer");
  facts = Read();
  EXPECT_TRUE(facts.plugin.runs);
  EXPECT_EQ(facts.plugin.same_as_own, false);
  facts = Read({.bin_dir = ""});
  EXPECT_FALSE(facts.bin_dir.exists);
}

TEST_F(FactsReaderTest, ProgramsAreThoseThatRunWithTheFirstDirectoryThatHasThem) {
  for (const char* path : {"opt/cni/bin/portmap", "usr/lib/cni/portmap", "usr/lib/cni/tuning"}) {
    Put(path, "x");
    ASSERT_EQ(::chmod(root_.File(path).c_str(), 0755), 0);
  }
  Put("opt/cni/bin/README", "x");
  // The link leads to where only the node's own root leads.
  std::filesystem::create_symlink("/usr/bin/elsewhere", root_.File("opt/cni/bin/linked"));
  EXPECT_EQ(Read().cni_programs, (std::map<std::string, std::string>{{"portmap", "/opt/cni/bin"},
                                                                     {"linked", "/opt/cni/bin"},
                                                                     {"tuning", "/usr/lib/cni"}}));
  EXPECT_THAT(Read({.bin_dir = ""}).cni_programs, testing::IsEmpty());
}

// The mounts are those of the node's first process, whose view is the node's and not a container's.
TEST_F(FactsReaderTest, MountsAreTheNodesOwn) {
  Put("proc/1/mountinfo",
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:2 / /run rw - tmpfs none rw\n"
      "24 22 8:2 / /opt ro - xfs /dev/sdb rw\n");
  std::filesystem::create_directories(root_.File("opt/cni/bin"));
  const NodeFacts facts = Read();
  EXPECT_TRUE(facts.bin_dir.read_only);
  EXPECT_EQ(facts.bin_dir.file_system, "xfs");
  EXPECT_EQ(facts.state_dir.file_system, "tmpfs");
}

// A container that has only parts of the node has these as mounts of its own; what is mounted of
// the node's /proc is not the whole of it.
TEST_F(FactsReaderTest, WithoutTheNodesProcMountsAreTheContainersOwn) {
  Put("proc/sys/net/ipv4/ip_forward", "no number");
  FactsReader reader({.root = root_.path(), .probe_kernel = [this] { return kernel_; }},
                     {.state_dir = "/proc"});
  const NodeFacts facts = reader.Read();
  EXPECT_EQ(facts.state_dir.file_system, "proc");
  EXPECT_NE(facts.sysctls.at("net.ipv4.ip_forward"), "no number");
}

TEST_F(FactsReaderTest, SystemdsFilesComeInItsOrder) {
  Put("usr/lib/systemd/network/99-default.link", "default");
  Put("usr/lib/systemd/network/10-a.link", "hidden");
  Put("etc/systemd/network/10-a.link", "mine");
  Put("etc/systemd/network/10-a.network", "network");
  Put("etc/systemd/networkd.conf", "one");
  Put("usr/lib/systemd/networkd.conf.d/20.conf", "three");
  Put("etc/systemd/networkd.conf.d/10.conf", "two");
  NodeFacts facts = Read();
  EXPECT_THAT(facts.link_files,
              ElementsAre(Field(&ForeignFile::text, "mine"), Field(&ForeignFile::text, "default")));
  EXPECT_FALSE(facts.networkd_runs);
  Put("run/systemd/netif/state", "");
  facts = Read();
  EXPECT_TRUE(facts.networkd_runs);
  EXPECT_THAT(facts.network_files, ElementsAre(Field(&ForeignFile::text, "network")));
  EXPECT_THAT(facts.networkd_conf,
              ElementsAre(Field(&ForeignFile::text, "one"), Field(&ForeignFile::text, "two"),
                          Field(&ForeignFile::text, "three")));
}

TEST_F(FactsReaderTest, CloudInitIsReadBelowTheRoot) {
  Put("usr/bin/cloud-init", "");
  NodeFacts facts = Read();
  ASSERT_TRUE(facts.cloud_init.has_value());
  EXPECT_TRUE(facts.cloud_init->configures_addresses);
  Put("etc/cloud/cloud.cfg.d/9.cfg",
      "datasource: {Azure: {apply_network_config_for_secondary_ips: false}}");
  facts = Read();
  EXPECT_FALSE(facts.cloud_init->configures_addresses);
}

TEST_F(FactsReaderTest, TheKernelIsTriedAgainOnlyWhileSomethingIsMissing) {
  (void)Read();  // It is read twice.
  EXPECT_EQ(probes_, 1);
  kernel_[KernelFeature::kIfb] = {FeatureState::Answer::kMissing, "no"};
  (void)Read();
  EXPECT_EQ(probes_, 3);
}

}  // namespace
}  // namespace spoke::node_checks
