// The checks behind Examine(), by what they look at. Each appends what it finds. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/node_checks/examine.h"
#include "lib/node_checks/facts/facts.h"

namespace spoke::node_checks {

// The place where a check puts what it finds, under its own id.
class Findings {
 public:
  Findings(std::string id, std::vector<Finding>& into) : id_(std::move(id)), into_(into) {}

  // Adds `finding`, which has no id.
  void Add(Finding finding) {
    finding.id = id_;
    into_.push_back(std::move(finding));
  }
  // Says what could not be looked at as well: silence would pass for health.
  void AddUnknown(std::string object, const absl::Status& status);

 private:
  const std::string id_;
  std::vector<Finding>& into_;
};

// These are in kernel_checks.cc.
void CheckFeature(const NodeFacts& facts, KernelFeature feature, Findings& findings);
void CheckForwarding(const NodeFacts& facts, Findings& findings);
void CheckForwardingV6(const NodeFacts& facts, Findings& findings);
void CheckReversePath(const NodeFacts& facts, Findings& findings);
void CheckNeighbourTable(const NodeFacts& facts, Findings& findings);
void CheckConnectionTable(const NodeFacts& facts, Findings& findings);
void CheckStrictTracking(const NodeFacts& facts, Findings& findings);
void CheckVirtualServices(const NodeFacts& facts, Findings& findings);
void CheckNic(const NodeFacts& facts, Findings& findings);
void CheckMtu(const NodeFacts& facts, Findings& findings);

// These are in network_checks.cc.
void CheckNicErrors(const NodeFacts& facts, Findings& findings);
void CheckCarrier(const NodeFacts& facts, Findings& findings);
void CheckGateways(const NodeFacts& facts, Findings& findings);
void CheckSpeed(const NodeFacts& facts, Findings& findings);
void CheckRetransmissions(const NodeFacts& facts, Findings& findings);
void CheckPorts(const NodeFacts& facts, Findings& findings);
void CheckCounters(const NodeFacts& facts, Findings& findings);

// These are in service_checks.cc. Each is made only where its service has been asked.
void CheckNodeResolvers(const NodeFacts& facts, Findings& findings);
void CheckClusterResolvers(const NodeFacts& facts, Findings& findings);
void CheckMetadata(const NodeFacts& facts, Findings& findings);
void CheckKeptClock(const NodeFacts& facts, Findings& findings);
void CheckServerClock(const NodeFacts& facts, Findings& findings);

// These are in reach_checks.cc. Each is made only where a target of its kind has been tried.
void CheckHub(const NodeFacts& facts, Findings& findings);
void CheckPeerSpokes(const NodeFacts& facts, Findings& findings);

// These are in firewall_checks.cc.
void CheckForwardRules(const NodeFacts& facts, Findings& findings);

// These are in cni_checks.cc.
void CheckConfiguration(const NodeFacts& facts, Findings& findings);
void CheckNetworkConfigs(const NodeFacts& facts, Findings& findings);
void CheckBinDirectory(const NodeFacts& facts, Findings& findings);
void CheckChain(const NodeFacts& facts, Findings& findings);
void CheckPlugin(const NodeFacts& facts, Findings& findings);
void CheckAgent(const NodeFacts& facts, Findings& findings);
void CheckStateDirectory(const NodeFacts& facts, Findings& findings);
void CheckServer(const NodeFacts& facts, Findings& findings);

// These are in host_checks.cc.
void CheckOtherNetworks(const NodeFacts& facts, Findings& findings);
void CheckCloudInit(const NodeFacts& facts, Findings& findings);
void CheckLinkFiles(const NodeFacts& facts, Findings& findings);
void CheckNetworkFiles(const NodeFacts& facts, Findings& findings);
void CheckNetworkd(const NodeFacts& facts, Findings& findings);

}  // namespace spoke::node_checks
