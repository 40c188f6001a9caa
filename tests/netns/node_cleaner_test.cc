// The filters of the fast path on a real device, among those of others: which go with a cleanup.
#include "netagent/cleanup/node_cleaner.h"

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "lib/netlink/link.h"
#include "lib/netlink/queueing/filter.h"
#include "netagent/fastpath/bpf_fast_path.h"
#include "netagent/iptables/testing/fake_iptables.h"
#include "tests/netns/links/node_world.h"

namespace spoke::netagent {
namespace {

class NodeCleanerTest : public NodeWorldTest {
 protected:
  void SetUp() override {
    NodeWorldTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    nic_ = netlink::GetLink(node_->socket(), kNodeDevice).value().index;
    before_ = Snapshot(node_->socket());
  }

  void AddFastPath() {
    const auto fast = BpfFastPath::Create().value();
    const absl::Status status = fast->Configure(
        {.uplink = kNodeDevice,
         .hops = {{ip::Address::V4(0x0A000000), ip::Address::V4(0x0A000103), std::nullopt}}});
    ASSERT_TRUE(status.ok()) << status;
  }
  // Adds one that matches nothing, of classic BPF: other kinds are modules that a kernel may lack.
  static void AddTheirs() {
    const std::string command = std::string("PATH=$PATH:/usr/sbin:/sbin; tc filter add dev ") +
                                kNodeDevice + " egress pref 7 bpf bytecode '1,6 0 0 0'";
    ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT(cert-env33-c): a fixed command.
  }
  size_t Filters(netlink::Direction direction) {
    return netlink::DumpFilters(node_->socket(), nic_, netlink::HookOf(direction)).value().size();
  }
  CleanupReport Clean() {
    const auto cleaner = NodeCleaner::Open(
        {.paths = {.state_dir = "/nowhere/spoke/state", .cni_socket = "/nowhere/spoke/cni.sock"}},
        nft_, legacy_);
    EXPECT_TRUE(cleaner.ok()) << cleaner.status();
    return CleanUp(**cleaner, {});
  }
  static std::vector<std::string> Removed(const CleanupReport& report) {
    std::vector<std::string> lines;
    for (const Removal& removal : report.removed) {
      lines.push_back(std::string(NameOf(removal.kind)) + " " + removal.what);
    }
    return lines;
  }

  FakeIptables nft_;
  FakeIptables legacy_;
  int32_t nic_ = 0;
  std::vector<std::string> before_;
};

TEST_F(NodeCleanerTest, TheFiltersGoAndTheirPlaceWithThem) {
  AddFastPath();
  EXPECT_EQ(Filters(netlink::Direction::kIngress), 1U);
  EXPECT_EQ(Filters(netlink::Direction::kEgress), 1U);
  const CleanupReport report = Clean();
  EXPECT_TRUE(report.ok()) << CleanupTable(report);
  ASSERT_EQ(report.removed.size(), 3U) << CleanupTable(report);
  EXPECT_THAT(Removed(report)[0], testing::StartsWith("filter nic0 ingress spoke_"));
  EXPECT_THAT(Removed(report)[1], testing::StartsWith("filter nic0 egress spoke_"));
  EXPECT_EQ(Removed(report)[2], "qdisc clsact nic0");
  EXPECT_EQ(Snapshot(node_->socket()), before_);
  EXPECT_EQ(CleanupTable(Clean()), "nothing to remove\n");
}

TEST_F(NodeCleanerTest, WhereOthersHaveAFilterItStays) {
  AddFastPath();
  AddTheirs();
  EXPECT_EQ(Filters(netlink::Direction::kEgress), 2U);
  const CleanupReport report = Clean();
  EXPECT_TRUE(report.ok()) << CleanupTable(report);
  EXPECT_EQ(report.removed.size(), 2U) << CleanupTable(report);
  EXPECT_EQ(Filters(netlink::Direction::kIngress), 0U);
  EXPECT_EQ(Filters(netlink::Direction::kEgress), 1U);
  EXPECT_EQ(CleanupTable(Clean()), "nothing to remove\n");
}

}  // namespace
}  // namespace spoke::netagent
