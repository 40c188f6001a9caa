// A Traffic over a kernel in memory, for its tests.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "netagent/fastpath/testing/fake_fast_path.h"
#include "netagent/nftables/testing/fake_nft_tables.h"
#include "netagent/node/testing/fake_node_routes.h"
#include "netagent/traffic/traffic.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {

inline ip::Address A(const std::string& text) { return ip::Address::Parse(text).value(); }

inline Policy WithNetwork(policy::ClusterNetwork network, uint64_t version = 1) {
  Policy policy{.version = version};
  policy.entries["ClusterNetwork/main"] = {
      .key = "ClusterNetwork/main", .bytes = {}, .value = std::move(network)};
  return policy;
}

inline Policy Example() {
  return WithNetwork(
      {.cluster = policy::Blocks({"10.0.0.0/16"}), .peer_spoke = policy::Blocks({"10.9.0.0/16"})});
}

inline TrafficPod Pod(const std::string& name, uint32_t index, const std::string& address,
                      const std::string& pod_namespace = "web") {
  return {.host_link = "spk" + name,
          .host_index = index,
          .addresses = {A(address)},
          .pod_namespace = pod_namespace,
          .pod_name = name,
          .pod_uid = "uid-" + name,
          .mtu = 1500};
}

class TrafficTest : public testing::Test {
 protected:
  TrafficTest() {
    routes_.network = {
        .uplink_index = 2,
        .uplink_mtu = 1500,
        .addresses = {{A("10.0.1.4"), 24}},
        .routes = {{.destination = ip::Prefix(), .device = 2, .gateway = A("10.0.1.1")}}};
    Begin();
  }

  // Begins another agent over the same kernel.
  void Begin(bool fast = false, bool require_policy = false) {
    traffic_.emplace(Traffic::Settings{.fast_path = {.uplink = "nic0", .wanted = fast},
                                       .require_policy = require_policy,
                                       .server_addresses =
                                           [] { return std::vector<ip::Address>{A("10.5.0.1")}; }},
                     Traffic::Edges{.tables = tables_,
                                    .routes = routes_,
                                    .clock = clock_,
                                    .log = log_,
                                    .fast_path = &fast_path_,
                                    .read_obstacles = [this] { return obstacles_; },
                                    .tracks_connections = [this] { return tracks_; },
                                    .read_shares = [this] { return shares_; }});
  }
  static nft::Bytes ByClass(const std::string& address, ClassNumber number) {
    return nft::Join({nft::NetworkOrder(A(address)), nft::HostOrder(number)});
  }
  static nft::Bytes ByLink(uint32_t index, const std::string& address) {
    return nft::Join({nft::HostOrder(index), nft::NetworkOrder(A(address))});
  }
  void Count(const std::string& set, const nft::Bytes& key, uint64_t bytes,
             const nft::TableKey& table = kSpokeTable) {
    ASSERT_TRUE(tables_.Count(table, set, key, 1, bytes)) << set;
  }
  TrafficTotals Read() {
    auto totals = traffic_->Read(/*is_scrape=*/true);
    EXPECT_TRUE(totals.ok()) << totals.status();
    return totals.value_or(TrafficTotals());
  }

  // Returns those pods of the fast path that have not ended.
  std::vector<FastPodReading> FastPodsNow() {
    std::vector<FastPodReading> pods = fast_path_.Read().value();
    std::erase_if(pods,
                  [](const FastPodReading& pod) { return pod.ended || pod.way != PodWay::kFast; });
    return pods;
  }

  FakeNftTables tables_;
  FakeFastPath fast_path_{{"nic0"}};
  bool tracks_ = false;
  std::optional<ConnectionShares> shares_;
  absl::StatusOr<FastPathObstacles> obstacles_ = FastPathObstacles();
  FakeNodeRoutes routes_;
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  std::optional<Traffic> traffic_;
};

}  // namespace spoke::netagent
