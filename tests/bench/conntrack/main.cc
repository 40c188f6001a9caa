// Measures what it costs to delete the connections of released addresses from a full table: the
// pass that the agent makes, over a dump of the same table that is only read to its end. In a
// network namespace of its own, which takes the entries with it.
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/netlink/conntrack.h"
#include "lib/netlink/socket.h"
#include "netagent/connections/netlink_conntrack_table.h"
#include "nlohmann/json.hpp"
#include "tests/netns/traffic/tracked_connections.h"

namespace spoke {
namespace {

using Json = nlohmann::json;

constexpr ip::Address kFirstPod = ip::Address::V4(0x0A010001);
constexpr ip::Address kFar = ip::Address::V4(0xC0000201);
constexpr ip::Address kNode = ip::Address::V4(0x0A000004);

struct Options {
  uint32_t entries = 100'000;
  uint32_t pods = 250;     // The pods among which the entries are.
  uint32_t released = 25;  // The number of these that are released.
  int rounds = 11;
};

struct Cost {
  double wall_ms = 0;
  double cpu_ms = 0;  // The CPU time, user and system.
};

double CpuMs() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

Cost CostOf(const std::function<void()>& work) {
  const double cpu = CpuMs();
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
  return {wall.count(), CpuMs() - cpu};
}

// Enters masqueraded UDP, so many of each pod.
absl::Status Fill(netlink::Socket& socket, const Options& options) {
  std::vector<netlink::Request> batch;
  for (uint32_t i = 0; i < options.entries; ++i) {
    const ip::Address pod = ip::Advance(kFirstPod, i % options.pods);
    batch.push_back(testing_support::TrackConnection({pod, kFar, kFar, kNode}, i));
    batch.back().Tolerate(EEXIST);  // An entry may have outlived the last round.
    if (batch.size() < netlink::kMaxBatch && i + 1 < options.entries) continue;
    RETURN_IF_ERROR(netlink::SendBatch(socket, batch).status);
    batch.clear();
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ReadToTheEnd(netlink::Socket& socket) {
  uint64_t seen = 0;
  RETURN_IF_ERROR(netlink::DumpTrackedConnections(
      socket, [&seen] { seen = 0; },
      [&seen](const netlink::TrackedConnection&) {
        ++seen;
        return absl::OkStatus();
      }));
  return seen;
}

void Add(Json& out, const char* what, const Cost& cost) {
  out[what]["wall_ms"].push_back(cost.wall_ms);
  out[what]["cpu_ms"].push_back(cost.cpu_ms);
}

absl::StatusOr<Json> Measure(const Options& options) {
  if (::unshare(CLONE_NEWNET) < 0) return base::ErrnoToStatus(errno, "make a network namespace");
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open(netlink::Protocol::kNetfilter));
  ASSIGN_OR_RETURN(const auto table, netagent::NetlinkConntrackTable::Open());
  netagent::AddressSet released;
  netagent::AddressSet strangers;
  for (uint32_t i = 0; i < options.released; ++i) {
    released.insert(ip::Advance(kFirstPod, i));
    strangers.insert(ip::Advance(kFirstPod, options.pods + i));
  }
  Json out = {{"entries", options.entries}, {"released", options.released}};
  for (int round = 0; round < options.rounds; ++round) {
    RETURN_IF_ERROR(Fill(socket, options));
    absl::StatusOr<uint64_t> seen;
    Add(out, "dump", CostOf([&] { seen = ReadToTheEnd(socket); }));
    RETURN_IF_ERROR(seen.status());
    netagent::ConntrackTable::Outcome none;
    Add(out, "pass_none", CostOf([&] { none = table->DeleteConnectionsOf(strangers); }));
    netagent::ConntrackTable::Outcome all;
    Add(out, "pass", CostOf([&] { all = table->DeleteConnectionsOf(released); }));
    RETURN_IF_ERROR(none.status);
    RETURN_IF_ERROR(all.status);
    const uint64_t of_released = options.entries / options.pods * options.released;
    if (*seen != options.entries || none.deleted != 0 || all.deleted < of_released) {
      return absl::InternalError(fmt::format("{} of {} entries seen, {} and {} deleted", *seen,
                                             options.entries, none.deleted, all.deleted));
    }
    out["deleted"] = all.deleted;
  }
  return out;
}

int RunMain(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the deletion of released addresses' tracked connections.");
  app.add_option("--entries", options.entries);
  app.add_option("--pods", options.pods)->check(CLI::PositiveNumber);
  app.add_option("--released", options.released);
  app.add_option("--rounds", options.rounds);
  CLI11_PARSE(app, argc, argv);
  const auto measured = Measure(options);
  if (measured.ok()) {
    std::printf("%s\n", measured->dump().c_str());
    return 0;
  }
  std::fprintf(stderr, "spoke-conntrack-bench: %s\n", measured.status().ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace spoke

int main(int argc, char** argv) {
  try {
    return spoke::RunMain(argc, argv);
  } catch (const std::exception& error) {  // Out of memory, or a bug.
    std::fprintf(stderr, "spoke-conntrack-bench: %s\n", error.what());
    return 1;
  }
}
