// Runs simulated fleets: one seed with its story, or many seeds one after the other.
#include <cstdio>
#include <ctime>
#include <string>

#include "CLI/CLI.hpp"
#include "fmt/core.h"
#include "tests/sim/run.h"

namespace spoke::sim {
namespace {

struct Options {
  uint64_t seed = 1;
  uint64_t seeds = 1;
  double until_s = 0;
  bool trace = false;
  bool counts = false;
};

int Main(const Options& options) {
  uint64_t failed = 0;
  double node_hours = 0;
  std::map<std::string, uint64_t> counts;
  const std::clock_t began = std::clock();
  for (uint64_t seed = options.seed; seed < options.seed + options.seeds; ++seed) {
    RunSettings settings = SettingsOfSeed(seed);
    settings.world.keep_trace = options.trace;
    if (options.until_s > 0) {
      settings.until = absl::Seconds(options.until_s);
      settings.settling = absl::ZeroDuration();
    }
    const RunResult result = RunPlan(settings);
    node_hours += result.node_hours;
    for (const auto& [what, times] : result.counts) counts[what] += times;
    if (options.trace) fmt::print("{}", result.trace);
    if (!result.violation) continue;
    ++failed;
    fmt::print("seed {}: law {} is broken at {:.6f}s: {}\n", seed, result.violation->law,
               absl::ToDoubleSeconds(result.at), result.violation->what);
    std::fflush(stdout);
  }
  if (options.counts) {
    for (const auto& [what, times] : counts) fmt::print("{:>10} {}\n", times, what);
  }
  const double minutes =
      static_cast<double>(std::clock() - began) / static_cast<double>(CLOCKS_PER_SEC) / 60;
  fmt::print("{} seeds, {} failed, {:.1f} node-hours, {:.0f} node-hours a CPU minute\n",
             options.seeds, failed, node_hours, node_hours / minutes);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace spoke::sim

int main(int argc, char** argv) {
  spoke::sim::Options options;
  CLI::App app(
      "Runs simulated fleets of servers and agents, and holds each step against the laws.");
  app.add_option("--seed", options.seed, "The first seed");
  app.add_option("--seeds", options.seeds, "How many seeds, one after the other");
  app.add_option("--until", options.until_s, "Ends the run after so many simulated seconds");
  app.add_flag("--trace", options.trace, "Tells the story");
  app.add_flag("--counts", options.counts, "Counts what has happened");
  CLI11_PARSE(app, argc, argv);
  return spoke::sim::Main(options);
}
