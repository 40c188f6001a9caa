// The laws of the simulated world, each checked at the step that could break it.
//
//   1. A pod's address is on its machine's NIC, and no other pod in the cluster has it.
//   2. An address is on one NIC at most.
//   3. An address leaves a NIC only when no pod there has it and the agent there would not assign
//      it, or when the machine is gone.
//   4. A pod meets no connection of the one before: between two pods an address rests for the
//      agent's cooldown, and between two NICs for the server's.
//   5. The store gives an address to one node at most, after each single transaction.
//   6. What was acknowledged is in the store, and stays: a report, an operator's change.
//   7. Not more is taken from nodes in a window than the breaker allows.
//   8. Once faults end and time has passed, all pods run, an audit of the store, the cloud and the
//      agents finds nothing, and no address is lost (Settled() in simulation.cc says so).
//
// Nobody tells the judge what the programs think: it hears what the fabric, the kernels, the store
// and the runtimes have done.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "fmt/core.h"
#include "ipam-server/ledger/node_record.h"
#include "lib/ip/address.h"
#include "lib/node_api/assignments.h"
#include "tests/sim/schedule.h"
#include "tests/sim/trace.h"

namespace spoke::sim {

using ipam::NodeKey;

// What the product promises with the settings of this run.
struct Promises {
  absl::Duration agent_cooldown;
  absl::Duration server_cooldown;
  absl::Duration breaker_window;
  uint64_t breaker_floor = 0;
  double breaker_share = 1;
};

class Invariants {
 public:
  Invariants(const Schedule& schedule, Trace& trace) : schedule_(schedule), trace_(trace) {}

  void SetPromises(const Promises& promises) { promises_ = promises; }
  // Says whether the agent on a machine, if it runs, would assign the address.
  void SetMayAssign(std::function<bool(const NodeKey&, const ip::Address&)> may_assign) {
    may_assign_ = std::move(may_assign);
  }

  // The first law that was broken, and how; nullopt: none was.
  const std::optional<std::string>& violation() const { return violation_; }
  void Broken(int law, const std::string& how);

  // --- What the kernels and the runtimes have done. ---

  void PodGets(const NodeKey& machine, const std::string& container, const ip::Address& address);
  // The runtime has heard that the pod has it: from now on it may have connections.
  void PodUses(const ip::Address& address);
  void PodLoses(const NodeKey& machine, const std::string& container, const ip::Address& address);

  // --- What the fabric has done. ---

  void NicGets(const NodeKey& machine, const ip::Address& address);
  void NicLoses(const NodeKey& machine, const ip::Address& address);
  void MachineGone(const NodeKey& machine);

  // --- What the store has done, in one transaction; no record: it was removed. ---

  void StoreBegins() { transaction_.clear(); }
  void Stored(const NodeKey& node, std::optional<ipam::NodeRecord> record);
  void StoreEnds();
  // An operator lets pass what the breaker has stopped.
  void FreezeLifted() { pardoned_until_ = schedule_.now() + promises_.breaker_window; }
  // An older store was put in its place, or a part of it was lost as was to be expected.
  void StoreReplaced();

  // --- What was acknowledged. ---

  void Acknowledged(const NodeKey& node, const node_api::AssignmentReport& report);
  void OperatorToldOk(const std::string& key, bool is_stored);

  const std::map<ip::Address, NodeKey>& on_nics() const { return on_nics_; }
  const std::map<NodeKey, ipam::NodeRecord>& stored() const { return stored_; }

 private:
  struct PodOf {
    NodeKey machine;
    std::string container;
    bool uses = false;
  };
  struct Left {
    NodeKey machine;
    absl::Time at;
  };

  void CheckBreaker(const ipam::NodeRecord* before, const ipam::NodeRecord& after);
  bool Rested(const Left& left, absl::Duration cooldown) const;

  const Schedule& schedule_;
  Trace& trace_;
  Promises promises_;
  std::function<bool(const NodeKey&, const ip::Address&)> may_assign_;
  std::optional<std::string> violation_;

  std::map<ip::Address, PodOf> pods_;
  std::map<ip::Address, Left> last_pods_;
  std::map<ip::Address, NodeKey> on_nics_;
  std::map<ip::Address, Left> last_nics_;
  std::map<NodeKey, ipam::NodeRecord> stored_;
  std::map<ip::Address, NodeKey> holders_;
  std::map<NodeKey, std::optional<ipam::NodeRecord>> transaction_;
  std::map<NodeKey, std::map<ip::Address, uint64_t>> acknowledged_;  // Generations.
  std::deque<std::pair<absl::Time, uint64_t>> taken_;
  absl::Time pardoned_until_ = absl::InfinitePast();
};

}  // namespace spoke::sim
