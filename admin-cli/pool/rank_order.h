// The order of the ranks of a parallel job among the pods that it runs as. Pure, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "lib/ip/address.h"

namespace spoke::ctl {

struct RankedPod {
  ip::Address address;
  std::string node;
  std::string pod_namespace;
  std::string pod_name;
};

// Sorts pods by their index where each has one of its own in its name, as those of a StatefulSet
// ("train-3") and of an indexed Job ("train-3-x7k2p") have (kubernetes.io, "Job", "Completion
// mode"); all others by node and address, so that neighbours have neighbouring ranks. Numbers in
// the names of nodes count as numbers.
void SortByRank(std::vector<RankedPod>& pods);

}  // namespace spoke::ctl
