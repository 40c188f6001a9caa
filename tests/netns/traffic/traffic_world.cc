#include "tests/netns/traffic/traffic_world.h"

#include <cstdlib>

#include "fmt/core.h"
#include "lib/netlink/link.h"

namespace spoke::netagent {

void Shell(const netns::Netns& netns, const std::string& command) {
  const absl::Status status = netns.Run([&]() -> absl::Status {
    // A child has the namespace of the thread that forks it.
    const int result = std::system(command.c_str());
    return result == 0 ? absl::OkStatus() : absl::InternalError(command);
  });
  ASSERT_TRUE(status.ok()) << status;
}

void TrafficWorldTest::SetUp() {
  NodeLinksTest::SetUp();
  if (node_ == nullptr) return;
  tables_ = std::make_unique<BreakableTables>(nft::Connection::Open().value());
  routes_ = NetlinkNodeRoutes::Create().value();
  const std::string mac = node_->nic().mac.ToString();
  Shell(node_->fabric(),
        fmt::format("ip link set fabric up; "
                    "ip neigh replace {0} lladdr {2} dev fabric nud permanent; "
                    "ip -6 neigh replace {1} lladdr {2} dev fabric nud permanent; "
                    "ip route replace 10.0.1.0/24 via {0} dev fabric onlink; "
                    "ip -6 route replace fd00:0:0:1::/64 via {1} dev fabric onlink",
                    kNodeV4.ToString(), kNodeV6.ToString(), mac));
}

void TrafficWorldTest::AddRemote(const ip::Address& address) {
  Shell(node_->fabric(), fmt::format("ip address add {}/{} dev lo{}", address.ToString(),
                                     address.bits(), address.is_v4() ? "" : " nodad"));
}

void TrafficWorldTest::AddPod(PodNetns& netns, const std::string& name,
                              const std::vector<ip::Address>& addresses, uint32_t mtu) {
  const AttachSpec spec = PlanAttach({name, "eth0"}, addresses, mtu).value();
  ASSERT_TRUE(Attach(*links_, spec, netns.fd()).ok());
  const auto link = netlink::GetLink(node_->socket(), spec.host_link);
  ASSERT_TRUE(link.ok()) << link.status();
  const TrafficPod pod{.host_link = spec.host_link,
                       .host_index = static_cast<uint32_t>(link->index),
                       .addresses = addresses,
                       .pod_namespace = "web",
                       .pod_name = name,
                       .pod_uid = name,
                       .mtu = mtu};
  const absl::Status status = traffic_->Attach(pod);
  ASSERT_TRUE(status.ok()) << status;
  pods_[name] = pod;
  for (const ip::Address& address : addresses) {
    if (!address.is_v4()) AwaitLocal(netns.socket(), address);
  }
}

void TrafficWorldTest::RemovePod(const std::string& name) {
  const std::string link = pods_.at(name).host_link;
  ASSERT_TRUE(Detach(*links_, link).ok());
  const absl::Status status = traffic_->Detach(link);
  ASSERT_TRUE(status.ok()) << status;
  pods_.erase(name);
}

void TrafficWorldTest::Begin(bool fast, const Policy& policy) {
  fast_path_ = BpfFastPath::Create().value();
  traffic_.emplace(Traffic::Settings{.fast_path = {.uplink = kNodeDevice, .wanted = fast},
                                     .platform_access = platform_access_},
                   Traffic::Edges{.tables = *tables_,
                                  .routes = *routes_,
                                  .clock = clock_,
                                  .log = log_,
                                  .fast_path = fast_path_.get(),
                                  .tracks_connections = [] { return false; },
                                  .read_shares = [this] { return shares_; }});
  std::vector<TrafficPod> pods;
  for (const auto& [name, pod] : pods_) pods.push_back(pod);
  const absl::Status status = traffic_->Start(policy, pods);
  ASSERT_TRUE(status.ok()) << status;
}

TrafficTotals TrafficWorldTest::Read() {
  auto totals = traffic_->Read(/*is_scrape=*/true);
  EXPECT_TRUE(totals.ok()) << totals.status();
  return totals.value_or(TrafficTotals());
}

TrafficCount TrafficWorldTest::InClass(const std::string& name) {
  return Read().namespaces["web"][name];
}

uint64_t TrafficWorldTest::FastPackets() {
  uint64_t packets = 0;
  const auto pods = fast_path_->Read();
  if (!pods.ok()) return 0;
  for (const FastPodReading& pod : *pods) packets += pod.counts.sent_packets;
  return packets;
}

}  // namespace spoke::netagent
