// The things that benchmarks of the server's loop put around it in place of agents, cloud and log.
// None is thread-safe except where it says so: they belong to the thread that runs the loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/loop/fleet_loop.h"
#include "lib/telemetry/log.h"

namespace spoke::scale {

// Remembers the addresses that a node was told, and counts acknowledgements. Sessions count from 1,
// and go round the nodes: with N nodes, session N + 1 is the second one of the first.
class Listener final : public ipam::AgentLink {
 public:
  explicit Listener(size_t nodes) : told_(nodes) {}

  void Send(ipam::SessionId session, ipam::ToAgent message) override {
    if (std::holds_alternative<node_api::ReportAck>(message)) ++acknowledged;
    if (std::holds_alternative<node_api::Welcome>(message)) ++welcomed;
    if (const auto* desired = std::get_if<node_api::DesiredState>(&message); desired != nullptr) {
      std::vector<ip::Address>& told = told_[(session - 1) % told_.size()];
      if (desired->full) told.clear();
      for (const node_api::DesiredConfiguration& added : desired->added) {
        told.push_back(added.range.base());
      }
    }
  }
  void ReadNext(ipam::SessionId /*session*/) override {}
  void Close(ipam::SessionId /*session*/, absl::Status /*why*/) override { ++closed; }

  const std::vector<ip::Address>& told(size_t node) const { return told_[node]; }

  // The number acknowledged, to be read on any thread.
  std::atomic<uint64_t> acknowledged = 0;
  std::atomic<uint64_t> welcomed = 0;
  std::atomic<uint64_t> closed = 0;

 private:
  std::vector<std::vector<ip::Address>> told_;
};

// Attaches whatever is asked for, when its owner passes the answers on.
class Fabric final : public ipam::Cloud {
 public:
  explicit Fabric(ipam::CloudAnswer answer) : answer_(std::move(answer)) {}

  void Request(ipam::NicRequest desired) override { waiting_.push_back(std::move(desired)); }
  void List(ipam::CloudListed listed) override { listed(absl::UnavailableError("nobody lists")); }
  absl::Duration listing_period() const override { return absl::InfiniteDuration(); }
  std::string Describe() const override { return "played"; }
  void Stop() override {}

  // Returns true when there were some.
  bool Answer() {
    const std::vector<ipam::NicRequest> asked = std::exchange(waiting_, {});
    for (const ipam::NicRequest& nic : asked) answer_(nic.node, nic.Configured());
    return !asked.empty();
  }

 private:
  const ipam::CloudAnswer answer_;
  std::vector<ipam::NicRequest> waiting_;
};

// A log that nobody reads. Thread-safe.
class NoLog final : public telemetry::Log {
 public:
  void Write(telemetry::Level /*level*/, std::string_view /*event*/,
             std::initializer_list<telemetry::Field> /*fields*/) override {}
};

inline ipam::NodeKey KeyOf(size_t node) {
  return {fmt::format("sim-{:05}", node), fmt::format("{:08x}-51a0-4000-8000-{:012x}", node, node)};
}

// An assignment as agents tell it, with names as long as those of training jobs are.
inline node_api::Assignment AssignmentOf(size_t node, const ip::Address& address,
                                         uint64_t generation, absl::Time since) {
  return {.address = address,
          .generation = generation,
          .since = since,
          .lessee = {.container_id = fmt::format("{:048x}{:016x}", node, generation),
                     .ifname = "eth0",
                     .pod_namespace = "team-1",
                     .pod_name = fmt::format("trainer-{:05}-worker-{}", node, generation),
                     .pod_uid = fmt::format("{:08x}-90d0-4000-8000-{:012x}", node, generation)}};
}

}  // namespace spoke::scale
