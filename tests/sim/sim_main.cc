// Runs simulations: by seeds until a time is over, one that is told as a story, or one mutant after
// the other.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "fmt/ranges.h"
#include "tests/sim/scenarios.h"
#include "tests/sim/simulation.h"

namespace spoke::sim {
namespace {

constexpr std::string_view kUsage =
    R"(usage: scripts/sim.sh [--seed N] [--seeds N] [--until MINUTES] [--trace] [--keep N,N,...] [--shrink]
                      [--mutant NAME]
       scripts/sim.sh --mutants [--seeds N]
       scripts/sim.sh --scenarios | --scenario NAME [--trace]
       scripts/sim.sh --list

Simulates servers, agents, store, cloud, network and runtimes in one process, with faults.

  --seed N         begins with this seed (default: 1)
  --seeds N        runs so many seeds, one after the other (default: 1; with --mutants: 40)
  --until MINUTES  how long faults come; then they stop, and all has to become well (default: 40)
  --trace          tells the whole story of each run
  --keep N,N,...   lets only these faults happen, of those that --trace numbers
  --shrink         when a law is broken, finds the few faults that it takes
  --mutant NAME    switches on a defect
  --mutants        switches on one defect after the other, and tells how fast each is found
  --scenarios      plays all named scenarios, and tells where each comes from
  --scenario NAME  plays this one
  --list           lists the faults and the defects

Exit code: 0 all laws held (or all defects were found), 1 not, 2 usage.
)";

struct Arguments {
  RunOptions run;
  uint64_t seeds = 0;  // 0: the default.
  bool mutants = false;
  bool list = false;
  bool shrink = false;
  bool scenarios = false;
  std::string_view scenario = {};  // Only this one; empty: all.
};

bool ReadNumber(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<std::set<uint64_t>> ReadNumbers(std::string_view text) {
  std::set<uint64_t> numbers;
  while (true) {
    const size_t comma = text.find(',');
    uint64_t number = 0;
    if (!ReadNumber(text.substr(0, comma), number)) return std::nullopt;
    numbers.insert(number);
    if (comma == std::string_view::npos) return numbers;
    text.remove_prefix(comma + 1);
  }
}

std::optional<Arguments> Read(const std::vector<std::string_view>& words) {
  Arguments arguments;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--trace") {
      arguments.run.print = true;
    } else if (word == "--mutants") {
      arguments.mutants = true;
    } else if (word == "--list") {
      arguments.list = true;
    } else if (word == "--scenarios") {
      arguments.scenarios = true;
    } else if (word == "--shrink") {
      arguments.shrink = true;
    } else if (i + 1 == words.size()) {
      return std::nullopt;
    } else if (word == "--mutant") {
      arguments.run.mutant = MutantOf(words[++i]);
      if (!arguments.run.mutant) return std::nullopt;
    } else if (word == "--scenario") {
      arguments.scenarios = true;
      arguments.scenario = words[++i];
    } else if (word == "--keep") {
      arguments.run.keep = ReadNumbers(words[++i]);
      if (!arguments.run.keep) return std::nullopt;
    } else {
      uint64_t number = 0;
      if (!ReadNumber(words[++i], number)) return std::nullopt;
      if (word == "--seed") {
        arguments.run.seed = number;
      } else if (word == "--seeds" && number > 0) {
        arguments.seeds = number;
      } else if (word == "--until" && number > 0 && number <= 100'000) {
        arguments.run.faults_for = absl::Minutes(static_cast<int64_t>(number));
      } else {
        return std::nullopt;
      }
    }
  }
  return arguments;
}

void PrintLists() {
  fmt::print("faults:\n");
  for (const std::string_view name : kFaultNames) fmt::print("  {}\n", name);
  fmt::print("defects:\n");
  for (const MutantText& text : kMutantTexts) fmt::print("  {:<32} {}\n", text.name, text.defect);
}

// The number of the law that was broken: a shorter schedule has to break the same.
std::string LawOf(const Outcome& outcome) {
  return outcome.violation ? outcome.violation->substr(0, outcome.violation->find(':')) : "";
}

// Leaves out ever smaller parts of the faults as long as the same law is broken, and prints what is
// left.
void Shrink(RunOptions run, const Outcome& broken) {
  run.print = false;
  std::vector<uint64_t> kept;
  for (uint64_t number = 1; number <= broken.faults; ++number) {
    if (!run.keep || run.keep->contains(number)) kept.push_back(number);
  }
  std::string violation = *broken.violation;
  const auto breaks = [&](const std::vector<uint64_t>& faults) {
    run.keep.emplace(faults.begin(), faults.end());
    const Outcome outcome = RunSimulation(run);
    if (LawOf(outcome) != LawOf(broken)) return false;
    violation = *outcome.violation;
    return true;
  };
  for (size_t part = std::max<size_t>(1, kept.size() / 2); part > 0; part /= 2) {
    for (size_t begin = 0; begin < kept.size();) {
      std::vector<uint64_t> fewer(kept.begin(), kept.begin() + static_cast<int64_t>(begin));
      const size_t end = std::min(kept.size(), begin + part);
      fewer.insert(fewer.end(), kept.begin() + static_cast<int64_t>(end), kept.end());
      if (breaks(fewer)) {
        kept = std::move(fewer);
      } else {
        begin = end;
      }
    }
  }
  fmt::print("shrunk to {} faults: scripts/sim.sh --seed {} --keep {}\n  {}\n", kept.size(),
             run.seed, kept.empty() ? "0" : fmt::format("{}", fmt::join(kept, ",")), violation);
}

int RunMutants(const Arguments& arguments) {
  const uint64_t seeds = arguments.seeds == 0 ? 40 : arguments.seeds;
  size_t found = 0;
  fmt::print("{:<32} {:>6} {:>9} {}\n", "defect", "seeds", "seconds", "found by");
  for (size_t i = 0; i < kMutants; ++i) {
    const absl::Time begun = absl::Now();
    RunOptions run = arguments.run;
    run.mutant = static_cast<Mutant>(i);
    std::optional<std::string> violation;
    uint64_t tried = 0;
    while (!violation && tried < seeds) {
      run.seed = arguments.run.seed + tried++;
      violation = RunSimulation(run).violation;
    }
    if (violation) ++found;
    fmt::print("{:<32} {:>6} {:>9.1f} {}\n", kMutantTexts[i].name, tried,
               absl::ToDoubleSeconds(absl::Now() - begun), violation.value_or("NOTHING"));
    std::fflush(stdout);
  }
  fmt::print("{} of {} defects were found\n", found, kMutants);
  return found == kMutants ? 0 : 1;
}

int PlayScenarios(const Arguments& arguments) {
  int code = 2;
  for (const Scenario& scenario : AllScenarios()) {
    if (!arguments.scenario.empty() && arguments.scenario != scenario.name) continue;
    const Outcome outcome = Play(scenario, arguments.run.print);
    fmt::print("{:<32} {}\n{:<32} {}\n", scenario.name, outcome.violation.value_or("all laws held"),
               "", scenario.origin);
    code = std::max(code == 2 ? 0 : code, outcome.violation ? 1 : 0);
  }
  if (code == 2) std::cerr << "there is no scenario of that name: see --scenarios\n";
  return code;
}

int RunSeeds(const Arguments& arguments) {
  const uint64_t seeds = arguments.seeds == 0 ? 1 : arguments.seeds;
  const absl::Time begun = absl::Now();
  Coverage coverage;
  uint64_t events = 0;
  absl::Duration node_time;
  uint64_t broken = 0;
  for (uint64_t i = 0; i < seeds; ++i) {
    RunOptions run = arguments.run;
    run.seed += i;
    const Outcome outcome = RunSimulation(run);
    coverage += outcome.coverage;
    events += outcome.events;
    node_time += outcome.node_time;
    if (seeds == 1 || outcome.violation) {
      fmt::print("seed {}: {} ({} lines, trace {:016x})\n", run.seed,
                 outcome.violation.value_or("all laws held"), outcome.trace_lines,
                 outcome.trace_hash);
    }
    if (!outcome.violation) continue;
    ++broken;
    if (!run.print && seeds == 1) fmt::print("{}", outcome.end_of_story);
    if (arguments.shrink) Shrink(run, outcome);
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begun);
  fmt::print("seeds={} violations={} events={} node_hours={:.1f} seconds={:.1f}\n", seeds, broken,
             events, absl::ToDoubleHours(node_time), seconds);
  for (size_t i = 0; i < kFaults; ++i) {
    const auto fault = static_cast<Fault>(i);
    fmt::print("  {:<28} {}\n", NameOf(fault), coverage.of(fault));
  }
  return broken == 0 ? 0 : 1;
}

int Main(const std::vector<std::string_view>& words) {
  if (words.size() == 1 && (words[0] == "--help" || words[0] == "-h")) {
    fmt::print("{}", kUsage);
    return 0;
  }
  const auto arguments = Read(words);
  if (!arguments) {
    std::cerr << kUsage;
    return 2;
  }
  if (arguments->list) {
    PrintLists();
    return 0;
  }
  if (arguments->scenarios) return PlayScenarios(*arguments);
  return arguments->mutants ? RunMutants(*arguments) : RunSeeds(*arguments);
}

}  // namespace
}  // namespace spoke::sim

int main(int argc, char** argv) {
  return spoke::sim::Main(std::vector<std::string_view>(argv + 1, argv + argc));
}
