#include "netagent/node/node_setup.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

// A directory in the shape of /proc/sys.
class NodeSetupTest : public testing::Test {
 protected:
  void Set(const std::string& path, const std::string& value) {
    const std::filesystem::path file = dir_.File(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << value << "\n";
  }
  // The real files replace what is written to them; these keep what is behind it.
  std::string Get(const std::string& path) { return os::ReadFile(dir_.File(path)).value(); }
  NodeSetupReport Prepare() { return PrepareNode(dir_.path()); }

  const testing_support::TempDir dir_;
};

TEST_F(NodeSetupTest, TurnsForwardingOnOnceForBothFamilies) {
  Set("net/ipv4/ip_forward", "0");
  Set("net/ipv6/conf/all/forwarding", "0");
  const NodeSetupReport first = Prepare();
  EXPECT_TRUE(first.failed.empty());
  EXPECT_EQ(first.changed,
            (std::vector<ChangedSetting>{{"net.ipv4.ip_forward", "0", "1"},
                                         {"net.ipv6.conf.all.forwarding", "0", "1"}}));
  EXPECT_EQ(Get("net/ipv4/ip_forward"), "1\n");
  const NodeSetupReport second = Prepare();
  EXPECT_TRUE(second.changed.empty());
  EXPECT_TRUE(second.failed.empty());
}

TEST_F(NodeSetupTest, KeepsTheDefaultRouteThatRouterAdvertisementsBring) {
  Set("net/ipv4/ip_forward", "1");
  Set("net/ipv6/conf/all/forwarding", "0");
  for (const char* device : {"all", "default", "lo", "eth0", "eth0.7"}) {
    Set("net/ipv6/conf/" + std::string(device) + "/accept_ra", "1");
  }
  Set("net/ipv6/conf/eth1/accept_ra", "0");
  const NodeSetupReport report = Prepare();
  EXPECT_TRUE(report.failed.empty());
  EXPECT_EQ(report.changed,
            (std::vector<ChangedSetting>{{"net.ipv6.conf.eth0.accept_ra", "1", "2"},
                                         {"net.ipv6.conf.eth0/7.accept_ra", "1", "2"},
                                         {"net.ipv6.conf.all.forwarding", "0", "1"}}));
  EXPECT_EQ(Get("net/ipv6/conf/default/accept_ra"), "1\n");
}

TEST_F(NodeSetupTest, MakesSettingsInTheirOrderOnce) {
  Set("net/ipv4/neigh/default/gc_thresh3", "1024");
  Set("net/ipv4/neigh/default/gc_thresh2", "512");
  Set("net/ipv4/conf/eth0.7/rp_filter", "1");
  const std::vector<node_checks::KernelSetting> wanted = {
      {"net.ipv4.neigh.default.gc_thresh3", "9216"},
      {"net.ipv4.neigh.default.gc_thresh2", "8192"},
      {"net.ipv4.conf.eth0/7.rp_filter", "2"},
      {"net.netfilter.nf_conntrack_max", "262144"}};
  const NodeSetupReport report = MakeSettings(wanted, dir_.path());
  EXPECT_EQ(report.changed,
            (std::vector<ChangedSetting>{{"net.ipv4.neigh.default.gc_thresh3", "1024", "9216"},
                                         {"net.ipv4.neigh.default.gc_thresh2", "512", "8192"},
                                         {"net.ipv4.conf.eth0/7.rp_filter", "1", "2"}}));
  ASSERT_EQ(report.failed.size(), 1U) << "nothing tracks connections here";
  EXPECT_TRUE(absl::IsNotFound(report.failed[0])) << report.failed[0];
  EXPECT_EQ(Get("net/ipv4/neigh/default/gc_thresh3"), "9216\n");
  EXPECT_TRUE(MakeSettings(wanted, dir_.path()).changed.empty());
}

// A container that is not privileged has /proc/sys read-only, and the node's below /host.
TEST_F(NodeSetupTest, SysctlsAreSetWhereTheyCanBe) {
  const testing_support::TempDir host;
  EXPECT_EQ(SysctlRoot(host.path(), dir_.path()), dir_.path());
  std::filesystem::create_directories(host.File("proc/sys/net/ipv4"));
  std::ofstream(host.File("proc/sys/net/ipv4/ip_forward")) << "0\n";
  EXPECT_EQ(SysctlRoot(host.path(), dir_.path()), host.path() + "/proc/sys");
  Set("net/ipv4/ip_forward", "0");
  EXPECT_EQ(SysctlRoot(host.path(), dir_.path()), dir_.path());
  EXPECT_EQ(SysctlRoot("/"), "/proc/sys");
}

TEST_F(NodeSetupTest, LeavesDevicesAloneWhereTheNodeForwardsAlready) {
  Set("net/ipv4/ip_forward", "1");
  Set("net/ipv6/conf/all/forwarding", "1");
  Set("net/ipv6/conf/eth0/accept_ra", "1");
  EXPECT_TRUE(Prepare().changed.empty());
}

TEST_F(NodeSetupTest, AKernelWithoutIpv6IsNoFailure) {
  Set("net/ipv4/ip_forward", "0");
  const NodeSetupReport report = Prepare();
  EXPECT_TRUE(report.failed.empty());
  EXPECT_EQ(report.changed.size(), 1U);
}

TEST_F(NodeSetupTest, NamesWhatItCouldNotDoAndDoesTheRest) {
  Set("net/ipv6/conf/all/forwarding", "0");
  const NodeSetupReport report = Prepare();
  ASSERT_EQ(report.failed.size(), 1U);
  EXPECT_NE(report.failed[0].message().find("net.ipv4.ip_forward"), absl::string_view::npos);
  EXPECT_EQ(report.changed.size(), 1U);
}

TEST_F(NodeSetupTest, RatherDoesNotForwardIpv6ThanLoseTheDefaultRoute) {
  Set("net/ipv4/ip_forward", "1");
  Set("net/ipv6/conf/all/forwarding", "0");
  Set("net/ipv6/conf/eth0/accept_ra/is-a-directory", "");
  const NodeSetupReport report = Prepare();
  ASSERT_EQ(report.failed.size(), 2U);
  EXPECT_NE(report.failed[0].message().find("eth0.accept_ra"), absl::string_view::npos);
  EXPECT_EQ(Get("net/ipv6/conf/all/forwarding"), "0\n");
}

}  // namespace
}  // namespace spoke::netagent
