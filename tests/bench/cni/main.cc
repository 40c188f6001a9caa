// The program spoke-cni-bench measures CNI plugins as a runtime runs them. scripts/bench/cni_add.py
// and cni_churn.py start it in a namespace of their own, beside an agent, and judge what it prints.
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "lib/base/status.h"
#include "nlohmann/json.hpp"
#include "tests/bench/cni/attach_floor.h"
#include "tests/bench/cni/modes.h"
#include "tests/bench/cni/networks.h"

namespace spoke::cni_bench {
namespace {

struct Options {
  Places places;
  std::string pods_dir;
  std::string empty;  // A program that does nothing.
  size_t rounds = 100;
  size_t size = 32;
  size_t cycles = 10'000;
  size_t parallel = 16;
  std::vector<size_t> present = {0, 110, 500};
  std::vector<std::string> networks = {kSpoke, kSpokeDual, kPtp, kPtpChain};
};

absl::StatusOr<std::map<std::string, Chain>> Networks(const Options& options) {
  ASSIGN_OR_RETURN(auto all, MakeNetworks(options.places));
  std::map<std::string, Chain> wanted;
  for (const std::string& name : options.networks) {
    const auto it = all.find(name);
    if (it == all.end()) return absl::InvalidArgumentError("no network " + name);
    wanted.emplace(name, it->second);
  }
  return wanted;
}

absl::StatusOr<nlohmann::json> Run(const std::string& mode, const Options& options) {
  PodMaker pods(options.pods_dir);
  const auto to_json =
      [](const absl::StatusOr<Samples>& samples) -> absl::StatusOr<nlohmann::json> {
    if (!samples.ok()) return samples.status();
    return nlohmann::json(*samples);
  };
  if (mode == "floor") return to_json(MeasureFloor(options.rounds, pods));
  if (mode == "exec") {
    return to_json(
        MeasureExec(options.places.plugin_dir + "/spoke", options.empty, options.rounds));
  }
  ASSIGN_OR_RETURN(const auto networks, Networks(options));
  if (mode == "serial") return to_json(MeasureSerial(networks, options.rounds, pods));
  if (mode == "wave") return to_json(MeasureWaves(networks, options.size, options.rounds, pods));
  const Chain& first = networks.begin()->second;
  if (mode == "present") {
    return to_json(MeasurePresent(first, options.present, options.rounds, pods));
  }
  ASSIGN_OR_RETURN(const Churned churned, Churn(first, options.cycles, options.parallel, pods));
  return nlohmann::json{{"cycles", churned.cycles},
                        {"errors", churned.errors},
                        {"first_error", churned.first_error},
                        {"seconds", churned.seconds}};
}

int RunMain(int argc, char** argv) {
  Options options;
  CLI::App app("Measures CNI plugins as a runtime runs them; prints one JSON object.");
  app.add_option("--plugin-dir", options.places.plugin_dir, "where spoke is");
  app.add_option("--peers-dir", options.places.peers_dir, "where the reference plugins are");
  app.add_option("--socket", options.places.socket, "the agent's");
  app.add_option("--leases-dir", options.places.leases_dir, "where host-local keeps its files");
  app.add_option("--pods-dir", options.pods_dir, "where namespaces are mounted");
  app.add_option("--empty", options.empty, "a program that does nothing");
  app.add_option("--rounds", options.rounds, "how often");
  app.add_option("--size", options.size, "pods a wave");
  app.add_option("--cycles", options.cycles, "pods that come and go");
  app.add_option("--parallel", options.parallel, "of them at once");
  app.add_option("--present", options.present, "pods that are there meanwhile");
  app.add_option("--networks", options.networks, "which to measure");
  app.require_subcommand(1);
  for (const char* mode : {"serial", "present", "wave", "exec", "floor", "churn"}) {
    app.add_subcommand(mode)->fallthrough();
  }
  CLI11_PARSE(app, argc, argv);
  const auto result = Run(app.get_subcommands().front()->get_name(), options);
  if (!result.ok()) {
    std::fprintf(stderr, "spoke-cni-bench: %s\n", result.status().ToString().c_str());
    return 1;
  }
  std::printf("%s\n", result->dump().c_str());
  return 0;
}

}  // namespace
}  // namespace spoke::cni_bench

int main(int argc, char** argv) {
  try {
    return spoke::cni_bench::RunMain(argc, argv);
  } catch (const std::exception& error) {  // Out of memory, or a bug.
    std::fprintf(stderr, "spoke-cni-bench: %s\n", error.what());
    return 1;
  }
}
