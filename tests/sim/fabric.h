// The cloud: machines, their NICs, and which addresses the fabric delivers to each. It outlives the
// servers, each of which has a client of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/cloud.h"
#include "tests/sim/basis.h"
#include "tests/sim/process.h"

namespace spoke::sim {

// What a machine is to the cloud, and to itself.
struct CloudMachine {
  NodeKey key;
  ip::MacAddress mac;
  std::string instance = {};  // The cloud's own name; empty: it has none.
  std::vector<ip::Prefix> subnets = {};
};

struct CloudClientEdges {
  Process& process;                        // Whose client it is.
  std::function<absl::Duration()> margin;  // How long nobody else leads.
  std::function<absl::Time()> clock;       // That process's.
  // Whether the machine has a session, for one of the mutants.
  std::function<bool(const NodeKey&)> has_session;
  ipam::CloudAnswer answer;
};

class Fabric {
 public:
  virtual ~Fabric() = default;

  // Makes the `number`th machine, for a node of that name; nullopt: there is no room.
  virtual std::optional<CloudMachine> AddMachine(const std::string& node, uint64_t number) = 0;
  // It is no more, and its NIC with it.
  virtual void RemoveMachine(const NodeKey& machine) = 0;
  virtual std::unique_ptr<ipam::Cloud> NewClient(CloudClientEdges edges) = 0;
  // From now on all goes well.
  virtual void EndFaults() {}
};

}  // namespace spoke::sim
