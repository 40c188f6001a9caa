// A node that counts: the tables spoke in its kernel, pods behind it, and a fabric in which every
// address answers that a test wants to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/nft/connection.h"
#include "lib/os/clock.h"
#include "netagent/fastpath/bpf_fast_path.h"
#include "netagent/node/netlink_node_routes.h"
#include "netagent/traffic/traffic.h"
#include "tests/netns/links/node_world.h"
#include "tests/support/recording_log.h"

namespace spoke::netagent {

// An nft::Tables that fails when told to.
class BreakableTables : public nft::Tables {
 public:
  explicit BreakableTables(nft::Connection inner) : inner_(std::move(inner)) {}

  absl::Status Apply(const nft::Transaction& transaction) override {
    if (!broken.ok()) return broken;
    return inner_.Apply(transaction);
  }
  absl::StatusOr<std::vector<nft::ElementReading>> ReadSet(const nft::TableKey& table,
                                                           const std::string& set) override {
    return inner_.ReadSet(table, set);
  }
  absl::StatusOr<std::vector<nft::CounterReading>> ReadCounters(
      const nft::TableKey& table) override {
    return inner_.ReadCounters(table);
  }
  absl::StatusOr<std::vector<nft::RuleReading>> ReadRules(const nft::TableKey& table) override {
    return inner_.ReadRules(table);
  }
  absl::StatusOr<uint32_t> Generation() override { return inner_.Generation(); }

  uint32_t port_id() const { return inner_.port_id(); }

  absl::Status broken;

 private:
  nft::Connection inner_;
};

// Runs `command` with a shell in the namespace, and expects it to succeed.
void Shell(const netns::Netns& netns, const std::string& command);

class TrafficWorldTest : public NodeLinksTest {
 protected:
  void SetUp() override;

  // Makes `address` answer in the fabric.
  void AddRemote(const ip::Address& address);
  // A pod with traffic counted, in the namespace "web".
  void AddPod(PodNetns& netns, const std::string& name, const std::vector<ip::Address>& addresses,
              uint32_t mtu = 1500);
  void RemovePod(const std::string& name);
  // Begins another agent, which takes over the pods that are here.
  void Begin(bool fast, const Policy& policy);
  TrafficTotals Read();
  TrafficCount InClass(const std::string& name);
  // Returns what the fast path has counted: packets sent by pods.
  uint64_t FastPackets();

  std::optional<ConnectionShares> shares_;  // The shares, as the kernel's table says.
  PlatformAccess platform_access_ = PlatformAccess::kClosed;  // The access for the next Begin().
  os::SimClock clock_;
  testing_support::RecordingLog log_;
  std::unique_ptr<BreakableTables> tables_;
  std::unique_ptr<NetlinkNodeRoutes> routes_;
  std::unique_ptr<BpfFastPath> fast_path_;
  std::map<std::string, TrafficPod> pods_;
  std::optional<Traffic> traffic_;
};

}  // namespace spoke::netagent
