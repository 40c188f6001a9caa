// The program spoke-azure-bench: the server against a simulated Azure, on a simulated clock. Prints
// JSON.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "tests/bench/azure/floor.h"
#include "tests/bench/azure/world.h"

namespace spoke::azure_bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kLongest = absl::Hours(2);

struct Options {
  WorldOptions world;
  double latency_least = 10;
  double latency_most = 40;
  double phase = 0;
  double failed = 0;
  double errors = 0;
  double foreign = 0;
  int cycles = 100'000;
  double pod_seconds = 600;
  bool wander = false;
};

double MinutesSince(absl::Time began, absl::Time at) {
  return absl::ToDoubleSeconds(at - began) / 60;
}

Json Calls(World& world) {
  Json calls = Json::object();
  for (const auto& [kind, count] : world.arm().counters().calls) {
    calls[fmt::format("{} {}", kind.first, kind.second)] = count;
  }
  return calls;
}

// Every node starts at one moment without an address, and wants its target.
absl::StatusOr<Json> ColdStart(const Options& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<World> world, World::Create(options.world));
  const uint64_t unit = options.world.blocks ? 16 : 1;
  const uint64_t each = (options.world.addresses + unit - 1) / unit * unit;
  const uint64_t wanted = each * static_cast<uint64_t>(options.world.nodes);
  world->Hello();
  world->Run(world->began() + kLongest, [&] { return world->agents().total >= wanted; });
  const auto& counters = world->arm().counters();
  const absl::Duration floor =
      WriteFloor(options.world.nodes, options.world.identities, options.world.knobs.limits);
  return Json{{"minutes", MinutesSince(world->began(), world->now())},
              {"last_write_minutes", MinutesSince(world->began(), world->azure().last_write())},
              {"floor_minutes", absl::ToDoubleMinutes(floor + options.world.knobs.latency.most)},
              {"puts", world->azure().counts().writes},
              {"reads", counters.Total() - world->azure().counts().writes},
              {"throttled", counters.throttled},
              {"into_closed_gate", counters.sent_into_closed_gate},
              {"missing", wanted - std::min(wanted, world->agents().total)},
              {"surplus", world->agents().total - std::min(wanted, world->agents().total)},
              {"doubled", world->agents().doubled},
              {"not_on_the_wire", world->NotOnTheWire()},
              {"foreign_writes", counters.foreign_writes},
              {"foreign_writes_lost", counters.foreign_writes_lost},
              {"operations_failed", counters.operations_failed},
              {"writes_by_minute", world->azure().writes_by_minute()},
              {"calls", Calls(*world)}};
}

// Pods come and go on nodes that have what they need. A pod that ends is any of them; the next
// goes, as schedulers do it, to the emptier of two nodes, or with `wander` to any, so that some
// nodes fill up while others fall empty.
class Churn {
 public:
  Churn(World& world, const Options& options)
      : world_(world),
        options_(options),
        random_(options.world.seed),
        pods_(static_cast<size_t>(options.world.nodes)),
        generation_(static_cast<size_t>(options.world.nodes)) {}

  // Returns whether one more pod found an address.
  bool Start(size_t node) {
    for (auto& [address, used] : world_.agents().assignable[node + 1]) {
      if (used) continue;
      used = true;
      node_api::Assignment assignment{
          .address = address, .generation = ++generation_[node], .since = world_.now()};
      assignment.lessee = {.container_id = fmt::format("c{}-{}", node, assignment.generation),
                           .ifname = "eth0",
                           .pod_namespace = "train",
                           .pod_name = "p",
                           .pod_uid = "u"};
      pods_[node].push_back(assignment);
      world_.Report(static_cast<int>(node), {.sequence = ++sequence_, .in_use = {assignment}});
      return true;
    }
    return false;
  }

  void End(size_t node) {
    std::vector<node_api::Assignment>& pods = pods_[node];
    const node_api::Assignment pod = pods.front();
    pods.erase(pods.begin());
    ++cycles_;
    world_.Report(static_cast<int>(node),
                  {.sequence = ++sequence_, .released = {{pod.address, pod.generation}}});
    cooldown_.emplace_back(world_.now() + absl::Seconds(30), node, pod.address);
  }

  // Ends the cooldown of released addresses.
  void Cool() {
    while (!cooldown_.empty() && std::get<0>(cooldown_.front()) <= world_.now()) {
      const auto [at, node, address] = cooldown_.front();
      cooldown_.pop_front();
      const auto it = world_.agents().assignable[node + 1].find(address);
      if (it != world_.agents().assignable[node + 1].end()) it->second = false;
      world_.Report(static_cast<int>(node), {.sequence = ++sequence_, .cooled = {address}});
    }
  }

  // Lets one second of the cluster's life pass.
  void Second(double starts) {
    Cool();
    world_.AnswerReclaims();
    due_ += starts;
    for (; due_ >= 1; due_ -= 1) {
      if (running() > 0) End(NodeOfAnyPod());
      if (!Start(NextNode())) ++refused_;
    }
  }

  size_t NextNode() {
    const size_t node = random_() % pods_.size();
    const size_t other = random_() % pods_.size();
    return !options_.wander && pods_[other].size() < pods_[node].size() ? other : node;
  }

  size_t NodeOfAnyPod() {
    uint64_t pod = random_() % running();
    for (size_t node = 0;; ++node) {
      if (pod < pods_[node].size()) return node;
      pod -= pods_[node].size();
    }
  }

  uint64_t cycles() const { return cycles_; }
  uint64_t refused() const { return refused_; }
  uint64_t running() const {
    uint64_t count = 0;
    for (const auto& pods : pods_) count += pods.size();
    return count;
  }

 private:
  World& world_;
  const Options& options_;
  std::mt19937_64 random_;
  std::vector<std::vector<node_api::Assignment>> pods_;
  std::vector<uint64_t> generation_;
  std::deque<std::tuple<absl::Time, size_t, ip::Address>> cooldown_;
  uint64_t sequence_ = 0;
  uint64_t cycles_ = 0;
  uint64_t refused_ = 0;
  double due_ = 0;
};

absl::StatusOr<Json> SteadyChurn(const Options& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<World> world, World::Create(options.world));
  const uint64_t wanted =
      static_cast<uint64_t>(options.world.addresses) * static_cast<uint64_t>(options.world.nodes);
  world->Hello();
  world->Run(world->began() + kLongest, [&] { return world->agents().total >= wanted; });
  if (world->agents().total < wanted) return absl::InternalError("the cold start never ended");
  Churn churn(*world, options);
  // Half of what the nodes hold is in use, each pod for as long as was asked.
  const auto nodes = static_cast<double>(options.world.nodes);
  const double pods = nodes * options.world.addresses / 2;
  const double starts = pods / options.pod_seconds;
  const auto never = [] { return false; };
  for (size_t node = 0; node < static_cast<size_t>(options.world.nodes); ++node) {
    for (uint32_t i = 0; i < options.world.addresses / 2; ++i) churn.Start(node);
  }
  // This lasts until what the first pods made necessary is done.
  for (int i = 0; i < 1800; ++i) {
    churn.Second(starts);
    world->Run(world->now() + absl::Seconds(1), never);
  }
  const uint64_t cycles = churn.cycles();
  const uint64_t calls = world->azure().counts().calls;
  const uint64_t writes = world->azure().counts().writes;
  const uint64_t pages = world->azure().counts().list_pages;
  const absl::Time began = world->now();
  while (churn.cycles() - cycles < static_cast<uint64_t>(options.cycles)) {
    churn.Second(starts);
    world->Run(world->now() + absl::Seconds(1), never);
  }
  const auto done = static_cast<double>(churn.cycles() - cycles);
  const uint64_t spent = world->azure().counts().calls - calls;
  return Json{{"calls_per_pod", static_cast<double>(spent) / done},
              {"calls", spent},
              {"writes", world->azure().counts().writes - writes},
              {"list_pages", world->azure().counts().list_pages - pages},
              {"cycles", churn.cycles() - cycles},
              {"hours", MinutesSince(began, world->now()) / 60},
              {"running_pods", churn.running()},
              {"refused_pods", churn.refused()},
              {"doubled", world->agents().doubled},
              {"not_on_the_wire", world->NotOnTheWire()}};
}

void AddOptions(CLI::App& app, Options& options) {
  WorldOptions& world = options.world;
  app.add_option("--nodes", world.nodes, "Instances")->check(CLI::Range(1, 20'000));
  app.add_option("--scale-sets", world.scale_sets)->check(CLI::Range(1, 200));
  app.add_option("--addresses", world.addresses, "A node's target")->check(CLI::Range(1, 250));
  app.add_option("--batch", world.batch, "The steps it grows in")->check(CLI::Range(1, 250));
  app.add_flag("--blocks", world.blocks, "Blocks of 16");
  app.add_option("--identities", world.identities)->check(CLI::Range(1, 15));
  app.add_option("--share-for-others", world.share_for_others)->check(CLI::Range(0.0, 0.9));
  app.add_option("--latency-least", options.latency_least, "Of operations, s");
  app.add_option("--latency-most", options.latency_most, "Of operations, s");
  app.add_option("--phase", options.phase, "When in a minute Compute refills, s");
  app.add_option("--failed", options.failed, "Share of operations that fail");
  app.add_option("--errors", options.errors, "Share of calls that end in 503");
  app.add_option("--foreign", options.foreign, "Share of writes another writer comes before");
  app.add_option("--cycles", options.cycles, "Pods that come and go");
  app.add_flag("--wander", options.wander, "Pods go to any node, however full");
  app.add_option("--pod-seconds", options.pod_seconds, "How long a pod lives");
  app.add_option("--seed", world.seed);
}

int RunMain(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the server against a simulated Azure, on a simulated clock.",
               "spoke-azure-bench");
  app.require_subcommand(1);
  CLI::App* cold = app.add_subcommand("coldstart", "All nodes start at one moment");
  CLI::App* churn = app.add_subcommand("churn", "Pods come and go on nodes that have started");
  AddOptions(*cold, options);
  AddOptions(*churn, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  azure_sim::Knobs& knobs = options.world.knobs;
  knobs.latency.least = absl::Seconds(options.latency_least);
  knobs.latency.most = absl::Seconds(options.latency_most);
  knobs.limits.compute_phase = absl::Seconds(options.phase);
  knobs.failed_operations = options.failed;
  knobs.server_errors = options.errors;
  knobs.foreign_writes = options.foreign;
  const auto result = cold->parsed() ? ColdStart(options) : SteadyChurn(options);
  if (!result.ok()) {
    fmt::print(stderr, "spoke-azure-bench: {}\n", base::MessageOf(result.status()));
    return 1;
  }
  fmt::print("{}\n", result->dump());
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace spoke::azure_bench

int main(int argc, char** argv) {
  try {
    return spoke::azure_bench::RunMain(argc, argv);
  } catch (const std::exception& error) {  // Out of memory, or a bug.
    std::fprintf(stderr, "spoke-azure-bench: %s\n", error.what());
    return 1;
  }
}
