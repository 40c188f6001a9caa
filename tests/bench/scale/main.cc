// The program spoke-scale: what an operation costs the server with few addresses and with many.
// Prints JSON.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "tests/bench/scale/loaded_server.h"

namespace spoke::scale {
namespace {

struct Options {
  std::string directory;
  std::vector<uint64_t> sizes = {20'000, 200'000, 2'000'000};
  uint32_t rounds = 7;
  uint32_t operations = 20'000;
  uint32_t nodes = 64;
  uint64_t seed = 1;
};

// The microseconds of an operation, one entry a round.
struct Series {
  std::vector<double> cpu;
  std::vector<double> wall;
};

absl::Status RunRound(LoadedServer& server, const Options& options, std::mt19937_64& random,
                      Series& out) {
  Cost total;
  while (total.operations < options.operations) {
    ASSIGN_OR_RETURN(const Cost cost, server.AssignAndRelease(options.nodes, random));
    total.cpu_seconds += cost.cpu_seconds;
    total.wall_seconds += cost.wall_seconds;
    total.operations += cost.operations;
  }
  out.cpu.push_back(total.cpu_seconds * 1e6 / static_cast<double>(total.operations));
  out.wall.push_back(total.wall_seconds * 1e6 / static_cast<double>(total.operations));
  return absl::OkStatus();
}

// The sizes take turns, so that what the machine does besides touches all alike. The first round
// fills caches and is not counted.
absl::StatusOr<nlohmann::ordered_json> Run(const Options& options) {
  std::vector<std::unique_ptr<LoadedServer>> servers;
  for (const uint64_t size : options.sizes) {
    fmt::print(stderr, "spoke-scale: setting up {} addresses\n", size);
    ASSIGN_OR_RETURN(auto server,
                     LoadedServer::Create(fmt::format("{}/{}.db", options.directory, size), size));
    servers.push_back(std::move(server));
  }
  std::mt19937_64 random(options.seed);
  std::vector<Series> series(servers.size());
  for (uint32_t round = 0; round <= options.rounds; ++round) {
    for (size_t i = 0; i < servers.size(); ++i) {
      Series unused;
      RETURN_IF_ERROR(RunRound(*servers[i], options, random, round == 0 ? unused : series[i]));
    }
    fmt::print(stderr, "spoke-scale: round {} of {}\n", round, options.rounds);
  }
  nlohmann::ordered_json out = {{"operations", options.operations},
                                {"nodes_a_commit", options.nodes},
                                {"sizes", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < servers.size(); ++i) {
    out["sizes"].push_back({{"addresses", servers[i]->addresses()},
                            {"cpu_us", series[i].cpu},
                            {"wall_us", series[i].wall}});
  }
  return out;
}

int RunMain(int argc, char** argv) {
  Options options;
  CLI::App app("Measures what an operation costs the server with few addresses and with many.",
               "spoke-scale");
  app.footer("The stores are new files in DIR and stay there.");
  app.add_option("--directory", options.directory, "An empty directory on a disk")
      ->type_name("DIR")
      ->required();
  app.add_option("--addresses", options.sizes, "Sizes, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Turns of each size")->capture_default_str();
  app.add_option("--operations", options.operations, "Assignments and releases in a turn, at least")
      ->capture_default_str();
  app.add_option("--nodes", options.nodes, "Nodes that report at once, in one commit")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the choice of nodes")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto result = Run(options);
  if (!result.ok()) {
    fmt::print(stderr, "spoke-scale: {}\n", base::MessageOf(result.status()));
    return 1;
  }
  fmt::print("{}\n", result->dump());
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace spoke::scale

int main(int argc, char** argv) {
  try {
    return spoke::scale::RunMain(argc, argv);
  } catch (const std::exception& error) {  // Out of memory, or a bug.
    std::fprintf(stderr, "spoke-scale: %s\n", error.what());
    return 1;
  }
}
