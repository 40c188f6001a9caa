// What on a node forbids that packets between pods pass by its rules. Pure.
#pragma once

#include <string>
#include <vector>

#include "lib/nft/firewall.h"

namespace spoke::netagent {

// In words; empty: nothing.
struct FastPathObstacles {
  // No packet may pass by the rules: another program filters between pods, or translates where the
  // agent does not see it.
  std::string all;
  // No pod becomes fast any more; those that are stay so, since connections that began on the fast
  // path would not be taken for connections on the ordinary way.
  std::string new_pods;

  bool operator==(const FastPathObstacles&) const = default;
};

struct ObstacleFacts {
  std::vector<nft::ChainGist> chains;  // At the hook forward, and those they lead to.
  bool virtual_services = false;       // IPVS has some (kube-proxy's mode ipvs).
  std::string tcp_loose;  // /proc/sys/net/netfilter/nf_conntrack_tcp_loose; empty: it is not there.
};

FastPathObstacles ObstaclesIn(const ObstacleFacts& facts);

}  // namespace spoke::netagent
