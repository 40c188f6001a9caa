// Tests of what one pod can take of the node's connections and ports, and what is left to its
// neighbour. The kernel's limit on its table is one of the whole machine, so that a test has shares
// that are small instead; ports are as many as they are.
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <list>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/connections/netlink_conntrack_table.h"
#include "netagent/traffic/share_rules.h"
#include "tests/netns/traffic/traffic_world.h"

namespace spoke::netagent {
namespace {

constexpr ip::Address kHostileV4 = ip::Address::V4(0x0A000107);    // 10.0.1.7
constexpr ip::Address kNeighbourV4 = ip::Address::V4(0x0A000108);  // 10.0.1.8
constexpr ip::Address kInternet = ip::Address::V4(0x08080808);     // 8.8.8.8
constexpr ip::Address kCluster = ip::Address::V4(0x0A00C805);      // 10.0.200.5
constexpr uint16_t kPort = 443;

// Masquerades what goes to the Internet, so that connections are tracked.
Policy Masquerades() {
  Policy policy{.version = 1};
  policy.entries["ClusterNetwork/main"] = {
      .key = "ClusterNetwork/main",
      .bytes = {},
      .value = policy::ClusterNetwork{.cluster = policy::Blocks({"10.0.0.0/16", "fd00::/32"})}};
  policy.entries["EgressPolicy/all"] = {
      .key = "EgressPolicy/all",
      .bytes = {},
      .value = policy::EgressPolicy{.destination_cidrs = policy::Blocks({"0.0.0.0/0"}),
                                    .mode = policy::EgressMode::kMasquerade}};
  return policy;
}

// Sends UDP packets that it makes itself, as a pod with NET_RAW can.
class RawSender {
 public:
  explicit RawSender(const netns::Netns& netns) {
    const absl::Status status = netns.Run([this] {
      fd_ = os::UniqueFd(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
      return fd_.valid() ? absl::OkStatus() : absl::InternalError(std::strerror(errno));
    });
    EXPECT_TRUE(status.ok()) << status;
  }

  // Sends an empty packet.
  void Send(const ip::Address& from, uint16_t source_port, const ip::Address& to, uint16_t port) {
    struct {
      iphdr ip;
      udphdr udp;
    } packet{};
    packet.ip.version = 4;
    packet.ip.ihl = 5;
    packet.ip.ttl = 64;
    packet.ip.protocol = IPPROTO_UDP;
    packet.ip.saddr = htonl(static_cast<uint32_t>(from.low()));
    packet.ip.daddr = htonl(static_cast<uint32_t>(to.low()));
    packet.udp.source = htons(source_port);
    packet.udp.dest = htons(port);
    packet.udp.len = htons(sizeof(packet.udp));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = packet.ip.daddr;
    // One that the kernel refuses is one less.
    static_cast<void>(::sendto(fd_.get(), &packet, sizeof(packet), 0,
                               reinterpret_cast<const sockaddr*>(&address), sizeof(address)));
  }

 private:
  os::UniqueFd fd_;
};

class PodSharesNetnsTest : public TrafficWorldTest {
 protected:
  void SetUp() override {
    TrafficWorldTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    AddRemote(kInternet);
    AddRemote(kCluster);
    table_ = NetlinkConntrackTable::Open().value();
  }
  void Begin(const std::optional<ConnectionShares>& shares) {
    shares_ = shares;
    TrafficWorldTest::Begin(/*fast=*/false, Masquerades());
    AddPod(hostile_, "hostile", {kHostileV4});
    AddPod(neighbour_, "neighbour", {kNeighbourV4});
    sender_.emplace(hostile_.netns());
  }

  // Sends each from a port of its own, so that each is a connection.
  void Flood(uint32_t packets, const ip::Address& to = kInternet) {
    for (uint32_t i = 0; i < packets; ++i) {
      sender_->Send(kHostileV4, static_cast<uint16_t>(1 + flooded_++ % 65'535), to, kPort);
    }
  }
  // Returns how many of as many new connections of the pod are answered.
  int Begun(PodNetns& pod, const ip::Address& from, const ip::Address& to, int connections) {
    UdpSocket server(node_->fabric(), to, kPort);
    int answered = 0;
    for (int i = 0; i < connections; ++i) {
      UdpSocket client(pod.netns(), from);
      client.Connect(to, kPort);
      client.Send("new");
      timeval patience{.tv_sec = 0, .tv_usec = 200'000};
      ::setsockopt(server.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
      ::setsockopt(client.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
      server.EchoOnce();
      answered += client.Receive() == "new" ? 1 : 0;
    }
    return answered;
  }
  int NeighbourBegins(const ip::Address& to, int connections) {
    return Begun(neighbour_, kNeighbourV4, to, connections);
  }
  int HostileBegins(const ip::Address& to, int connections) {
    return Begun(hostile_, kHostileV4, to, connections);
  }

  // Counts as the agent does now and then.
  std::vector<PodConnections> CountAndBound() {
    ConnectionTally tally(
        {{.link = pods_.at("hostile").host_index, .addresses = {kHostileV4}},
         {.link = pods_.at("neighbour").host_index, .addresses = {kNeighbourV4}}});
    const absl::Status status = table_->Count(tally);
    EXPECT_TRUE(status.ok()) << status;
    if (traffic_->shares()) {
      over_ = FindOver(tally.pods(), *traffic_->shares(), over_);
      traffic_->OnOverShare(over_);
    }
    return tally.pods();
  }
  uint64_t Dropped(const std::string& reason) { return Read().drops[reason].packets; }
  void Look() {
    clock_.Advance(Traffic::kLook);
    traffic_->Tick();
  }

  std::unique_ptr<NetlinkConntrackTable> table_;
  PodNetns hostile_;
  PodNetns neighbour_;
  std::optional<RawSender> sender_;
  uint32_t flooded_ = 0;
  OverShare over_;
};

// The shares are those that a node has by default. Without them the flood has all 64,512 ports, and
// the neighbour's packets are dropped for want of one.
TEST_F(PodSharesNetnsTest, AllPortsAreNotOnePods) {
  Begin(SharesOf({}, {.limit = 262'144}));
  // The agent counts now and then.
  for (int part = 0; part < 8; ++part) {
    Flood(16'384);
    CountAndBound();
  }
  EXPECT_EQ(NeighbourBegins(kInternet, 20), 20);
  EXPECT_EQ(NeighbourBegins(kCluster, 5), 5);
  const std::vector<PodConnections> counted = CountAndBound();
  EXPECT_GE(counted[0].connections, 16'000U);
  EXPECT_GE(counted[0].translated_ports, 16'000U);
  EXPECT_LT(counted[0].translated_ports, 60'000U);
  EXPECT_EQ(counted[1].connections, 25U);
  EXPECT_EQ(counted[1].translated_ports, 20U);
  EXPECT_GT(Dropped("pod-share-rate"), 0U);
  for (const PodTotals& pod : Read().pods) {
    if (pod.pod_name != "neighbour") continue;
    EXPECT_EQ(pod.volumes.at("internet").sent_packets, 20U);
    EXPECT_EQ(pod.volumes.at("internet").received_packets, 20U);
    EXPECT_EQ(pod.volumes.at("cluster").sent_packets, 5U);
  }
}

// The table's size cannot be set in a namespace, so that the share is small instead.
TEST_F(PodSharesNetnsTest, AFloodGetsNoMoreOfTheTableThanItsRate) {
  Begin(ConnectionShares{.connections = 400, .ports = 64'512});
  Flood(5'000);
  Flood(5'000, kCluster);
  const std::vector<PodConnections> counted = CountAndBound();
  EXPECT_GE(counted[0].connections, 100U);
  EXPECT_LT(counted[0].connections, 5'000U);
  EXPECT_EQ(NeighbourBegins(kInternet, 20), 20);
}

TEST_F(PodSharesNetnsTest, WhoHasMoreThanItsShareBeginsNothingUntilItHasLess) {
  Begin(ConnectionShares{.connections = 4'000, .ports = 64'512});
  UdpSocket server(node_->fabric(), kInternet);
  UdpSocket old(hostile_.netns(), kHostileV4);
  ASSERT_TRUE(CanTalk(old, server, kInternet, 10));
  Flood(300);
  shares_ = ConnectionShares{.connections = 200, .ports = 64'512};
  Look();
  CountAndBound();
  EXPECT_EQ(HostileBegins(kInternet, 2), 0);
  EXPECT_EQ(HostileBegins(kCluster, 2), 0);
  EXPECT_EQ(Dropped("pod-share-connections"), 4U);
  EXPECT_TRUE(CanTalk(old, server, kInternet, 10)) << "what was begun goes on";
  EXPECT_EQ(NeighbourBegins(kInternet, 5), 5);
  EXPECT_TRUE(table_->DeleteConnectionsOf({kHostileV4}).status.ok());
  CountAndBound();
  EXPECT_EQ(HostileBegins(kInternet, 2), 2);
}

TEST_F(PodSharesNetnsTest, WhoHasMoreThanItsShareOfPortsToOneReachesTheOthers) {
  const ip::Address another = ip::Address::V4(0x08080404);
  AddRemote(another);
  Begin(ConnectionShares{.connections = 4'000, .ports = 64'512});
  Flood(300);
  shares_ = ConnectionShares{.connections = 4'000, .ports = 200};
  Look();
  CountAndBound();
  EXPECT_EQ(HostileBegins(kInternet, 2), 0);
  EXPECT_EQ(Dropped("pod-share-ports"), 2U);
  EXPECT_EQ(HostileBegins(another, 2), 2);
  EXPECT_EQ(HostileBegins(kCluster, 2), 2);
  EXPECT_EQ(NeighbourBegins(kInternet, 5), 5);
}

TEST_F(PodSharesNetnsTest, InventedSourcesFillNoSet) {
  Begin(ConnectionShares{.connections = 400, .ports = 64'512});
  for (uint32_t i = 0; i < 10'000; ++i) {
    sender_->Send(ip::Address::V4(0x0B000000 + i), 1000, kInternet, kPort);
  }
  EXPECT_LE(tables_->ReadSet(kSpokeTable, "pod_shares_new").value().size(), 2U);
  EXPECT_EQ(NeighbourBegins(kInternet, 20), 20);
  EXPECT_EQ(NeighbourBegins(kCluster, 5), 5);
}

TEST_F(PodSharesNetnsTest, WhereNothingIsTrackedNothingIsTrackedForIt) {
  shares_.reset();
  Policy policy = Masquerades();
  policy.entries.erase("EgressPolicy/all");
  TrafficWorldTest::Begin(/*fast=*/false, policy);
  AddPod(hostile_, "hostile", {kHostileV4});
  AddPod(neighbour_, "neighbour", {kNeighbourV4});
  Look();
  EXPECT_EQ(HostileBegins(kInternet, 3), 3);
  ConnectionTally tally({});
  ASSERT_TRUE(table_->Count(tally).ok());
  EXPECT_EQ(tally.seen(), 0U);
}

}  // namespace
}  // namespace spoke::netagent
