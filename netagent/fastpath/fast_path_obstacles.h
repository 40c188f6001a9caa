// Tells what on a node forbids that packets between pods pass by its rules. Pure.
#pragma once

#include <string>
#include <vector>

#include "lib/nft/firewall.h"

namespace spoke::netagent {

// The obstacles, in words; empty: nothing forbids it.
struct FastPathObstacles {
  // The reason why no packet may pass by the rules: another program filters between pods, or
  // translates where the agent does not see it.
  std::string all;
  // The reason why no pod becomes fast any more; those that are stay so, since connections that
  // began on the fast path would not be taken for connections on the ordinary way.
  std::string new_pods;

  bool operator==(const FastPathObstacles&) const = default;
};

struct ObstacleFacts {
  std::vector<nft::ChainGist> chains;  // The chains at the hook forward, and those they lead to.
  bool virtual_services = false;       // Whether IPVS has some services (kube-proxy's mode ipvs).
  // The text of /proc/sys/net/netfilter/nf_conntrack_tcp_loose; empty: it is not there.
  std::string tcp_loose;
};

FastPathObstacles ObstaclesIn(const ObstacleFacts& facts);

}  // namespace spoke::netagent
