#include "tests/bench/cni/modes.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "tests/bench/cni/plugin_run.h"

namespace spoke::cni_bench {
namespace {

// The number of pods after which namespaces are taken away: each that is there makes the kernel's
// walks longer.
constexpr size_t kPodsBetweenRemovals = 40;

double Microseconds(absl::Duration duration) { return absl::ToDoubleMicroseconds(duration); }

struct Wave {
  absl::Duration add;
  absl::Duration del;
  absl::Status status;
};

// Each pod has a thread of its own, as in a runtime; all begin together.
Wave RunWave(const Chain& chain, const std::vector<Pod>& pods) {
  Wave wave;
  std::mutex mutex;
  std::barrier gate(static_cast<std::ptrdiff_t>(pods.size()) + 1);
  std::vector<std::thread> threads;
  threads.reserve(pods.size());
  for (const Pod& pod : pods) {
    threads.emplace_back([&, pod] {
      gate.arrive_and_wait();
      const auto added = chain.Add(pod);
      gate.arrive_and_wait();
      gate.arrive_and_wait();
      absl::Status status = added.status();
      if (added.ok()) status = chain.Del(pod, added->result).status();
      gate.arrive_and_wait();
      const std::lock_guard lock(mutex);
      wave.status.Update(status);
    });
  }
  gate.arrive_and_wait();
  const absl::Time add_began = absl::Now();
  gate.arrive_and_wait();
  wave.add = absl::Now() - add_began;
  gate.arrive_and_wait();
  const absl::Time del_began = absl::Now();
  gate.arrive_and_wait();
  wave.del = absl::Now() - del_began;
  for (std::thread& thread : threads) thread.join();
  return wave;
}

}  // namespace

absl::StatusOr<Samples> MeasureSerial(const std::map<std::string, Chain>& networks, size_t rounds,
                                      PodMaker& pods) {
  Samples samples;
  size_t made = 0;
  for (size_t round = 0; round < rounds; ++round) {
    // The order goes forth and back, so that each comes after the others equally often: a chain of
    // iptables leaves the machine's caches cold for whatever follows.
    std::vector<std::string> order;
    for (const auto& [name, chain] : networks) order.push_back(name);
    if (round % 2 != 0) std::reverse(order.begin(), order.end());
    for (const std::string& name : order) {
      const Chain& chain = networks.at(name);
      ASSIGN_OR_RETURN(const Pod pod, pods.Make());
      ASSIGN_OR_RETURN(const Chain::Added added, chain.Add(pod));
      ASSIGN_OR_RETURN(const absl::Duration deleted, chain.Del(pod, added.result));
      samples[name + "_add"].push_back(Microseconds(added.took));
      samples[name + "_del"].push_back(Microseconds(deleted));
      if (++made % kPodsBetweenRemovals == 0) pods.Remove();
    }
  }
  pods.Remove();
  return samples;
}

absl::StatusOr<Samples> MeasurePresent(const Chain& network, const std::vector<size_t>& present,
                                       size_t rounds, PodMaker& pods) {
  Samples samples;
  std::vector<std::pair<Pod, std::string>> there;
  for (const size_t count : present) {
    while (there.size() < count) {
      ASSIGN_OR_RETURN(Pod pod, pods.Make());
      ASSIGN_OR_RETURN(Chain::Added added, network.Add(pod));
      there.emplace_back(std::move(pod), std::move(added.result));
    }
    for (size_t round = 0; round < rounds; ++round) {
      ASSIGN_OR_RETURN(const Pod pod, pods.Make());
      ASSIGN_OR_RETURN(const Chain::Added added, network.Add(pod));
      ASSIGN_OR_RETURN(const absl::Duration deleted, network.Del(pod, added.result));
      samples[fmt::format("add_{}", count)].push_back(Microseconds(added.took));
      samples[fmt::format("del_{}", count)].push_back(Microseconds(deleted));
    }
  }
  for (const auto& [pod, result] : there) RETURN_IF_ERROR(network.Del(pod, result).status());
  pods.Remove();
  return samples;
}

absl::StatusOr<Samples> MeasureWaves(const std::map<std::string, Chain>& networks, size_t size,
                                     size_t rounds, PodMaker& pods) {
  Samples samples;
  for (size_t round = 0; round < rounds; ++round) {
    for (const auto& [name, chain] : networks) {
      ASSIGN_OR_RETURN(const std::vector<Pod> all, pods.Make(size));
      const Wave wave = RunWave(chain, all);
      RETURN_IF_ERROR(wave.status);
      samples[name + "_add"].push_back(Microseconds(wave.add));
      samples[name + "_del"].push_back(Microseconds(wave.del));
      pods.Remove();
    }
  }
  return samples;
}

absl::StatusOr<Samples> MeasureExec(const std::string& plugin, const std::string& empty,
                                    size_t rounds) {
  Samples samples;
  for (size_t round = 0; round < rounds; ++round) {
    for (const auto& [name, program] : {std::pair("plugin", plugin), std::pair("empty", empty)}) {
      ASSIGN_OR_RETURN(const PluginRun run,
                       RunPlugin({.program = program, .command = "VERSION"}, "{}"));
      if (run.code != 0) return absl::InternalError(program + " failed: " + run.output);
      samples[name].push_back(Microseconds(run.took));
    }
  }
  return samples;
}

absl::StatusOr<Churned> Churn(const Chain& network, size_t cycles, size_t parallel,
                              PodMaker& pods) {
  Churned churned;
  std::mutex mutex;
  const absl::Time began = absl::Now();
  // Pods go in waves, so that the namespaces of the last can go; each thread does several pods of a
  // wave.
  constexpr size_t kPodsAThread = 8;
  while (churned.cycles < cycles) {
    const size_t size = std::min(parallel * kPodsAThread, cycles - churned.cycles);
    ASSIGN_OR_RETURN(const std::vector<Pod> wave, pods.Make(size));
    std::atomic<size_t> next = 0;
    std::vector<std::thread> threads;
    for (size_t i = 0; i < parallel; ++i) {
      threads.emplace_back([&] {
        for (size_t mine = next++; mine < wave.size(); mine = next++) {
          const auto added = network.Add(wave[mine]);
          absl::Status status = added.status();
          // This is as a runtime does it: a failed ADD is followed by a DEL.
          status.Update(network.Del(wave[mine], added.ok() ? added->result : "").status());
          const std::lock_guard lock(mutex);
          ++churned.cycles;
          if (status.ok()) continue;
          if (churned.errors++ == 0) churned.first_error = std::string(status.message());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    pods.Remove();
  }
  churned.seconds = absl::ToDoubleSeconds(absl::Now() - began);
  return churned;
}

}  // namespace spoke::cni_bench
