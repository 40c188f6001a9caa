// Which container uses which attached address: the truth about it for this node. Pure: no I/O, no
// clock, no locks.
//
// Every change is an Event that is journalled before it is applied, so that replaying the journal
// gives the same state. Plan*() decide, Apply() changes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "netagent/core/attach_plan.h"

namespace spoke::netagent {

// For people and policy; never a key.
struct PodReference {
  std::string pod_namespace;
  std::string name;
  std::string uid;

  bool operator==(const PodReference&) const = default;
};

struct Lending {
  AttachmentKey key;
  PodReference pod;
  std::vector<ip::Address> addresses;
  uint64_t generation = 0;  // Rises with each lending of this node.
  absl::Time since;

  bool operator==(const Lending&) const = default;
};

// An attached address that the server has given this node.
struct Holding {
  ip::Address address;
  std::string pool;

  bool operator==(const Holding&) const = default;
};

// The server's list replaces the one before. What is lent stays until its pod is gone, listed or
// not.
struct HoldingsReplaced {
  std::vector<Holding> holdings;
};
// The kernel work for it begins.
struct LendingBegun {
  Lending lending;
};
// The kernel work is done: the pod has it.
struct LendingBuilt {
  AttachmentKey key;
};
// `unused`: no pod ever had it, so its addresses need no cooldown.
struct LendingReleased {
  AttachmentKey key;
  absl::Time at;
  bool unused = false;
};
// Not to be lent before `until`.
struct CoolingSet {
  ip::Address address;
  absl::Time until;
};
using Event =
    std::variant<HoldingsReplaced, LendingBegun, LendingBuilt, LendingReleased, CoolingSet>;

// How many addresses are in which use.
struct UseCounts {
  uint32_t idle = 0;
  uint32_t lent = 0;
  uint32_t cooling = 0;

  uint32_t attached() const { return idle + lent + cooling; }
  bool operator==(const UseCounts&) const = default;
};

// Not thread-safe; the agent's one loop owns it.
class Lendings {
 public:
  explicit Lendings(absl::Duration cooldown) : cooldown_(cooldown) {}

  // One address of each family this node holds, for `key`: those that have been idle the longest.
  // Errors: kAlreadyExists (`key` has a lending); kResourceExhausted (none idle; the message names
  // the pools and their counts).
  absl::StatusOr<Lending> PlanLend(const AttachmentKey& key, const PodReference& pod,
                                   absl::Time now) const;

  // An event that does not apply (a key that is not there) changes nothing.
  void Apply(const Event& event);

  // Ends the cooldown of addresses whose time has come, and returns them.
  std::vector<ip::Address> EndCooldowns(absl::Time now);
  // When EndCooldowns() has something to do next; nullopt: nothing is cooling.
  std::optional<absl::Time> NextCooldownEnd() const;

  const Lending* Find(const AttachmentKey& key) const;
  // By key. Begun but not built ones are in Unfinished() instead.
  std::vector<Lending> Built() const;
  std::vector<Lending> Unfinished() const;
  std::vector<ip::Address> Cooling() const;
  // Every address this node may see traffic for: what the server has listed, and what is lent.
  std::vector<ip::Address> Attached() const;
  std::map<std::string, UseCounts> CountByPool() const;

  // Events that lead from nothing to the present state: the compacted journal.
  std::vector<Event> Snapshot() const;

 private:
  enum class Use { kIdle, kLent, kCooling };
  struct Held {
    std::string pool;
    Use use = Use::kIdle;
    bool listed = true;       // False: the server has taken it back, and it goes when idle.
    absl::Time cool_until;    // While cooling.
    uint64_t idle_since = 0;  // Order of becoming idle.
  };
  struct Entry {
    Lending lending;
    bool built = false;
  };

  void ApplyOne(const HoldingsReplaced& event);
  void ApplyOne(const LendingBegun& event);
  void ApplyOne(const LendingBuilt& event);
  void ApplyOne(const LendingReleased& event);
  void ApplyOne(const CoolingSet& event);
  void MakeIdle(std::map<ip::Address, Held>::iterator it);

  absl::Duration cooldown_;
  std::map<ip::Address, Held> held_;
  std::map<AttachmentKey, Entry> entries_;
  uint64_t last_generation_ = 0;
  uint64_t idle_counter_ = 0;
};

}  // namespace spoke::netagent
