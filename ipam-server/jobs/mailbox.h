// What waits for the loop, in three lanes, so that 7,500 agents that come back at once neither keep
// operators waiting nor those agents that are at work.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/cloud.h"
#include "ipam-server/core/attach_trace.h"
#include "ipam-server/core/node_record.h"
#include "ipam-server/core/probe.h"
#include "ipam-server/core/session.h"

namespace spoke::ipam {

struct Effects;
struct FleetView;
struct ServerState;
// Records to write as they are, by key; no value removes the record.
using RawRecords = std::map<std::string, std::optional<std::string>>;

struct HelloEvent {
  SessionId session;
  Hello hello;
};
struct ReportEvent {
  SessionId session;
  LendingReport report;
};
struct DesiredAckEvent {
  SessionId session;
  uint64_t version;
};
struct ReclaimAnswerEvent {
  SessionId session;
  ReclaimAnswer answer;
};
struct PolicyAckEvent {
  SessionId session;
  uint64_t version;
  std::string error;
};
struct InventoryEvent {
  SessionId session;
  Inventory inventory;
};
struct ConflictEvent {
  SessionId session;
  ip::Address address;
  std::string other_mac;
};
struct DemandEvent {
  SessionId session;
  Demand demand;
};
struct AttachTracesEvent {
  SessionId session;
  AttachTraces traces;
};
struct ProbeAnswerEvent {
  SessionId session;
  ProbeAnswer answer;
};
// All connected agents are to say what they hold.
struct AskInventoriesEvent {};
struct ClosedEvent {
  SessionId session;
};
struct CloudEvent {
  NodeKey node;
  absl::StatusOr<NicAddresses> result;
};
struct ListingEvent {
  std::vector<NicAddresses> nics;
  // Whether a listing would have had the instance, if there were one.
  std::function<bool(const std::string& instance)> covers;
};
using AgentEvent =
    std::variant<ReportEvent, DesiredAckEvent, ReclaimAnswerEvent, PolicyAckEvent, InventoryEvent,
                 DemandEvent, AttachTracesEvent, ProbeAnswerEvent, AskInventoriesEvent,
                 ConflictEvent, ClosedEvent, CloudEvent, ListingEvent>;

// Looks and changes nothing.
struct QueryEvent {
  std::function<void(const FleetView&)> query;
};
// Changes something, or nothing at all and says why.
struct ChangeEvent {
  std::function<absl::StatusOr<Effects>(ServerState&, RawRecords&)> change;
  std::function<void(const absl::Status&)> done;  // Once it is durable, or has failed.
};
// Asks the agent of a node how ADDs of a pod went.
using TracesDone = std::function<void(absl::StatusOr<AttachTraces>)>;
struct AskTracesEvent {
  std::string node;
  std::string pod_namespace;
  std::string pod_name;
  TracesDone done;
};
// Asks the agent of a node what it can reach.
using ProbeDone = std::function<void(absl::StatusOr<ProbeAnswer>)>;
struct AskProbeEvent {
  std::string node;
  ProbeRequest request;
  ProbeDone done;
};
using OperatorEvent = std::variant<QueryEvent, ChangeEvent, AskTracesEvent, AskProbeEvent>;

// Thread-safe. Bounded by its senders: an agent has one message in flight, an operator one call.
class Mailbox {
 public:
  struct Taken {
    std::vector<OperatorEvent> operators;
    std::vector<AgentEvent> agents;
    std::vector<HelloEvent> hellos;
  };
  struct Lanes {
    bool agents = true;        // Else only operators.
    size_t most_hellos = 256;  // The others wait for the next turn.
  };

  void Post(OperatorEvent event);
  void Post(AgentEvent event);
  void Post(HelloEvent event);
  // The session is over: a Hello of it that still waits is dropped, since nobody is there any more.
  void PostClosed(SessionId session);

  // Waits up to `wait` for something in `lanes` and takes it. nullopt after Stop().
  std::optional<Taken> Take(absl::Duration wait, const Lanes& lanes);
  void Stop();

  // How many messages wait: agents' and Hellos, for metrics.
  size_t waiting_agents() const;
  size_t waiting_hellos() const;

 private:
  mutable absl::Mutex mutex_;
  std::vector<OperatorEvent> operators_ ABSL_GUARDED_BY(mutex_);
  std::vector<AgentEvent> agents_ ABSL_GUARDED_BY(mutex_);
  std::deque<HelloEvent> hellos_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace spoke::ipam
