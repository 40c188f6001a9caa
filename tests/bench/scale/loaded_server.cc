#include "tests/bench/scale/loaded_server.h"

#include <time.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "fmt/core.h"
#include "ipam-server/ledger/testing/hello_for_test.h"
#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/store/sqlite_store.h"
#include "lib/base/status.h"
#include "tests/bench/scale/loop_edges.h"

namespace spoke::scale {
namespace {

constexpr uint32_t kAddressesANode = 27;
constexpr uint32_t kNodesAtOnce = 256;  // The most nodes at once while the fleet is set up.

double SecondsOf(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

ipam::ServerSettings Settings() {
  // The pool has 2,097,152 addresses.
  return {
      .pools = {{.name = "default", .cidr = ip::Prefix::Parse("10.0.0.0/11").value()}},
      .fleet = {
          .target = {.min = kAddressesANode, .batch = kAddressesANode, .spare = 0.4, .max = 250}}};
}

class LoopServer final : public LoadedServer {
 public:
  LoopServer(std::unique_ptr<ipam::Store> store, ipam::LoadedState loaded, uint32_t nodes)
      : store_(std::move(store)),
        listener_(nodes),
        sequences_(nodes),
        generations_(nodes),
        loop_(Settings(), std::move(loaded),
              {*store_, listener_, fabric_, mailbox_, clock_, log_}) {}

  absl::Status SetUp() {
    for (size_t from = 0; from < sequences_.size(); from += kNodesAtOnce) {
      const size_t to = std::min(from + kNodesAtOnce, sequences_.size());
      for (size_t node = from; node < to; ++node) {
        loop_.PostHello(node + 1, {.node = IdentityOf(KeyOf(node), "boot")});
      }
      do {
        loop_.RunOnce(absl::ZeroDuration());
      } while (fabric_.Answer() ||
               loop_.mailbox().waiting_hellos() + loop_.mailbox().waiting_agents() > 0);
    }
    for (size_t node = 0; node < sequences_.size(); ++node) {
      if (listener_.told(node).size() != kAddressesANode) {
        return absl::InternalError(
            fmt::format("node {} has {} addresses", node, listener_.told(node).size()));
      }
    }
    return absl::OkStatus();
  }

  uint64_t addresses() const override { return sequences_.size() * kAddressesANode; }

  absl::StatusOr<Cost> AssignAndRelease(uint32_t nodes, std::mt19937_64& random) override {
    const std::vector<size_t> chosen = Choose(nodes, random);
    std::vector<ip::Address> in_use;
    for (const size_t node : chosen) {
      in_use.push_back(listener_.told(node)[random() % kAddressesANode]);
    }
    Cost cost{.operations = 2 * chosen.size()};
    for (size_t i = 0; i < chosen.size(); ++i) PostAssignment(chosen[i], in_use[i]);
    RETURN_IF_ERROR(Step(chosen.size(), cost));
    for (size_t i = 0; i < chosen.size(); ++i) PostRelease(chosen[i], in_use[i]);
    RETURN_IF_ERROR(Step(chosen.size(), cost));
    return cost;
  }

 private:
  std::vector<size_t> Choose(uint32_t count, std::mt19937_64& random) const {
    absl::flat_hash_set<size_t> chosen;
    while (chosen.size() < std::min<size_t>(count, sequences_.size())) {
      chosen.insert(random() % sequences_.size());
    }
    return {chosen.begin(), chosen.end()};
  }

  void PostAssignment(size_t node, const ip::Address& address) {
    const uint64_t generation = ++generations_[node];
    loop_.PostFromAgent(
        ipam::ReportEvent{node + 1,
                          {.sequence = ++sequences_[node],
                           .in_use = {AssignmentOf(node, address, generation, clock_.Now())}}});
  }

  // Posts a release. What is given back is usable at once, so that no run finds other addresses
  // than the first.
  void PostRelease(size_t node, const ip::Address& address) {
    loop_.PostFromAgent(
        ipam::ReportEvent{node + 1,
                          {.sequence = ++sequences_[node],
                           .released = {{.address = address, .generation = generations_[node]}},
                           .cooled = {address}}});
  }

  absl::Status Step(size_t reports, Cost& cost) {
    const uint64_t before = listener_.acknowledged;
    const double wall = SecondsOf(CLOCK_MONOTONIC);
    const double cpu = SecondsOf(CLOCK_PROCESS_CPUTIME_ID);
    loop_.RunOnce(absl::ZeroDuration());
    cost.cpu_seconds += SecondsOf(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    cost.wall_seconds += SecondsOf(CLOCK_MONOTONIC) - wall;
    if (listener_.acknowledged - before != reports || listener_.closed > 0) {
      return absl::InternalError(fmt::format("{} of {} reports were acknowledged",
                                             listener_.acknowledged - before, reports));
    }
    return absl::OkStatus();
  }

  std::unique_ptr<ipam::Store> store_;
  Listener listener_;
  ipam::Mailbox mailbox_;
  Fabric fabric_{ipam::AnswersTo(mailbox_)};
  os::RealClock clock_;
  NoLog log_;
  std::vector<uint64_t> sequences_;
  std::vector<uint64_t> generations_;
  ipam::FleetLoop loop_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedServer>> LoadedServer::Create(const std::string& database,
                                                                   uint64_t addresses) {
  ASSIGN_OR_RETURN(std::unique_ptr<ipam::Store> store, ipam::OpenSqliteStore(database));
  ASSIGN_OR_RETURN(ipam::LoadedState loaded,
                   ipam::LoadState(*store, Settings(), os::RealClock().Now()));
  auto server = std::make_unique<LoopServer>(std::move(store), std::move(loaded),
                                             static_cast<uint32_t>(addresses / kAddressesANode));
  RETURN_IF_ERROR(server->SetUp());
  return server;
}

}  // namespace spoke::scale
