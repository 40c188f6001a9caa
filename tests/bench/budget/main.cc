// The program spoke-bench-budget: how a budget is divided, and what dividing it costs. Prints JSON.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/budget/allocation.h"
#include "tests/bench/budget/scenario.h"

namespace spoke::budget_sim {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  ScenarioOptions scenario;
  uint32_t runs = 1;
  uint32_t rounds = 101;
  bool quiet_agents = false;
  uint32_t delay_ms = 500;
};

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Returns the milliseconds of CPU of one allocation, all teams on all nodes; demands are twice the
// pool.
std::vector<double> MeasureAllocation(const Options& options) {
  std::mt19937_64 random(options.scenario.world.seed);
  std::lognormal_distribution<float> demand(15, 1.5);
  ipam::BudgetSpec spec;
  std::vector<ipam::TeamDemands> demands(options.scenario.world.teams);
  double sum = 0;
  for (size_t team = 0; team < demands.size(); ++team) {
    spec.teams.push_back(
        {.name = std::to_string(team), .weight = 1.0 + static_cast<double>(team % 4)});
    for (size_t node = 0; node < options.scenario.world.agents; ++node) {
      demands[team].by_node.push_back(demand(random));
      sum += static_cast<double>(demands[team].by_node.back());
    }
  }
  std::vector<double> took;
  double used = 0;
  for (uint32_t round = 0; round <= options.rounds; ++round) {
    const double before = CpuSeconds();
    const auto allocations = ipam::Allocate(spec, units::FractionalBitRate(sum / 2), demands);
    const double after = CpuSeconds();
    used = 0;
    for (const ipam::TeamAllocation& allocation : allocations) used += allocation.share.count();
    if (round > 0) took.push_back((after - before) * 1e3);  // The first round fills caches.
  }
  if (used > sum / 2) fmt::print(stderr, "spoke-bench-budget: more than the pool was divided\n");
  std::sort(took.begin(), took.end());
  return took;
}

Json ToJson(const ScenarioResult& result) {
  const WorldCounts& counts = result.counts;
  Json shifts = Json::array();
  for (const ShiftResult& shift : result.shifts) {
    shifts.push_back({{"name", shift.name},
                      {"in_faults", shift.in_faults},
                      {"use95_s", shift.use95_s},
                      {"use_at_rest", shift.use_at_rest},
                      {"team_error", shift.team_error},
                      {"node_error", shift.node_error}});
  }
  const auto each = [&](double all) {
    return counts.decisions == 0 ? 0 : all / static_cast<double>(counts.decisions);
  };
  return {{"simulated_s", result.simulated_s},
          {"ticks", counts.ticks},
          {"over_capacity_ticks", counts.over_capacity_ticks},
          {"over_committed_ticks", counts.over_committed_ticks},
          {"below_usable_ticks", counts.below_usable_ticks},
          {"use95_s", result.use95_s},
          {"fairness_error", result.fairness_error},
          {"shrink_s", result.shrink_s},
          {"reports", counts.reports},
          {"messages", counts.messages},
          {"streams", counts.streams},
          {"decisions", counts.decisions},
          {"decide_ms", each(counts.decide_seconds) * 1e3},
          {"decide_worst_ms", counts.decide_worst_seconds * 1e3},
          {"shifts", shifts}};
}

void ShowShift(const ShiftResult& shift) {
  fmt::print(stderr, "  {:32} {:6.1f} s to 95 %, {:.3f} used, teams {:.3f}, nodes {:.3f}{}\n",
             shift.name, shift.use95_s, shift.use_at_rest, shift.team_error, shift.node_error,
             shift.in_faults ? "  (faults)" : "");
}

Json Run(Options options) {
  const std::vector<double> took = MeasureAllocation(options);
  const auto quantile = [&took](size_t quarter) { return took[(took.size() - 1) * quarter / 4]; };
  Json out = {{"agents", options.scenario.world.agents},
              {"teams", options.scenario.world.teams},
              {"seed", options.scenario.world.seed},
              {"alloc_ms",
               {{"n", took.size()},
                {"median", quantile(2)},
                {"lower_quartile", quantile(1)},
                {"upper_quartile", quantile(3)},
                {"most", took.back()}}},
              {"runs", Json::array()}};
  options.scenario.cpu_clock = &CpuSeconds;
  options.scenario.progress = &ShowShift;
  options.scenario.world.most_delay = absl::Milliseconds(options.delay_ms);
  if (options.quiet_agents) options.scenario.world.habits = kQuietHabits;
  for (uint32_t run = 0; run < options.runs; ++run) {
    fmt::print(stderr, "spoke-bench-budget: seed {}\n", options.scenario.world.seed);
    out["runs"].push_back(ToJson(RunScenario(options.scenario)));
    ++options.scenario.world.seed;
  }
  for (const char* worst : {"over_capacity_ticks", "over_committed_ticks", "below_usable_ticks",
                            "use95_s", "fairness_error", "shrink_s"}) {
    Json most = 0;
    for (const Json& run : out["runs"]) most = std::max(most, run[worst]);
    out[worst] = most;
  }
  return out;
}

int RunMain(int argc, char** argv) {
  Options options;
  WorldOptions& world = options.scenario.world;
  CLI::App app("Divides a budget among simulated nodes, on a simulated clock.",
               "spoke-bench-budget");
  app.footer(
      "Figures of all runs together are the worst of them. Progress goes to standard error.");
  app.add_option("--agents", world.agents, "How many nodes")
      ->check(CLI::Range(20, 100'000))
      ->capture_default_str();
  app.add_option("--teams", world.teams, "How many teams share the budget")
      ->check(CLI::Range(10, 1000))
      ->capture_default_str();
  app.add_option("--teams-an-agent", world.teams_an_agent, "How many of them have pods on a node")
      ->check(CLI::Range(1, 10))
      ->capture_default_str();
  app.add_option("--seed", world.seed, "Of all that is random; one more with each run")
      ->capture_default_str();
  app.add_option("--loss", world.loss, "Part of the messages that are lost")
      ->check(CLI::Range(0.0, 0.5))
      ->capture_default_str();
  app.add_option("--delay-ms", options.delay_ms, "The most that a message takes; the least is 20")
      ->check(CLI::Range(20, 10'000))
      ->capture_default_str();
  app.add_option("--runs", options.runs, "Simulations")->capture_default_str();
  app.add_option("--rounds", options.rounds, "Allocations that are timed")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_flag("--quiet-agents", options.quiet_agents,
               "Agents report at once only what is held back, and forget a peak after 3 s, not 2");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  fmt::print("{}\n", Run(options).dump());
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace spoke::budget_sim

int main(int argc, char** argv) {
  try {
    return spoke::budget_sim::RunMain(argc, argv);
  } catch (const std::exception& error) {  // Out of memory, or a bug.
    std::fprintf(stderr, "spoke-bench-budget: %s\n", error.what());
    return 1;
  }
}
