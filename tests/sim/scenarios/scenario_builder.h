// Builds the events of a named run one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "lib/base/fnv1a.h"
#include "tests/sim/plan.h"
#include "tests/sim/scenarios/scenarios.h"

namespace spoke::sim {

// Not thread-safe.
class Builder {
 public:
  Builder(std::string name, std::string origin, int nodes) {
    scenario_.name = std::move(name);
    scenario_.origin = std::move(origin);
    scenario_.run.world.seed = base::Fnv1a(scenario_.name);
    scenario_.run.world.nodes = nodes;
    scenario_.run.until = absl::Minutes(6);
    scenario_.run.settling = absl::Minutes(5);
  }
  // The seed that found it; unless said, the name is the seed.
  Builder& Seed(uint64_t seed) {
    scenario_.run.world.seed = seed;
    return *this;
  }
  Builder& Servers(int servers) {
    scenario_.run.world.servers = servers;
    return *this;
  }
  Builder& Azure() {
    scenario_.run.world.azure = true;
    return *this;
  }
  Builder& Blocks() {
    scenario_.run.world.block_length = 28;
    return *this;
  }
  Builder& TwoFamilies() {
    scenario_.run.world.ipv6 = true;
    return *this;
  }
  Builder& TeamPool() {
    scenario_.run.world.team_pool = true;
    return *this;
  }
  Builder& Budget() {
    scenario_.run.world.budget = true;
    return *this;
  }
  // How long everything has to come to agree in the end.
  Builder& Settling(absl::Duration settling) {
    scenario_.run.settling = settling;
    return *this;
  }
  Builder& Pool(std::string pool) {
    scenario_.run.world.pool = std::move(pool);
    return *this;
  }
  Builder& Until(absl::Duration until) {
    scenario_.run.until = until;
    return *this;
  }
  Builder& At(double second, Act act, uint64_t target = 0, int64_t amount = 0, double lasts = 0) {
    scenario_.run.plan.push_back({.at = absl::Seconds(second),
                                  .act = act,
                                  .target = target,
                                  .amount = amount,
                                  .lasts = absl::Seconds(lasts)});
    return *this;
  }
  Builder& OnAll(double second, Act act, int64_t amount = 0) {
    for (int node = 0; node < scenario_.run.world.nodes; ++node) {
      At(second, act, static_cast<uint64_t>(node), amount);
    }
    return *this;
  }
  // From `first` on, each `step` seconds, before `last`.
  struct Times {
    double first;
    double step;
    double last;
  };
  Builder& Each(const Times& times, Act act, int64_t amount = 0, double lasts = 0) {
    uint64_t target = 0;
    for (double second = times.first; second < times.last; second += times.step) {
      At(second, act, target++, amount, lasts);
    }
    return *this;
  }
  Builder& Promises(std::string what, uint64_t least = 1) {
    scenario_.promises.push_back({std::move(what), least});
    return *this;
  }
  Scenario Build() {
    Plan& plan = scenario_.run.plan;
    std::stable_sort(plan.begin(), plan.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
    return scenario_;
  }

 private:
  Scenario scenario_;
};

// Those with audits that repair (audits.cc), on Azure (azure.cc), with blocks (blocks.cc), with a
// budget (budget.cc), with several pools (pools.cc), with a store that is behind (recoveries.cc),
// with agents that lie (liars.cc), and with what operators and the cloud want of single nodes
// (operators.cc).
void AddAudits(std::vector<Scenario>& all);
void AddAzure(std::vector<Scenario>& all);
void AddBlocks(std::vector<Scenario>& all);
void AddBudgets(std::vector<Scenario>& all);
void AddLiars(std::vector<Scenario>& all);
void AddOperators(std::vector<Scenario>& all);
void AddPools(std::vector<Scenario>& all);
void AddRecoveries(std::vector<Scenario>& all);

}  // namespace spoke::sim
