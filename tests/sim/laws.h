// What must hold in a fleet at every moment, whatever fails: the laws that each step of the
// simulation is held against. They look at what is so on machines, on NICs and on the store's
// disks, never at what a program believes.
//
//  1. One holder: no two pods in the fleet use one address.
//  2. On the wire: an address that a pod gets is on the NIC of its machine, unless others have
//     taken it off.
//  3. Not from under a pod: nothing is taken off a NIC while a pod there uses it, and no link is
//     taken down that the runtime has not asked for.
//  4. Given up first: the store takes an address from a node that exists only when the journal of
//     the node's agent would not assign it any more; and no agent gives up what a pod uses.
//  5. Acknowledged means kept: what an agent is told, and a report that is acknowledged, is on the
//     disks by then; a policy that an operator was told is in force stays so, whole, until there is
//     a later one.
//  6. Nothing is forgotten: the epoch of the store on the disks is never below one that a node was
//     told, unless an operator has restored an older copy.
//  7. Cooldown: an address that a pod has used goes to no other pod before its cooldown is over.
//  8. One owner: no two records on the disks have one address.
//  9. Bounded: what the server asks nodes to give back within a minute, but for those that are
//     drained, is within the breaker's share or floor, and what an operator has let pass. What it
//     asks for again, since an agent has died before it answered, counts once.
// 10. In the end: when nothing fails any more, all pods have addresses, store, cloud, agents and
//     pods agree, no node keeps what its agent has given up, and all agents have the policy of the
//     store, whole (settled.cc).
// 11. A DEL is the last word: once a runtime hears that it is done, no link is made for its pod.
// 12. Mended: ten minutes after somebody else has changed a NIC it has what the store says, and
//     nothing else. Where the cloud chooses addresses it gives nobody one back that it took: what a
//     pod uses is missing until that ends, and the rest is given up as fast as the breaker permits.
//     And what others have written of a machine no server overwrites unread.
// 13. Shared: what the kernels of all machines let pods have of a budget is never more than its
//     capacity.
// 14. Its own: a pod has one address of each family of which there are pools for its namespace, and
//     each is of one of these.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ipam-server/pools/address_pool.h"
#include "tests/sim/cloud/fabric.h"
#include "tests/sim/machine.h"
#include "tests/sim/schedule.h"
#include "tests/sim/server.h"
#include "tests/sim/sim_store.h"

namespace spoke::sim {

struct LawSettings {
  absl::Duration cooldown = absl::Seconds(30);
  double breaker_share = 0.05;
  uint64_t breaker_floor = 8;
  std::vector<ipam::PoolSpec> pools;
};

struct Violation {
  int law = 0;
  absl::Time at;
  std::string what;
};

// Each change is compared when it happens, with what it concerns and nothing else. Not thread-safe.
class Laws final : public MachineWatcher, public ServerWatcher {
 public:
  // Borrows `schedule` and `fabric`, and watches both `fabric` and `disks` from now on.
  Laws(const LawSettings& settings, const Schedule& schedule, Fabric& fabric, StoreDisks& disks);

  // The first violation; nullopt: there was none.
  const std::optional<Violation>& broken() const { return broken_; }
  void Break(int law, std::string what);

  // --- Machines. ---
  void OnMachine(const Machine& machine);  // It is there, or has booted.
  void OnMachineDown(const Machine& machine);
  // Somebody has taken over its agent. What becomes of it and its pods is nobody's fault from now
  // on, as long as the VM is the same.
  void OnLiar(const Machine& machine) { liars_.insert(machine.vm_id); }
  void OnLink(const Machine& machine, const std::string& host_link,
              const std::vector<ip::Address>& addresses) override;
  void OnUnlink(const Machine& machine, const std::string& host_link) override;
  void OnJournal(const Machine& machine, const netagent::Event& event) override;
  void OnJournalBegun(const Machine& machine) override;
  void OnRate(const Machine& machine, units::BitRate rate) override;
  // The runtime has heard that the pod of the namespace with this link has its addresses: it runs
  // from now on.
  void OnServed(const Machine& machine, const std::string& host_link,
                std::string_view pod_namespace);
  // It is to go: its link may be taken down from now on.
  void OnEnding(const Machine& machine, const std::string& host_link);
  // It has heard that the DEL of the pod with this link is done, while the ADD may still wait.
  void OnDeleted(const Machine& machine, const std::string& host_link);
  // Somebody else than the servers has changed the NIC of the VM, and has taken these off it.
  // CheckMended() is to be called kMending later, with what UnmendedOn() had said kUnderWay before.
  void OnChangedByOthers(const std::string& vm, const std::vector<ip::Prefix>& taken);
  static constexpr absl::Duration kMending = absl::Minutes(10);
  static constexpr absl::Duration kUnderWay = absl::Minutes(3);
  // Returns what differs between the NIC and the store, with how.
  std::map<ip::Prefix, std::string> UnmendedOn(const std::string& vm) const;
  // Breaks law 12 for what differs now as it did `before`: what differs for a moment is being
  // written.
  void CheckMended(const std::string& vm, const std::map<ip::Prefix, std::string>& before);
  // Whether a pod uses the address of the VM that others have taken off its NIC.
  bool IsCutOff(const std::string& vm, const ip::Address& address) const;

  // --- Servers. ---
  void OnTold(const ipam::NodeKey& node, const ipam::ToAgent& message) override;
  void OnHeard(const ipam::NodeKey& node, const node_api::AgentMessage& message) override;
  // An operator puts an older copy in place of the store, or lets what was refused pass.
  void OnRestore(bool begins);
  void OnPardon(uint64_t addresses) { pardoned_ += addresses; }
  // An operator has asked for the objects of this version, and was told, later, that it is in
  // force.
  void OnPolicyAsked(uint64_t version, std::string objects);
  void OnPolicyInForce(uint64_t version);
  // What operators see at a leader's.
  void CheckPolicy(uint64_t version, const std::string& objects);

 private:
  struct Link {
    std::vector<ip::Address> addresses;
    bool served = false;
    bool ending = false;
  };
  using LinkKey = std::pair<size_t, std::string>;  // Machine and host link.
  // What the agent of a machine would assign, by its journal.
  struct Assignable {
    size_t machine = 0;
    std::set<ip::Address> listed;
    std::set<ip::Address> withdrawn;
  };

  void CheckOnNic(const Machine& machine, const std::string& host_link, const ip::Address& address);
  void CheckOwn(const std::string& host_link, std::string_view pod_namespace,
                const std::vector<ip::Address>& addresses);
  void CheckUnused(const Machine& machine, const ip::Address& address);
  void OnDetached(const std::string& vm, const ip::Prefix& range);
  bool WasUsedOfLate(const ip::Address& address) const;
  void OnDurable(const StoreDisks::Changes& changes);
  void OnDurableStore(const std::optional<std::string_view>& value);
  void OnDurableBreaker(const std::optional<std::string_view>& value);
  void Forget(const std::string& key, const ipam::NodeRecord* next);
  void Learn(const std::string& key, ipam::NodeRecord record);
  void CheckTaken(const ipam::NodeRecord& before, const ipam::NodeRecord* after);
  void CheckReport(const ipam::NodeKey& node, const node_api::AssignmentReport& report);
  void CheckDesired(const ipam::NodeKey& node, const node_api::DesiredState& desired);
  void CheckBound(const ipam::NodeKey& node, const std::vector<ip::Prefix>& ranges);
  const ipam::NodeRecord* Durable(const ipam::NodeKey& node) const;

  bool Lies(size_t machine) const;

  const LawSettings settings_;
  const Schedule& schedule_;
  const Fabric& fabric_;
  std::optional<Violation> broken_;

  template <typename Value>
  using ByAddress = absl::flat_hash_map<ip::Address, Value, ip::AddressHash>;

  std::set<std::string> liars_;        // By VM id.
  std::map<size_t, std::string> vms_;  // Keyed by machine.
  std::map<LinkKey, Link> links_;
  ByAddress<LinkKey> users_;
  ByAddress<absl::Time> last_used_;
  std::set<LinkKey> deleted_;
  std::set<std::pair<std::string, ip::Address>> taken_by_others_;  // By VM id.
  std::map<std::string, absl::Time> changed_by_others_;            // When it last was, by VM id.
  std::map<std::string, Assignable> assignable_;                   // Keyed by VM id.
  absl::flat_hash_map<std::string, ipam::NodeRecord> durable_;
  ByAddress<std::string> owners_;  // The key of the record, by first address.
  uint64_t attached_ = 0;          // The addresses of all records.
  std::map<ipam::NodeKey, node_api::AssignmentReport> reports_;  // The last one heard.
  std::string store_id_;
  bool frozen_ = false;  // Releases wait for an operator.
  absl::Time thawed_ = absl::InfinitePast();
  uint64_t epoch_ = 0;
  std::map<std::string, uint64_t> told_;  // The highest epoch that a node was told, by store.
  bool restoring_ = false;
  bool restored_ = false;  // Some time before: a recovery may wait for an operator.
  using AskedRange = std::pair<ipam::NodeKey, ip::Prefix>;
  struct Asked {
    absl::Time at;
    AskedRange range;
    uint64_t share = 0;  // What one window allowed then.
  };
  std::deque<Asked> asked_;
  std::map<AskedRange, absl::Time> last_asked_;  // What counts, and since when.
  uint64_t asked_sum_ = 0;
  uint64_t pardoned_ = 0;
  std::map<size_t, units::BitRate> rates_;  // By machine.
  units::BitRate rate_sum_;
  std::map<uint64_t, std::string> policies_;  // The objects of each version that was asked for.
  uint64_t policy_in_force_ = 0;              // The latest of which an operator knows that it is.
};

}  // namespace spoke::sim
