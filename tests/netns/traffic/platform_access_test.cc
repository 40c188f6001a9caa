// Tests of who reaches the platform's services from a pod: the metadata service, which hands out
// the node's identity, and the wireserver, which is DNS as well.
#include <poll.h>

#include "lib/policy/testing/blocks.h"
#include "netagent/classes/egress_cells.h"
#include "tests/netns/traffic/traffic_world.h"

namespace spoke::netagent {
namespace {

constexpr ip::Address kPodV4 = ip::Address::V4(0x0A000107);  // 10.0.1.7
constexpr uint16_t kDnsPort = 53;

class PlatformAccessTest : public TrafficWorldTest {
 protected:
  void SetUp() override {
    TrafficWorldTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (const ip::Address& service : policy::kPlatformServices) AddRemote(service);
  }

  // Returns a policy with an egress policy for each: namespace and mode.
  static Policy Names(const std::vector<std::pair<std::string, policy::EgressMode>>& namespaces) {
    Policy policy{.version = 1, .entries = {}};
    for (const auto& [name, mode] : namespaces) {
      policy::Entry entry{
          .key = "EgressPolicy/" + name,
          .bytes = {},
          .value = policy::EgressPolicy{
              .namespaces = {name},
              .destination_cidrs = policy::Blocks({"169.254.169.254/32", "168.63.129.16/32"}),
              .platform = true,
              .mode = mode}};
      policy.entries[entry.key] = entry;
    }
    return policy;
  }

  bool Hears(PodNetns& pod, const ip::Address& service, uint16_t port) {
    UdpSocket client(pod.netns(), kPodV4);
    UdpSocket server(node_->fabric(), service, port);
    client.Connect(service, server.port());
    client.Send("who am I");
    pollfd waiting{.fd = server.fd(), .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, 100) > 0 && !server.Receive().empty();
  }
  void Expect(bool metadata, PodNetns& pod) {
    EXPECT_EQ(Hears(pod, policy::kMetadataService, 80), metadata);
    EXPECT_EQ(Hears(pod, policy::kMetadataService, kDnsPort), metadata);
    EXPECT_EQ(Hears(pod, policy::kWireserver, 80), metadata);
    EXPECT_TRUE(Hears(pod, policy::kWireserver, kDnsPort));
  }
};

TEST_F(PlatformAccessTest, IsClosedByDefaultButForDnsAndCounted) {
  for (const bool fast : {true, false}) {
    Begin(fast, Policy{});
    PodNetns pod;
    AddPod(pod, "a", {kPodV4});
    const uint64_t before = Read().drops["platform"].packets;
    Expect(false, pod);
    EXPECT_EQ(Read().drops["platform"].packets, before + 3);
    EXPECT_EQ(Read().namespaces["web"]["platform-denied"].sent_packets, before + 3);
    EXPECT_EQ(log_.Count("platform_denied"), fast ? 1 : 2);
    RemovePod("a");
  }
}

TEST_F(PlatformAccessTest, AuditCountsWhoWouldBeCutOff) {
  platform_access_ = PlatformAccess::kAudit;
  Begin(/*fast=*/true, Policy{});
  PodNetns pod;
  AddPod(pod, "a", {kPodV4});
  Expect(true, pod);
  EXPECT_EQ(Read().drops["platform"].packets, 0U);
  EXPECT_EQ(Read().namespaces["web"]["platform-denied"].sent_packets, 3U);
}

TEST_F(PlatformAccessTest, APolicyOpensItForItsNamespacesAlone) {
  Begin(/*fast=*/true, Names({{"web", policy::EgressMode::kMasquerade}}));
  PodNetns pod;
  AddPod(pod, "a", {kPodV4});
  Expect(true, pod);
  // Pods that are there hear of a change, too.
  ASSERT_TRUE(traffic_->OnPolicy(Names({{"other", policy::EgressMode::kMasquerade}})).ok());
  Expect(false, pod);
  ASSERT_TRUE(traffic_->OnPolicy(Names({{"web", policy::EgressMode::kMasquerade}})).ok());
  Expect(true, pod);
  EXPECT_EQ(Read().namespaces["web"]["platform-denied"].sent_packets, 3U);
  RemovePod("a");
  // Nobody else has what is left of it: another pod with its address, of another policy.
  ASSERT_TRUE(traffic_->OnPolicy(Names({{"other", policy::EgressMode::kMasquerade}})).ok());
  PodNetns next;
  AddPod(next, "b", {kPodV4});
  Expect(false, next);
}

TEST_F(PlatformAccessTest, WhereItIsOpenAPolicyCloses) {
  platform_access_ = PlatformAccess::kOpen;
  Begin(/*fast=*/true, Policy{});
  PodNetns pod;
  AddPod(pod, "a", {kPodV4});
  Expect(true, pod);
  ASSERT_TRUE(traffic_->OnPolicy(Names({{"web", policy::EgressMode::kDrop}})).ok());
  Expect(false, pod);
  ASSERT_TRUE(traffic_->OnPolicy(Names({{"other", policy::EgressMode::kDrop}})).ok());
  Expect(true, pod);
}

// An address inside a block of the cluster's is not thereby the cluster's, which would be fast.
TEST_F(PlatformAccessTest, NoBlockOfTheClusterHidesIt) {
  Policy policy{.version = 1, .entries = {}};
  policy.entries["ClusterNetwork/main"] = {
      .key = "ClusterNetwork/main",
      .bytes = {},
      .value = policy::ClusterNetwork{.cluster = policy::Blocks({"10.0.0.0/8", "168.0.0.0/6"})}};
  for (const bool fast : {true, false}) {
    Begin(fast, policy);
    PodNetns pod;
    AddPod(pod, "a", {kPodV4});
    Expect(false, pod);
    RemovePod("a");
  }
}

}  // namespace
}  // namespace spoke::netagent
