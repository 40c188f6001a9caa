// Plays a cluster whose nodes all join at once, and then change now and then, for the part of the
// server that writes taints and conditions: over HTTP, to an API server in this process that takes
// its time for each call and refuses more changes at once than a real one. Prints one JSON object.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "ipam-server/nodes/node_sync.h"
#include "lib/http/curl_transport.h"
#include "lib/kubernetes/testing/fake_cluster_server.h"
#include "lib/os/clock.h"
#include "lib/os/file.h"
#include "lib/telemetry/log.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxWrites = 64;  // As in NodesJob.
constexpr absl::Duration kLook = absl::Milliseconds(100);

struct Options {
  size_t nodes = 7500;
  int steady_seconds = 60;
  int latency_ms = 10;
  int changes_a_second = 5;
};

std::string NameOfNode(size_t index) { return "node-" + std::to_string(index); }

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        server_(cluster_,
                {.latency = std::chrono::milliseconds(options.latency_ms), .threads = 96}),
        client_({.access = {.url = server_.url(), .token_file = dir_.File("token")},
                 .max_writes = kMaxWrites},
                transport_, clock_),
        sync_(SettingsOf(),
              {.client = client_,
               .read_facts = [this]() -> absl::StatusOr<FleetFacts> { return facts_; },
               .clock = clock_,
               .log = *log_,
               .board = board_,
               .tell = [this](const std::string& problem) { problem_ = problem; }}) {
    static_cast<void>(os::WriteFileAtomic(dir_.File("token"), kubernetes::FakeCluster::kToken,
                                          os::Durability::kVisible));
  }

  // All nodes join with the taint, and are fit at once.
  void Join() {
    for (size_t i = 0; i < options_.nodes; ++i) {
      cluster_.AddNode(NameOfNode(i),
                       {{{"key", std::string(kNotReadyTaint)}, {"effect", "NoSchedule"}}});
    }
    while (!client_.mirror().complete()) sync_.RunOnce(kLook);
    for (size_t i = 0; i < options_.nodes; ++i) SetFit(i, true);
    const absl::Time begin = absl::Now();
    const auto is_over = [&] { return cluster_.CountTaint(std::string(kNotReadyTaint)) == 0; };
    while (!is_over() && absl::Now() - begin < absl::Minutes(5)) RunFor(kLook);
    fit_s_ = absl::ToDoubleSeconds(absl::Now() - begin);
    // The conditions follow.
    while (cluster_.writes() < 2 * options_.nodes && absl::Now() - begin < absl::Minutes(5)) {
      RunFor(kLook);
    }
    told_s_ = absl::ToDoubleSeconds(absl::Now() - begin);
    join_writes_ = cluster_.writes();
    left_ = cluster_.CountTaint(std::string(kNotReadyTaint));
  }

  // Every second some nodes lose their agents, and get them back after a while; kubelets write what
  // they always do.
  void Steady() {
    const uint64_t before = cluster_.writes();
    size_t changed = 0;
    for (int second = 0; second < options_.steady_seconds; ++second) {
      const size_t many = static_cast<size_t>(options_.changes_a_second);
      for (size_t i = 0; i < many; ++i, ++changed) {
        SetFit(changed % options_.nodes, false);
        if (changed >= 20 * many) SetFit((changed - 20 * many) % options_.nodes, true);
      }
      for (size_t i = 0; i < options_.nodes / 300; ++i) {
        cluster_.Change(NameOfNode((changed * 7 + i) % options_.nodes),
                        [&](auto& node) { node["status"]["beat"] = second; });
      }
      const uint64_t so_far = cluster_.writes();
      RunFor(absl::Seconds(1));
      most_in_a_second_ = std::max(most_in_a_second_, cluster_.writes() - so_far);
    }
    writes_per_s_ = static_cast<double>(cluster_.writes() - before) / options_.steady_seconds;
  }

  std::string Figures() const {
    const auto nodes = static_cast<double>(options_.nodes);
    return nlohmann::json{{"fit_s", fit_s_},
                          {"told_s", told_s_},
                          {"left", left_},
                          {"writes_per_join", static_cast<double>(join_writes_) / nodes},
                          {"api_writes_per_s", writes_per_s_},
                          {"most_writes_in_a_second", most_in_a_second_},
                          {"refused", server_.refused()},
                          {"problem", problem_}}
        .dump();
  }

 private:
  // Nodes change within a minute, so that a bench need not take an hour.
  static NodeSync::Settings SettingsOf() {
    NodeSync::Settings settings;
    settings.times.unfit = absl::Seconds(10);
    settings.times.fit = absl::Seconds(5);
    settings.limits.taints_share = 1;
    settings.limits.taints_share_a_minute = 1;
    return settings;
  }
  void SetFit(size_t index, bool fit) {
    facts_.nodes[NameOfNode(index)] = {.connected = fit, .told = fit, .usable = 16};
  }
  void RunFor(absl::Duration time) {
    const absl::Time end = absl::Now() + time;
    for (absl::Time now = absl::Now(); now < end; now = absl::Now()) sync_.RunOnce(end - now);
  }

  const Options options_;
  const testing_support::TempDir dir_;
  kubernetes::FakeCluster cluster_;
  kubernetes::FakeClusterServer server_;
  http::CurlTransport transport_{http::CurlOptions{.max_connections = kMaxWrites + 8}};
  const os::RealClock clock_;
  const std::unique_ptr<telemetry::Log> log_ = telemetry::NewStderrLog(telemetry::Level::kWarn);
  StandingBoard board_;
  FleetFacts facts_;
  std::string problem_;
  kubernetes::NodeClient client_;
  NodeSync sync_;
  double fit_s_ = 0;
  double told_s_ = 0;
  double writes_per_s_ = 0;
  uint64_t join_writes_ = 0;
  uint64_t most_in_a_second_ = 0;
  size_t left_ = 0;
};

}  // namespace
}  // namespace spoke::ipam

int main(int argc, char** argv) try {
  spoke::ipam::Options options;
  CLI::App app("Nodes that join at once, at an API server with limits.");
  app.add_option("--nodes", options.nodes);
  app.add_option("--seconds", options.steady_seconds);
  app.add_option("--latency-ms", options.latency_ms);
  app.add_option("--changes", options.changes_a_second, "Nodes that change a second");
  CLI11_PARSE(app, argc, argv);
  spoke::ipam::Bench bench(options);
  bench.Join();
  bench.Steady();
  std::puts(bench.Figures().c_str());
  return 0;
} catch (const std::exception& error) {  // Out of memory, or a bug.
  std::fprintf(stderr, "spoke-nodes-bench: %s\n", error.what());
  return 1;
}
