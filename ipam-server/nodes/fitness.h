// Whether a node's network is ready for pods, from what its agent and the records say. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ipam-server/nodes/maintenance_plan.h"
#include "ipam-server/nodes/node_remedy.h"

namespace spoke::ipam {

// What the server knows of a node under its present name.
struct FitnessFacts {
  bool connected = false;         // Its agent has a session.
  bool told = false;              // The agent has taken the addresses that it was told in it.
  bool leaving = false;           // It is to give back all that it has.
  uint64_t usable = 0;            // Addresses that are attached: available, in use or in cooldown.
  std::string exhausted = {};     // Why the next pod gets no address; empty: it gets one.
  std::string policy_error = {};  // Why the agent refused the policy in force; empty: it did not.
  // What the agent's checks find that keeps pods from working; empty: nothing.
  std::string blocked = {};
  // What the checks find that pods can live with; empty: nothing.
  std::string warned = {};
  // What is wrong with its network by the probes of nodes; empty: nothing that is known.
  std::string loses = {};
  // The server does not know (yet) whether it loses packets: what another has said of it stays.
  bool reach_unknown = false;
  // The fault domain, such as a zone or a rack; empty: nobody knows it.
  std::string domain = {};
  // The maintenance that its cloud has announced; nullopt: its agent has not said.
  std::optional<MaintenanceFacts> maintenance = {};

  bool operator==(const FitnessFacts&) const = default;
};

// What the server knows of all nodes.
struct FleetFacts {
  std::map<std::string, FitnessFacts> nodes;  // By name.
  std::string frozen;  // Why nothing may be decided from them; empty: it may.
  NodeRemedies remedies = {};
};

struct Fitness {
  bool ready = false;
  // A word of the condition SpokeNetworkReady, which users match on. Static.
  std::string_view reason;
  // No pod that starts here would get an address, and none will be there soon.
  bool no_addresses = false;
  // What is necessary is there, so that a node may join: what its checks find besides could be a
  // fault of the checks, which must not keep all nodes out.
  bool may_join = false;
  // Pods that run there are hurt: they are, when packets are lost or a check says so. They are not
  // when an agent is away, since pods' traffic does not pass it.
  bool hurts_pods = false;

  bool operator==(const Fitness&) const = default;
};

// `facts`: nullptr when no agent has ever spoken for the node. A policy that was refused is told
// and no reason to keep pods away, since the last one that was taken is in force. So is what checks
// warn of.
Fitness Judge(const FitnessFacts* facts);
// The reason of a node that loses packets.
inline constexpr std::string_view kPacketsLost = "PacketsLost";
// The reason of Judge() in a sentence.
std::string MessageOf(const FitnessFacts* facts);

}  // namespace spoke::ipam
