// The program spoke-path-bench sends packets from one network namespace to another and says what
// they cost. scripts/bench/path_cost.py and others build the namespaces, and judge what it prints.
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "lib/base/status.h"
#include "nlohmann/json.hpp"
#include "tests/bench/path/counter_dump.h"
#include "tests/bench/path/flow.h"
#include "tests/bench/path/modes.h"

namespace spoke::path_bench {
namespace {

struct Options {
  std::vector<std::string> paths;
  std::string where;
  std::string table = "spoke";
  uint32_t fast_map = 0;
  uint16_t port = 9000;
  int processor = 0;
  size_t packets = 100'000;
  size_t mebibytes = 256;
  size_t rounds = 10'000;
  size_t rate = 20'000;
  double seconds = 1;
  size_t payload = 64;
};

// Reads "FILE,FILE,ADDRESS,ADDRESS": namespaces and addresses of the sender and of the receiver.
absl::StatusOr<Ends> ParsePath(const std::string& text, uint16_t port) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  if (parts.size() != 4) return absl::InvalidArgumentError(text + " is not a path");
  ASSIGN_OR_RETURN(netns::Netns from, netns::Netns::Open(parts[0]));
  ASSIGN_OR_RETURN(netns::Netns to, netns::Netns::Open(parts[1]));
  ASSIGN_OR_RETURN(const ip::Address source, ip::Address::Parse(parts[2]));
  ASSIGN_OR_RETURN(const ip::Address destination, ip::Address::Parse(parts[3]));
  return Ends{std::move(from), std::move(to), source, destination, port};
}

absl::StatusOr<nlohmann::json> Run(const std::string& mode, const Options& options) {
  RETURN_IF_ERROR(PinTo(options.processor));
  if (mode == "dump") {
    ASSIGN_OR_RETURN(const netns::Netns where, netns::Netns::Open(options.where));
    return MeasureDump(
        where, {.table = options.table, .fast_map = options.fast_map, .rounds = options.rounds});
  }
  if (options.paths.empty()) return absl::InvalidArgumentError("give at least one --path");
  std::vector<Ends> paths;
  for (const std::string& text : options.paths) {
    ASSIGN_OR_RETURN(Ends ends, ParsePath(text, options.port));
    paths.push_back(std::move(ends));
  }
  if (mode == "udp") return MeasureUdp(paths, options.packets);
  if (mode == "tcp") return MeasureTcp(paths, options.mebibytes);
  if (mode == "rtt") return MeasureRoundTrip(paths, options.rounds);
  return Conserve(paths.front(), {.packets_per_second = options.rate,
                                  .length = absl::Seconds(options.seconds),
                                  .payload = options.payload});
}

int RunMain(int argc, char** argv) {
  Options options;
  CLI::App app("Sends packets from one network namespace to another; prints JSON.");
  app.add_option("--path", options.paths,
                 "FILE,FILE,ADDRESS,ADDRESS: namespaces and addresses of sender and receiver; "
                 "several are measured in turns");
  app.add_option("--where", options.where, "dump: file of the namespace");
  app.add_option("--table", options.table, "dump: of the family inet");
  app.add_option("--fast-map", options.fast_map, "dump: number of the fast path's map of counters");
  app.add_option("--port", options.port, "of the receiver");
  app.add_option("--processor", options.processor, "where all of it runs")
      ->check(CLI::Range(0, 1023));
  app.add_option("--packets", options.packets, "udp: how many")->check(CLI::Range(1, 10'000'000));
  app.add_option("--mib", options.mebibytes, "tcp: how much")->check(CLI::Range(1, 100'000));
  app.add_option("--rounds", options.rounds, "rtt, dump: how many")
      ->check(CLI::Range(1, 10'000'000));
  app.add_option("--rate", options.rate, "conserve: packets a second")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--seconds", options.seconds, "conserve: how long")->check(CLI::Range(0.0, 120.0));
  app.add_option("--payload", options.payload, "conserve: bytes a packet")
      ->check(CLI::Range(8, 1400));
  app.require_subcommand(1);
  for (const char* mode : {"udp", "tcp", "rtt", "conserve", "dump"})
    app.add_subcommand(mode)->fallthrough();
  CLI11_PARSE(app, argc, argv);
  const auto result = Run(app.get_subcommands().front()->get_name(), options);
  if (!result.ok()) {
    std::fprintf(stderr, "spoke-path-bench: %s\n", result.status().ToString().c_str());
    return 1;
  }
  std::printf("%s\n", result->dump().c_str());
  return 0;
}

}  // namespace
}  // namespace spoke::path_bench

int main(int argc, char** argv) {
  try {
    return spoke::path_bench::RunMain(argc, argv);
  } catch (const std::exception& error) {  // Out of memory, or a bug.
    std::fprintf(stderr, "spoke-path-bench: %s\n", error.what());
    return 1;
  }
}
