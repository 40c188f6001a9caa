// What agent and server tell each other, as values. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/policy/values.h"
#include "netagent/attach/assignments.h"
#include "netagent/attach/attach_traces.h"
#include "netagent/connections/cut_count.h"
#include "netagent/shaping/budget_holder.h"
#include "netagent/traffic/traffic_totals.h"

namespace spoke::netagent {

// Who this node is.
struct NodeIdentity {
  std::string node_name;
  std::string vm_id;    // The cloud's: a new VM under an old name is a new node.
  std::string boot_id;  // Changes with each boot.
  std::string agent_version;
  std::map<std::string, std::string> labels;  // What pools and policy choose nodes by.
  std::string vnet;                           // Empty: unknown.
  // What the cloud's own API calls the VM, in lower case, and the subnets of its NIC; empty: not
  // asked.
  std::string instance = {};
  std::vector<ip::Prefix> subnets = {};
};

struct DesiredAddress {
  ip::Address address;
  std::string pool;
  absl::Duration cooldown;                           // Not to be assigned for this long.
  std::optional<ip::MacAddress> nic = std::nullopt;  // Which NIC it is on; nullopt: not said.

  bool operator==(const DesiredAddress&) const = default;
};

// A pool as the server sees it, to explain an empty node with.
struct PoolState {
  std::string name;
  std::string cidr;
  uint64_t usable = 0;
  uint64_t attached = 0;
  uint64_t free = 0;
  std::vector<std::string> namespaces = {};  // Empty: for every pod no other pool is meant for.
  std::optional<ip::Address> unused = {};    // Given to no node, ever; nullopt: none is known.

  bool operator==(const PoolState&) const = default;
};

struct DesiredState {
  uint64_t version = 0;
  bool full = false;
  std::vector<DesiredAddress> added;
  std::vector<ip::Address> removed;
  std::vector<PoolState> pools;
  std::string store_token = {};  // To be kept for the next hello; empty: nothing to keep.

  bool operator==(const DesiredState&) const = default;
};

// The server would like these back.
struct ReclaimRequest {
  uint64_t id = 0;
  std::vector<ip::Prefix> blocks;

  bool operator==(const ReclaimRequest&) const = default;
};

// An operator has decided that this assignment is over.
struct EndAssignment {
  ip::Address address;
  uint64_t generation = 0;
  std::string reason;

  bool operator==(const EndAssignment&) const = default;
};

// For an audit: say what you hold.
struct InventoryRequest {
  uint64_t id = 0;

  bool operator==(const InventoryRequest&) const = default;
};

// How it stands with what was demanded.
struct Forecast {
  std::string reason;  // What is being done, or why nothing can be.
  absl::Duration eta;  // From when it was said; zero: unknown.

  bool operator==(const Forecast&) const = default;
};

// For an operator: how the last ADDs went.
struct AttachTracesRequest {
  uint64_t id = 0;
  AttachTraceFilter filter = {};

  bool operator==(const AttachTracesRequest&) const = default;
};

struct ProbeTarget {
  ip::Address address;
  uint16_t port = 0;  // TCP; 0: ICMP echo.

  bool operator==(const ProbeTarget&) const = default;
};

// For an operator: what can be reached from here.
struct ProbeRequest {
  uint64_t id = 0;
  std::vector<ProbeTarget> targets;
  absl::Duration timeout;  // For each.

  bool operator==(const ProbeRequest&) const = default;
};

// For an operator: what would this policy, which is not put in force, end here?
struct PolicyTrial {
  uint64_t id = 0;
  policy::Update policy;  // All of it.

  bool operator==(const PolicyTrial&) const = default;
};

// All that a server says that an agent has to act upon.
using ServerRequest =
    std::variant<DesiredState, ReclaimRequest, InventoryRequest, policy::Update, Forecast,
                 AttachTracesRequest, ProbeRequest, BudgetGrants, EndAssignment, PolicyTrial>;

// How many pods of which namespace wait for addresses that are not here: all of them, not a change.
struct Demand {
  std::map<std::string, uint32_t> waiting;

  bool operator==(const Demand&) const = default;
};

// What the server has to know to begin a session.
struct Greeting {
  std::vector<Assignment> in_use;     // All that is assigned now,
  std::vector<ip::Address> cooldown;  // is in cooldown now,
  // and is in conflict now: a report of an earlier session may have been lost.
  std::vector<ConflictNoted> conflicts;
  uint64_t policy_version = 0;  // 0: send all of it.
  Demand demand = {};
  std::string store_token = {};  // The last that a server told; empty: none yet.

  bool operator==(const Greeting&) const = default;
};

// What has changed since. Of one address it holds at most one of each, in this order, which is also
// the order in which the server takes them.
struct AssignmentReport {
  std::vector<Assignment> in_use;
  std::vector<Assignment> released;
  std::vector<ip::Address> cooled;

  bool operator==(const AssignmentReport&) const = default;
};

struct NumberedReport {
  uint64_t sequence = 0;
  AssignmentReport report;

  bool operator==(const NumberedReport&) const = default;
};

struct DesiredAck {
  uint64_t version = 0;

  bool operator==(const DesiredAck&) const = default;
};

struct PolicyAck {
  uint64_t version = 0;
  std::string error;                           // Empty: kept and in force.
  std::optional<CutCount> cut = std::nullopt;  // What it ends, or would end; nullopt: not counted.
  bool held = false;                           // It would end more than it may.

  bool operator==(const PolicyAck&) const = default;
};

struct ReclaimAnswer {
  uint64_t id = 0;
  std::vector<ip::Prefix> agreed;
  std::vector<ip::Prefix> denied;

  bool operator==(const ReclaimAnswer&) const = default;
};

struct Inventory {
  uint64_t id = 0;
  std::vector<ip::Address> held;
  std::vector<Assignment> in_use;

  bool operator==(const Inventory&) const = default;
};

struct AttachTracesAnswer {
  uint64_t id = 0;
  std::vector<AttachTrace> traces;  // The newest first.

  bool operator==(const AttachTracesAnswer&) const = default;
};

// What this node's pods have sent and received since `epoch`: totals, so one may be lost.
struct TrafficReport {
  absl::Time epoch;
  std::map<std::string, VolumeByClass> namespaces;
  std::vector<PodTotals> pods;  // Those with most traffic outside the cluster.

  bool operator==(const TrafficReport&) const = default;
};

enum class ProbeOutcome { kNotTried, kReached, kRefused, kUnreachable, kTimedOut };

struct ProbeResult {
  ProbeTarget target;
  ProbeOutcome outcome = ProbeOutcome::kNotTried;
  absl::Duration took;
  std::string detail;

  bool operator==(const ProbeResult&) const = default;
};

struct ProbeAnswer {
  uint64_t id = 0;
  std::vector<ProbeResult> results;  // In the order of the targets.
  std::string error;                 // Why nothing was tried.

  bool operator==(const ProbeAnswer&) const = default;
};

struct PolicyTrialAnswer {
  uint64_t id = 0;
  CutCount cut;
  std::string error;  // Why it is not known.

  bool operator==(const PolicyTrialAnswer&) const = default;
};

// All that an agent says after its hello.
using AgentReply = std::variant<NumberedReport, DesiredAck, PolicyAck, ReclaimAnswer, Inventory,
                                ConflictNoted, Demand, AttachTracesAnswer, TrafficReport,
                                ProbeAnswer, BudgetReport, PolicyTrialAnswer>;

}  // namespace spoke::netagent
