// The measurements, each as lists of samples in microseconds: whoever judges them sees their
// spread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/cni/chain.h"
#include "tests/bench/cni/pods.h"

namespace spoke::cni_bench {

using Samples = std::map<std::string, std::vector<double>>;

// Measures one pod after the other, the networks in turn: "<network>_add" and "<network>_del".
// Errors: what a plugin said; nothing is left out of the samples.
absl::StatusOr<Samples> MeasureSerial(const std::map<std::string, Chain>& networks, size_t rounds,
                                      PodMaker& pods);

// Measures the same for one network while `present` pods of it are there: "add_<present>",
// "del_<present>".
absl::StatusOr<Samples> MeasurePresent(const Chain& network, const std::vector<size_t>& present,
                                       size_t rounds, PodMaker& pods);

// Measures `size` pods at once, until the last is attached, and again for their removal, the
// networks in turn: "<network>_add" and "<network>_del", a sample a wave.
absl::StatusOr<Samples> MeasureWaves(const std::map<std::string, Chain>& networks, size_t size,
                                     size_t rounds, PodMaker& pods);

// Measures the plugin asked for its version, and a program that does nothing: "plugin" and "empty".
absl::StatusOr<Samples> MeasureExec(const std::string& plugin, const std::string& empty,
                                    size_t rounds);

struct Churned {
  size_t cycles = 0;
  size_t errors = 0;
  std::string first_error;
  double seconds = 0;
};

// Does ADD and DEL of new pods by `parallel` threads until `cycles` are through.
absl::StatusOr<Churned> Churn(const Chain& network, size_t cycles, size_t parallel, PodMaker& pods);

}  // namespace spoke::cni_bench
