// Runs simulated fleets: one with its story, or many one after the other; names the scenarios, and
// says which runs find the defects of mutants.txt.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <exception>
#include <map>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/synchronization/mutex.h"
#include "fmt/core.h"
#include "tests/sim/hunt.h"
#include "tests/sim/mutant.h"
#include "tests/sim/scenarios/scenarios.h"

namespace spoke::sim {
namespace {

struct Options {
  uint64_t seed = 1;
  uint64_t seeds = 1;
  int nodes = 0;
  double events = -1;
  double until_s = 0;
  std::string scenario;
  bool azure = false;
  int mutant = 0;
  bool trace = false;
  bool counts = false;
  bool shrink = false;
  bool list = false;
  bool mutants = false;
};

double CpuMinutes() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC) / 60;
}

void PrintPlan(const RunSettings& settings) {
  fmt::print("{} nodes, {} servers, until {:.6f}s:\n", settings.world.nodes, settings.world.servers,
             absl::ToDoubleSeconds(settings.until));
  for (const PlannedEvent& event : settings.plan) fmt::print("  {}\n", Describe(event));
}

void Tell(const std::string& name, const RunResult& result) {
  fmt::print("{}: law {} is broken at {:.6f}s: {}\n", name, result.violation->law,
             absl::ToDoubleSeconds(result.at), result.violation->what);
  std::fflush(stdout);
}

int List() {
  for (const Scenario& scenario : AllScenarios()) {
    fmt::print("{:<32} {}\n", scenario.name, scenario.origin);
    for (const Promise& promise : scenario.promises) {
      fmt::print("{:<32}   reaches \"{}\" {} times\n", "", promise.what, promise.least);
    }
  }
  return 0;
}

// A mutant may end the program, as a broken invariant of it does: so each has a process of its own.
int Mutants(uint64_t seeds) {
  int killed = 0;
  for (const auto& [number, name] : MutantNames()) {
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
      present_mutant = number;
      const double began = CpuMinutes();
      const auto found = Hunt(seeds);
      if (found) {
        fmt::print("{:>3}  law {:<2} {:<32} {:>3} runs {:>6.1f}s  {}\n", number,
                   found->violation.law, found->by, found->runs, (CpuMinutes() - began) * 60, name);
      }
      std::fflush(stdout);
      ::_exit(found ? 0 : 3);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) fmt::print("{:>3}  ends the program: {}\n", number, name);
    const bool lives = WIFEXITED(status) && WEXITSTATUS(status) == 3;
    if (lives) fmt::print("{:>3}  LIVES: {}\n", number, name);
    killed += lives ? 0 : 1;
  }
  fmt::print("{} of {} mutants killed\n", killed, MutantNames().size());
  return killed == static_cast<int>(MutantNames().size()) ? 0 : 1;
}

int RunScenarios(const Options& options) {
  int ran = 0;
  int failed = 0;
  for (Scenario& scenario : AllScenarios()) {
    if (options.scenario != "all" && options.scenario != scenario.name) continue;
    ++ran;
    scenario.run.world.keep_trace = options.trace;
    if (options.azure && !std::exchange(scenario.run.world.azure, true)) {
      // What it promises it promises of the cloud that it was made for, and machines themselves
      // need addresses of Azure's.
      scenario.promises.clear();
      scenario.run.world.pool = WorldSettings().pool;
    }
    const RunResult result = RunPlan(scenario.run);
    if (options.trace) fmt::print("{}", result.trace);
    if (result.violation) Tell(scenario.name, result);
    const std::string broken = result.violation ? "" : BrokenPromises(scenario, result);
    if (!broken.empty()) fmt::print("{}: {}\n", scenario.name, broken);
    failed += result.violation || !broken.empty() ? 1 : 0;
    if (result.violation && options.shrink) PrintPlan(Shrink(scenario.run, 400));
  }
  if (ran == 0) {
    fmt::print(stderr, "spoke-sim: there is no scenario {}; see --list\n", options.scenario);
    return 2;
  }
  fmt::print("{} scenarios failed\n", failed);
  return failed == 0 ? 0 : 1;
}

int RunSeeds(const Options& options) {
  uint64_t failed = 0;
  double node_hours = 0;
  std::map<std::string, uint64_t> counts;
  const double began = CpuMinutes();
  for (uint64_t seed = options.seed; seed < options.seed + options.seeds; ++seed) {
    RunSettings settings = SettingsOfSeed(seed, options.nodes, options.events);
    settings.world.keep_trace = options.trace;
    settings.world.azure = settings.world.azure || options.azure;
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
    Tell(fmt::format("seed {}", seed), result);
    if (options.shrink) PrintPlan(Shrink(settings, 400));
  }
  for (const auto& [what, times] : counts) {
    if (options.counts) fmt::print("{:>10} {}\n", times, what);
  }
  fmt::print("{} seeds, {} failed, {:.1f} node-hours, {:.0f} node-hours a CPU minute\n",
             options.seeds, failed, node_hours, node_hours / (CpuMinutes() - began));
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace spoke::sim

int main(int argc, char** argv) try {
  spoke::sim::Options options;
  CLI::App app(
      "Runs simulated fleets of servers and agents, and holds each step against the laws.");
  app.add_option("--seed", options.seed, "The first seed");
  app.add_option("--seeds", options.seeds, "How many seeds, one after the other");
  app.add_option("--nodes", options.nodes, "How many nodes; 0: as the seed says");
  app.add_option("--events", options.events,
                 "How much befalls a node in an hour, faults and pods; 40 unless said otherwise")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--until", options.until_s, "Ends the run after so many simulated seconds");
  app.add_option("--scenario", options.scenario, "Runs this scenario, or all, instead of seeds");
  app.add_option("--mutant", options.mutant, "Has this defect");
  app.add_flag("--azure", options.azure, "Has Azure for a cloud in all runs, not in some");
  app.add_flag("--trace", options.trace, "Tells the story");
  app.add_flag("--counts", options.counts, "Counts what has happened");
  app.add_flag("--shrink", options.shrink, "Leaves out all events that do not matter");
  app.add_flag("--list", options.list, "Lists the scenarios");
  app.add_flag("--mutants", options.mutants, "Says which run finds each defect");
  CLI11_PARSE(app, argc, argv);
  spoke::sim::present_mutant = options.mutant;
  // As the programs do: there is one thread, and Debian's absl compares locks at each of them.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (options.list) return spoke::sim::List();
  if (options.mutants) return spoke::sim::Mutants(options.seeds);
  if (!options.scenario.empty()) return spoke::sim::RunScenarios(options);
  return spoke::sim::RunSeeds(options);
} catch (const std::exception& error) {  // Out of memory, or a bug.
  std::fprintf(stderr, "spoke-sim: %s\n", error.what());
  return 1;
}
