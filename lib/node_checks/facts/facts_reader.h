// Reads what a node is like (facts.h): files, sysctls, devices, rules. The edge of this folder;
// decides nothing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "lib/node_checks/facts/facts.h"

namespace spoke::node_checks {

// The place of the node, as seen from this process.
struct NodeView {
  // The node's root directory: "/", or where a container has it mounted ("/host").
  std::string root = "/";
  // The node's /proc. Empty: `root`/proc if the whole of it is mounted there, else /proc. What is
  // below /proc/sys/net, and all that netlink says, is of the calling thread's network namespace.
  std::string proc;
  // Tries the kernel's features. This is ProbeKernel() except in tests.
  std::function<std::map<KernelFeature, FeatureState>()> probe_kernel;
};

// Returns "/" or, in a container that has the node's root there, "/host".
std::string DefaultRoot();

// The reader. Not thread-safe; blocks for some milliseconds.
class FactsReader {
 public:
  FactsReader(NodeView view, NodeSettings settings);

  // Says in the facts what cannot be read. Never fails, and never changes the node. The kernel's
  // features are tried at the first call, and again only as long as one is missing. What is counted
  // is that since the call before.
  NodeFacts Read();

 private:
  std::string Rooted(const std::string& path) const;
  void ReadSysctls(NodeFacts& facts) const;
  void ReadCounters(NodeFacts& facts);
  void ReadPodLinks(NodeFacts& facts) const;
  void ReadNetworkConfigs(NodeFacts& facts) const;
  void ReadPrograms(NodeFacts& facts) const;
  void ReadCni(NodeFacts& facts) const;
  void ReadSystemd(NodeFacts& facts) const;
  PlaceFacts ReadPlace(const std::string& path) const;

  const NodeView view_;
  const std::string proc_;
  const NodeSettings settings_;
  std::optional<NetworkCounters> counters_;  // Those of the look before.
  std::optional<uint32_t> best_speed_mbit_;  // The highest seen.
  // The features, once all of them are there.
  std::optional<std::map<KernelFeature, FeatureState>> kernel_;
};

}  // namespace spoke::node_checks
