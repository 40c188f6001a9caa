// A server's admin API with a fleet that is made up: dashboard_stage SOCKET [NAME]. It answers
// until standard input ends, and its traffic goes on every second. A node, a pod and a namespace
// are called NAME; without it the name is hostile.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "admin-cli/testing/fake_admin_server.h"
#include "fmt/core.h"

namespace spoke::ctl {
namespace {

constexpr uint64_t kNodes = 7500;

int64_t NowMs() { return absl::ToUnixMillis(absl::Now()); }

v1::NodeInfo NodeOf(uint64_t i, const std::string& odd) {
  v1::NodeInfo node;
  node.set_name(i == 0 ? odd : fmt::format("aks-pool{}-{:05}", i % 4, i));
  node.set_mode(i % 311 == 5 ? "draining" : "active");
  node.set_connected(i % 523 != 7);
  node.set_target(27);
  node.set_attached(i % 97 == 3 ? 9 : 27);
  // Racks of sixty nodes are used alike.
  const uint64_t rack = i / 60;
  const uint64_t used = i % 97 == 3 ? 9 : 4 + rack * 7 % 16 + (i % 29 == 1 ? 5 : 0);
  node.set_in_use(std::min(used, node.attached()));
  if (i % 97 == 3) {
    node.set_shortage(
        "has 9 of 27 addresses: pool pods-a has 0 free of 65,531, and 212 in cooldown");
    node.set_cloud_lane("blocking");
    node.set_pods_waiting(3);
    node.set_cloud_waits_for(i % 2 == 0 ? "limit of PUT NIC of the subscription"
                                        : "Azure's answer");
    node.set_cloud_eta_unix_ms(NowMs() + static_cast<int64_t>(i % 900) * 1000);
  } else if (i % 61 == 9) {
    node.set_cloud_lane("warm-up");
    node.set_cloud_waits_for("limit of PUT NIC of the subscription");
    node.set_cloud_eta_unix_ms(NowMs() + static_cast<int64_t>(600 + i % 1200) * 1000);
  }
  if (i % 701 == 11 || i % 401 == 13) {
    v1::NodeFinding& finding = *node.add_findings();
    finding.set_check("forwarding");
    finding.set_blocking(i % 701 == 11);
    finding.set_object("net.ipv4.ip_forward");
    finding.set_what("is 0");
  }
  return node;
}

// Adds a pool of which so many addresses are free.
void AddPool(FakeState& state, const std::string& name, const std::string& cidr,
             const v1::PoolInfo& counts) {
  v1::PoolInfo& pool = state.pools[name] = counts;
  pool.set_name(name);
  pool.set_cidr(cidr);
  pool.set_cooldown(counts.in_use() / 40);
  pool.set_attaching(counts.in_use() / 90);
  const uint64_t taken = counts.free() + counts.in_use() + pool.cooldown() + pool.attaching();
  pool.set_available(std::min<uint64_t>(counts.usable() - taken, 100'000));
}

v1::PoolInfo CountsOf(uint64_t usable, uint64_t free, uint64_t in_use) {
  v1::PoolInfo counts;
  counts.set_usable(usable);
  counts.set_free(free);
  counts.set_in_use(in_use);
  return counts;
}

void AddBudget(FakeState& state) {
  v1::BudgetInfo& budget = state.budgets["internet"];
  budget.set_name("internet");
  budget.set_egress(true);
  budget.set_capacity(40'000'000'000);
  budget.set_usage(31'400'000'000);
  budget.set_granted(38'000'000'000);
  for (const char* name : {"vision", "search", "*"}) {
    v1::BudgetTeamInfo& team = *budget.add_teams();
    team.set_name(name);
    team.set_usage(10'400'000'000);
    team.set_demand(12'000'000'000);
    team.set_granted(11'000'000'000);
    team.set_throttled(name[0] == 'v' ? 1'600'000'000 : 0);
  }
}

void AddEvents(FakeState& state, const std::string& odd) {
  const int64_t now = NowMs();
  for (int64_t i = 0; i < 60; ++i) {
    v1::EventInfo& event = state.events.emplace_back();
    event.set_unix_ms(now - (60 - i) * 7000);
    event.set_level(i % 13 == 5 ? "warning" : "info");
    event.set_event(i % 13 == 5 ? "cloud_throttled" : "node_joined");
    (*event.mutable_fields())["node"] = fmt::format("aks-pool{}-{:05}", i % 4, i * 31);
  }
  (*state.events.back().mutable_fields())["pod"] = odd;
}

void AddLossyNode(FakeState& state) {
  state.reachability.set_enabled(true);
  v1::ReachabilityNode& node = *state.reachability.add_suspects();
  node.set_name(NodeOf(4711, "").name());
  node.set_suspicion("18 of 90 probes between this node and others were lost");
}

void Fill(FakeState& state, const std::string& odd) {
  AddLossyNode(state);
  for (uint64_t i = 0; i < kNodes; ++i) {
    v1::NodeInfo node = NodeOf(i, odd);
    state.status.set_nodes_connected(state.status.nodes_connected() + (node.connected() ? 1 : 0));
    state.nodes[node.name()] = std::move(node);
  }
  state.status.set_version("0.1.0");
  state.status.set_started_unix_ms(NowMs() - 86'400'000 * 9);
  state.status.set_store("etcd");
  state.status.set_cloud("azure");
  state.status.set_nodes(kNodes);
  state.status.set_policy_version(412);
  state.status.set_last_audit_unix_ms(NowMs() - 240'000);
  state.status.add_problems("pool pods-a has no free address");
  constexpr uint64_t kUsable6 = 4'611'686'018'427'486'161;
  AddPool(state, "pods-a", "10.16.0.0/16", CountsOf(65'531, 0, 46'000));
  AddPool(state, "pods-b", "10.24.0.0/15", CountsOf(131'067, 47'816, 60'400));
  AddPool(state, "pods-v6", "fd00:10::/64", CountsOf(kUsable6, kUsable6 - 210'000, 106'400));
  *state.status.mutable_ipv4() = CountsOf(196'598, 47'816, 106'400);
  *state.status.mutable_ipv6() = state.pools["pods-v6"];
  state.recovery.set_phase("open");
  state.rollout.set_version(412);
  state.rollout.set_nodes(kNodes);
  state.rollout.set_nodes_current(7431);
  state.rollout.set_nodes_away(15);
  for (int i = 0; i < 54; ++i) state.rollout.add_behind();
  state.rollout.set_connections(1'204'000);
  state.rollout.set_connections_cut(318);
  AddBudget(state);
  AddEvents(state, odd);
  state.explain.set_summary("pods wait on " + odd);
  state.explain.add_details("3 pods wait there for addresses");
}

// Sets what the server keeps of the last hour: waves, so that lines cross.
void SetCourse(FakeState& state, const std::string& odd) {
  constexpr int kTimes = 120;
  constexpr int64_t kStepMs = 30'000;
  for (const char* name : {"all", "cluster", "external", "internet"}) {
    state.course.add_classes(name);
  }
  for (int i = 0; i < kTimes; ++i) state.course.add_times_unix_ms(NowMs() - (kTimes - i) * kStepMs);
  double weight = 100;
  const std::array<std::string, 8> names = {"vision", "search", "ingest", "web",
                                            "mail",   "batch",  "ci",     odd};
  for (const std::string& name : names) {
    v1::TrafficLine& line = *state.course.add_lines();
    line.set_name(name);
    for (int i = 0; i < kTimes; ++i) {
      const double wave = 1 + 0.4 * std::sin(i * (0.05 + weight / 900) + weight);
      line.add_bits_per_second(wave * weight * 8e6);
    }
    weight -= 11;
  }
}

// Sets totals as they are `seconds` after the beginning.
void SetTraffic(FakeState& state, uint64_t seconds) {
  state.node_traffic.Clear();
  state.node_traffic.set_now_unix_ms(NowMs());
  uint64_t i = 0;
  for (const auto& [name, node] : state.nodes) {
    v1::TrafficEntry& entry = *state.node_traffic.add_entries();
    entry.set_name(name);
    entry.set_traffic_class("internet");
    entry.set_sent(seconds * static_cast<uint64_t>(std::pow(10, 3 + (i++ * 37 % 60) / 10)));
  }
}

int Serve(const std::string& socket, const std::string& odd) {
  FakeAdminServer server("unix:" + socket);
  server.With([&](FakeState& state) {
    Fill(state, odd);
    SetCourse(state, odd);
    SetTraffic(state, 0);
  });
  absl::Notification ending;
  std::thread traffic([&] {
    uint64_t seconds = 0;
    while (!ending.WaitForNotificationWithTimeout(absl::Seconds(1))) {
      ++seconds;
      server.With([&](FakeState& state) {
        SetTraffic(state, seconds);
        state.requests.clear();
      });
    }
  });
  std::puts("ready");
  std::fflush(stdout);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  ending.Notify();
  traffic.join();
  return 0;
}

}  // namespace
}  // namespace spoke::ctl

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fputs("usage: dashboard_stage SOCKET [NAME]\n", stderr);
    return 2;
  }
  return spoke::ctl::Serve(argv[1], argc == 3 ? argv[2] : "<img src=x onerror=alert(1)>");
}
