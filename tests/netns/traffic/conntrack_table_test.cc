// NetlinkConntrackTable against the kernel's table.
#include <memory>
#include <utility>
#include <vector>

#include "lib/netlink/conntrack.h"
#include "lib/netlink/socket.h"
#include "netagent/connections/netlink_conntrack_table.h"
#include "netagent/connections/testing/conntrack_table_contract.h"
#include "tests/netns/traffic/tracked_connections.h"
#include "tests/support/netns_fixture.h"

namespace spoke::netagent {
namespace {

class KernelWorld final : public ConntrackWorld {
 public:
  static std::unique_ptr<ConntrackWorld> Make() {
    auto netns = testing_support::FreshNetns::Enter();
    if (netns == nullptr) return nullptr;
    return std::unique_ptr<ConntrackWorld>(new KernelWorld(std::move(netns)));
  }

  ConntrackTable& table() override { return *table_; }
  void Track(const Connection& connection, uint16_t zone) override {
    const std::vector<netlink::Request> batch = {
        testing_support::TrackConnection(connection, ++tracked_, zone)};
    const absl::Status status = netlink::SendBatch(socket_, batch).status;
    ASSERT_TRUE(status.ok()) << status;
  }
  std::vector<Connection> Tracked() override {
    return List([](const netlink::TrackedConnection&) { return true; });
  }
  std::vector<Connection> TrackedAsCut() override {
    return List([](const netlink::TrackedConnection& connection) {
      return connection.mark == claims::kFlowCut;
    });
  }

 private:
  std::vector<Connection> List(
      const std::function<bool(const netlink::TrackedConnection&)>& wanted) {
    std::vector<Connection> all;
    const absl::Status status = netlink::DumpTrackedConnections(
        socket_, [&] { all.clear(); },
        [&](const netlink::TrackedConnection& connection) {
          if (wanted(connection)) all.push_back(connection.ends);
          return absl::OkStatus();
        });
    EXPECT_TRUE(status.ok()) << status;
    return all;
  }

  explicit KernelWorld(std::unique_ptr<testing_support::FreshNetns> netns)
      : netns_(std::move(netns)),
        table_(NetlinkConntrackTable::Open().value()),
        socket_(netlink::Socket::Open(netlink::Protocol::kNetfilter).value()) {}

  const std::unique_ptr<testing_support::FreshNetns> netns_;
  const std::unique_ptr<NetlinkConntrackTable> table_;
  netlink::Socket socket_;
  uint32_t tracked_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Kernel, ConntrackTableContract,
                         testing::Values(ConntrackWorldFactory{"Kernel", &KernelWorld::Make}),
                         [](const auto& test) { return test.param.name; });

class NetlinkConntrackTest : public testing_support::NetnsTest {};

TEST_F(NetlinkConntrackTest, OneNamespacesTableIsNotAnothers) {
  const ip::Address pod = ip::Address::V4(0x0A010005);
  const ip::Address far = ip::Address::V4(0xC0000201);
  const auto table = NetlinkConntrackTable::Open().value();
  const auto other = KernelWorld::Make();
  ASSERT_NE(other, nullptr);
  other->Track({pod, far, far, pod}, 0);
  EXPECT_EQ(table->DeleteConnectionsOf({pod}), ConntrackTable::Outcome());
  EXPECT_EQ(other->Tracked().size(), 1U);
}

}  // namespace
}  // namespace spoke::netagent
