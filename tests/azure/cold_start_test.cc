// Tests of many nodes at once: all are served, within Azure's limits, with few reads.
#include "tests/azure/machine_world.h"

namespace spoke::ipam::azure {
namespace {

struct Outcome {
  absl::Duration time;
  MachineCounts counts;
  uint64_t into_closed_gate = 0;
};

struct Fleet {
  int sets = 1;
  int instances = 1;
  int addresses = 1;
  size_t principals = 1;
};

Outcome ColdStart(const Fleet& fleet, azure_sim::Knobs knobs = {}, uint64_t seed = 1) {
  const auto [sets, instances, addresses, principals] = fleet;
  azure_sim::SimSpec spec = azure_sim::SmallSpec(instances, "10.0.0.0/12");
  for (int i = 1; i < sets; ++i) {
    azure_sim::ScaleSetSpec set = spec.scale_sets[0];
    set.name = fmt::format("pool{}", i);
    spec.scale_sets.push_back(set);
  }
  Settings settings;
  settings.identities.resize(principals);
  AzureStateWorld world(spec, std::move(knobs), settings, seed);
  const absl::Time start = world.now();
  size_t expected = 0;
  for (int i = 0; i < instances; ++i) {
    for (const auto& set : spec.scale_sets) {
      const std::string id = azure_sim::Lower(fmt::format("{}/virtualmachines/{}", set.id(), i));
      world.Request(world.Ask(id, Names("a", addresses)));
      ++expected;
    }
  }
  world.RunUntil([&] { return world.answers() == expected; });
  EXPECT_EQ(world.answers(), expected);
  for (const auto& set : spec.scale_sets) {
    for (int i = 0; i < instances; ++i) {
      const std::string id = azure_sim::Lower(fmt::format("{}/virtualmachines/{}", set.id(), i));
      EXPECT_EQ(world.OnWire(id).size(), static_cast<size_t>(addresses)) << id;
    }
  }
  return {world.now() - start, world.machine().counts(),
          world.arm().counters().sent_into_closed_gate};
}

TEST(ColdStart, AllAreServedWithinTheLimits) {
  const Outcome outcome = ColdStart({.sets = 4, .instances = 250, .addresses = 8});
  EXPECT_EQ(outcome.counts.writes, 1000U);
  EXPECT_EQ(outcome.counts.refused, 0U);
  EXPECT_EQ(outcome.into_closed_gate, 0U);
  EXPECT_LE(outcome.counts.reads, 2900U)
      << "25 reads a second for 8 writes: no more than three each";
  EXPECT_LT(outcome.time, absl::Minutes(6));
  RecordProperty("seconds", absl::FormatDuration(outcome.time));
}

TEST(ColdStart, SeveralIdentitiesGetMoreThroughTheFrontDoor) {
  const Outcome one = ColdStart({.sets = 4, .instances = 150});
  const Outcome three = ColdStart({.sets = 4, .instances = 150, .principals = 3});
  EXPECT_EQ(three.counts.refused, 0U);
  EXPECT_LT(three.time, one.time);
}

TEST(ColdStart, FaultsOfAllKindsDelayButLoseNothing) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    azure_sim::Knobs knobs;
    knobs.server_errors = 0.02;
    knobs.lost_responses = 0.02;
    knobs.lost_reads = 0.02;
    knobs.foreign_writes = 0.02;
    knobs.conflicts = 0.02;
    knobs.network_busy = 0.02;
    knobs.list_lag = absl::Seconds(5);
    knobs.nic_lag = absl::Seconds(5);
    knobs.shuffle_ip_configurations = true;
    knobs.vary_id_case = true;
    const Outcome outcome = ColdStart({.sets = 2, .instances = 60, .addresses = 5}, knobs, seed);
    EXPECT_EQ(outcome.into_closed_gate, 0U);
  }
}

}  // namespace
}  // namespace spoke::ipam::azure
