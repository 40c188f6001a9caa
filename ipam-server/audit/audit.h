// The store against the cloud against the agents: each difference with its cause and the repair
// that is safe. Pure.
//
// Needs no lock: the three were looked at one after the other, so what changed a short while ago is
// no difference. A repair moves towards the truth of each question: the agent knows who uses an
// address, the store what was meant, the cloud what is on a NIC. Nothing is taken off a NIC unless
// the store says it is free and the agent has said that it does not assign it; where that is not
// certain, the repair is none and the cause says what a person should look at.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::ipam {

enum class AuditKind : uint8_t {
  kNotOnNic,            // The store says attached, and the NIC has it not.
  kOnNicUnknown,        // The NIC has it, and the store says free.
  kWrongNic,            // The store says one node, and the NIC of another has it.
  kWrongConfiguration,  // The right NIC has it under another name than the store's.
  kOnTwoNics,
  kNicNotListed,    // The node's NIC is missing from the cloud's list.
  kNicReplaced,     // The cloud knows the node's NIC under another MAC address.
  kStuckAttaching,  // It attaches for longer than any cloud call takes.
  kStuckDetaching,
  kHeldTwice,            // The store says that two nodes hold it.
  kGoneHolds,            // The VM is no more, and the store still has addresses on it.
  kPoolForeign,          // The pool of the record is unknown, or does not contain the address.
  kInUseUnknown,         // An agent assigns it, and the store says free.
  kInUseForeign,         // An agent assigns it, and it is in none of the pools.
  kInUseElsewhere,       // An agent assigns it, and another node holds it.
  kInUseTwice,           // Two agents assign it.
  kInUseNotRecorded,     // Its agent assigns it, and the store does not say so, or to another pod.
  kInUseOlder,           // Its agent assigns it under a generation that the store saw end.
  kInUseWhileDetaching,  // Its agent gave it up, and assigns it.
  kRecordedNotInUse,     // The store says assigned, and its agent does not assign it.
  kAgentMisses,          // The agent does not know that it is attached.
  kAgentExtra,           // The agent takes it for attached, and it is not.
  kAgentUnknown,         // An agent of a node that the store does not know.
};

inline constexpr AuditKind kLastAuditKind = AuditKind::kAgentUnknown;

// Returns "not_on_nic": stable words, for scripts and for metrics.
std::string_view NameOf(AuditKind kind);

enum class AuditRepair : uint8_t {
  kNone,            // Nothing is safe to do by itself.
  kReattach,        // Ask the cloud again for the NIC as the store has it.
  kDetach,          // Ask the cloud for the NIC without the address.
  kResendDesired,   // Send the agent what its node has.
  kTakeAssignment,  // Record what the agent assigns.
  kEndAssignment,   // Record that the assignment is over; the address cools down.
};

// Returns "take_assignment"; empty for kNone.
std::string_view NameOf(AuditRepair repair);

// A node is its name and its VM.
struct AuditNode {
  std::string name;
  std::string vm_id;

  auto operator<=>(const AuditNode&) const = default;
};

enum class AuditState : uint8_t { kAttaching, kAttached, kDetaching };
enum class AuditUse : uint8_t { kAvailable, kInUse, kCooldown };

struct AuditAssignment {
  ip::Address address;
  uint64_t generation = 0;
  std::string container_id;
  std::string ifname;
  absl::Time since;
};

struct StoredAddress {
  ip::Address address;
  AuditState state = AuditState::kAttached;
  AuditUse use = AuditUse::kAvailable;
  std::string configuration;
  std::string pool;
  absl::Time since;
  uint64_t generation = 0;   // The last assignment's.
  std::string container_id;  // Set while assigned.
  std::string ifname;
  // The cloud has chosen it of itself, and nobody may have it (yet). It is kAttaching.
  bool chosen = false;
  // An operator keeps it from pods, so that its agent is not told of it.
  bool withheld = false;

  bool operator==(const StoredAddress&) const = default;
};

struct StoredNode {
  AuditNode node;
  ip::MacAddress nic_mac;
  bool retired = false;  // Another VM of the same name has replaced it.
  bool gone = false;     // The cloud has said that the VM is no more.
  std::vector<StoredAddress> addresses;
};

struct CloudNic {
  AuditNode node;
  ip::MacAddress nic_mac;
  std::map<ip::Address, std::string> configurations;  // Address to name; without the NIC's primary.
};

struct AgentInventory {
  AuditNode node;
  // What it takes for attached; nullopt when it did not say.
  std::optional<std::vector<ip::Address>> held;
  std::vector<AuditAssignment> in_use;
};

struct AuditInput {
  std::vector<StoredNode> store;
  std::optional<std::vector<CloudNic>> cloud;  // nullopt: it could not be listed.
  std::vector<AgentInventory> agents;          // The agents that answered.
  std::map<std::string, std::vector<ip::Prefix>> pools;
  // Addresses that left their node a short while ago, and when: reports and lists of before may
  // still have them.
  std::map<ip::Address, absl::Time> freed;
  // How the names of the IP configurations begin that are ours to remove.
  std::string own_prefix = "spoke-";
};

struct AuditPolicy {
  // What changed within this is on its way, not a difference.
  absl::Duration grace = absl::Minutes(2);
};

struct AuditDifference {
  AuditKind kind = AuditKind::kNotOnNic;
  AuditNode node;
  std::optional<ip::Address> address;  // nullopt: about the node as a whole.
  AuditRepair repair = AuditRepair::kNone;
  std::string cause;      // A sentence: who says what, and for kNone what to do.
  absl::Time first_seen;  // Set by AuditMemory.

  bool operator==(const AuditDifference&) const = default;
};

// Returns all differences, by node, address and kind. Empty for a consistent world. When each
// repair is carried out, another audit finds only those whose repair is none.
std::vector<AuditDifference> Audit(const AuditInput& input, const AuditPolicy& policy,
                                   absl::Time now);

// Remembers since when each difference is there, from one audit to the next. Not thread-safe.
class AuditMemory {
 public:
  // Fills in `first_seen`, and forgets the differences that are no longer there; `whole`: all was
  // compared that could be.
  void Remember(std::vector<AuditDifference>& differences, absl::Time now, bool whole);

 private:
  struct Identity {
    AuditKind kind;
    AuditNode node;
    std::optional<ip::Address> address;

    auto operator<=>(const Identity&) const = default;
  };
  std::map<Identity, absl::Time> first_seen_;
};

}  // namespace spoke::ipam
