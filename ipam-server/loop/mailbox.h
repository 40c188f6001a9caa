// What waits for the loop, in lanes of their own: what agents say, agents that come back, changes
// and queries of operators. A turn of the loop takes so much work of each, so that nobody waits
// for all of the others, and no turn is long because many have something to say.
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
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/session/agent_session.h"
#include "lib/node_api/messages.h"

namespace spoke::ipam {

struct Effects;
struct FleetView;
struct ServerState;
// Records to write as they are, by key; no value removes the record.
using RawRecords = std::map<std::string, std::optional<std::string>>;

struct HelloEvent {
  SessionId session;
  node_api::Hello hello;
  bool instance_proved = false;  // Its certificate proves it; otherwise the agent only says so.
};
struct ReportEvent {
  SessionId session;
  node_api::AssignmentReport report;
};
struct DesiredAckEvent {
  SessionId session;
  uint64_t version;
};
struct ReclaimAnswerEvent {
  SessionId session;
  node_api::ReclaimAnswer answer;
};
struct PolicyAckEvent {
  SessionId session;
  node_api::PolicyAck ack;
};
struct InventoryEvent {
  SessionId session;
  node_api::Inventory inventory;
};
struct ConflictEvent {
  SessionId session;
  node_api::ConflictReport conflict;
};
struct DemandEvent {
  SessionId session;
  node_api::Demand demand;
};
struct AttachTracesEvent {
  SessionId session;
  node_api::AttachTracesAnswer traces;
};
struct ProbeAnswerEvent {
  SessionId session;
  node_api::ProbeAnswer answer;
};
struct PolicyTrialEvent {
  SessionId session;
  node_api::PolicyTrialAnswer answer;
};
struct NodeFindingsEvent {
  SessionId session;
  node_api::NodeFindings findings;
};
struct MaintenanceEvent {
  SessionId session;
  node_api::Maintenance maintenance;
};
struct NodeDataEvent {
  SessionId session;
  node_api::NodeDataAnswer answer;
};
using InventorySink = std::function<void(const NodeKey&, node_api::Inventory)>;
// Asks all connected agents to say what they hold.
struct AskInventoriesEvent {
  InventorySink on_inventory;
};
struct ClosedEvent {
  SessionId session;
  std::string refused = {};  // What was wrong with what its agent said; empty: nothing.
};
struct CloudEvent {
  NodeKey node;
  absl::StatusOr<NicAddresses> result;
};
struct ListingEvent {
  std::vector<NicAddresses> nics = {};
  // Whether a listing would have had the instance, if there were one.
  std::function<bool(const std::string& instance)> covers = {};
  absl::Status failure = {};  // Why there is none.
};
using AgentEvent =
    std::variant<ReportEvent, DesiredAckEvent, ReclaimAnswerEvent, PolicyAckEvent, InventoryEvent,
                 DemandEvent, AttachTracesEvent, ProbeAnswerEvent, PolicyTrialEvent,
                 NodeFindingsEvent, MaintenanceEvent, NodeDataEvent, AskInventoriesEvent,
                 ConflictEvent, ClosedEvent, CloudEvent, ListingEvent>;

// Looks and changes nothing.
struct QueryEvent {
  std::function<void(const FleetView&)> query;
};
// Changes something, or nothing at all and says why.
struct ChangeEvent {
  std::function<absl::StatusOr<Effects>(ServerState&, RawRecords&)> change;
  std::function<void(const absl::Status&)> done;  // Called once it is durable, or has failed.
};
// Asks the agent of a node how ADDs of a pod went.
using TracesDone = std::function<void(absl::StatusOr<node_api::AttachTracesAnswer>)>;
struct AskTracesEvent {
  std::string node;
  std::string pod_namespace;
  std::string pod_name;
  TracesDone done;
};
// Asks the agent of a node what it can reach.
using ProbeDone = std::function<void(absl::StatusOr<node_api::ProbeAnswer>)>;
struct AskProbeEvent {
  std::string node;
  node_api::ProbeRequest request;
  ProbeDone done;
};
// Asks the agent of a node what a policy would end there.
using TrialDone = std::function<void(absl::StatusOr<node_api::PolicyTrialAnswer>)>;
struct AskTrialEvent {
  std::string node;
  std::shared_ptr<const Bundle> policy;
  TrialDone done;
};
// Asks the agent of a node what it has kept of its past and state.
using NodeDataDone = std::function<void(absl::StatusOr<node_api::NodeDataAnswer>)>;
struct AskNodeDataEvent {
  std::string node;
  std::vector<std::string> parts;
  NodeDataDone done;
};
// Tells the agent of a node that maintenance may begin: the events of these ids, or all.
using StartMaintenanceDone = std::function<void(absl::StatusOr<std::vector<std::string>>)>;
struct StartMaintenanceEvent {
  std::string node;
  std::vector<std::string> events;
  StartMaintenanceDone done;
};
// What another part of the server has to tell operators, in place of what it told before.
struct ProblemEvent {
  std::string topic;
  std::string text;  // Empty: it is over.
};
using OperatorEvent = std::variant<ChangeEvent, AskTracesEvent, AskProbeEvent, AskTrialEvent,
                                   AskNodeDataEvent, StartMaintenanceEvent, ProblemEvent>;

// How much there is to do for an event, in units of very roughly five microseconds: so many for the
// message and for the record that it changes, and some for each address that it is about.
size_t WorkOf(const AgentEvent& event);
size_t WorkOf(const HelloEvent& event);

// Thread-safe. Bounded by its senders: an agent has one message in flight, an operator one call.
// Within a lane the order is that of posting; so what one agent says keeps its order.
class Mailbox {
 public:
  struct Taken {
    std::vector<AgentEvent> agents;
    std::vector<HelloEvent> hellos;
  };
  struct Lanes {
    bool agents = true;   // False: what agents say stays here, not waited for.
    bool hellos = true;   // False: agents that come back stay here, not waited for.
    bool queries = true;  // False: they are not waited for.
    // The work of what agents say, and of Hellos; three fourths are for the former when both wait.
    // A fourth of all while an operator's change waits. What goes beyond waits for the next turn.
    // One of each is taken whatever its work is.
    size_t work = 2500;
  };

  void Post(QueryEvent event);
  void Post(OperatorEvent event);
  void Post(AgentEvent event);
  void Post(HelloEvent event);
  // The session is over: a Hello of it that still waits is dropped, since nobody is there any more.
  // Otherwise the loop hears of it in its next turn, or behind what the session said and nobody has
  // read: a Hello that follows must not find the former session open for no other reason than that
  // other agents have much to say.
  void PostClosed(SessionId session, std::string refused = "");

  // Waits up to `wait` for something in any lane, and takes what agents say. nullopt after Stop().
  std::optional<Taken> Take(absl::Duration wait, const Lanes& lanes);
  // The next one of its lane; nullopt: none waits. They do not wait themselves.
  std::optional<OperatorEvent> NextChange();
  std::optional<QueryEvent> NextQuery();
  void Stop();

  // How many messages wait: agents' and Hellos, for metrics.
  size_t waiting_agents() const;
  size_t waiting_hellos() const;

 private:
  mutable absl::Mutex mutex_;
  std::deque<QueryEvent> queries_ ABSL_GUARDED_BY(mutex_);
  std::deque<OperatorEvent> changes_ ABSL_GUARDED_BY(mutex_);
  std::deque<AgentEvent> closed_ ABSL_GUARDED_BY(mutex_);
  std::deque<AgentEvent> agents_ ABSL_GUARDED_BY(mutex_);
  std::deque<HelloEvent> hellos_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

// Returns what posts a cloud's answers to `mailbox`, which it borrows.
CloudAnswer AnswersTo(Mailbox& mailbox);

}  // namespace spoke::ipam
