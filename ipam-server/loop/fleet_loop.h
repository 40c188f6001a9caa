// The server's loop: takes what agents, cloud and operators say, lets the ledger decide, stores it,
// and only then answers. One thread owns all state; what it takes in one turn becomes one commit.
//
// A turn is short, some tens of milliseconds with 7,500 nodes, since everybody else waits for its
// end: it takes a bounded amount of work from each lane of the mailbox, and what is due for all
// nodes at once (plans, reviews, requests to the cloud, listings, policies, metrics) is done for
// some of them in each. What takes long as a whole is prepared on another thread and swapped in.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/cloud/cloud.h"
#include "ipam-server/ledger/decisions/demand.h"
#include "ipam-server/ledger/effects.h"
#include "ipam-server/ledger/fleet.h"
#include "ipam-server/loop/background.h"
#include "ipam-server/loop/loop_metrics.h"
#include "ipam-server/loop/mailbox.h"
#include "ipam-server/loop/pending_answers.h"
#include "ipam-server/loop/record_writer.h"
#include "ipam-server/loop/server_state.h"
#include "ipam-server/loop/store_witness.h"
#include "ipam-server/session/agent_session.h"
#include "ipam-server/store/store.h"
#include "ipam-server/telemetry/server_metrics.h"
#include "lib/base/rate_book.h"
#include "lib/os/clock.h"
#include "lib/os/heartbeat.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

// The way to the connected agents. Thread-safe; never blocks; an unknown session is ignored.
class AgentLink {
 public:
  virtual ~AgentLink() = default;
  virtual void Send(SessionId session, ToAgent message) = 0;
  // The agent's last message has been dealt with: read the next. One in flight a session bounds the
  // loop's mailbox.
  virtual void ReadNext(SessionId session) = 0;
  virtual void Close(SessionId session, absl::Status why) = 0;
};

// What happened, since the start.
struct LoopCounters {
  uint64_t assignments = 0;
  uint64_t releases = 0;
  uint64_t commits = 0;
};

// The rates each second, over the last minute.
struct LoopRates {
  double assignments = 0;
  double releases = 0;
  double commits = 0;
};

// The topic of the problem that the cloud refuses to change the NIC of the node's machine.
inline std::string CloudTopicOf(const NodeKey& node) {
  return "cloud " + node.name + " " + node.vm_id;
}

// What a query sees; valid during the call only.
struct FleetView {
  const ServerState& state;
  const Fleet& fleet;  // The fleet of `state`.
  const std::map<NodeKey, Session>& sessions;
  const std::map<std::string, std::string>& problems;  // By topic, such as CloudTopicOf().
  const std::map<NodeKey, absl::Time>& cloud_retries;  // What the cloud refused, and until when.
  const Cloud& cloud;
  LoopRates rates;
  absl::Time now;

  // Returns the texts of all problems.
  std::vector<std::string> ProblemTexts() const;
};

// Public functions are thread-safe except Run(), RunOnce() and the reading ones before Run(), which
// are for the owning thread.
class FleetLoop {
 public:
  // How often the cloud is asked for one node, by its name, where that is calls, which all nodes
  // share: an agent can have its node asked for as often as it says that it has booted, or has
  // another NIC. A node that grows to all that a NIC can have is asked for fewer times at once.
  static constexpr base::Rate kCloudRequests{.burst = 32, .refill = absl::Seconds(2)};

  struct Edges {
    Store& store;
    AgentLink& agents;
    Cloud& cloud;      // It answers to the mailbox: AnswersTo().
    Mailbox& mailbox;  // This loop's alone, which stops it.
    const os::Clock& clock;
    telemetry::Log& log;
    ServerMetrics* metrics = nullptr;  // nullptr: nobody counts.
    // The witness; nullptr: nothing lies beside the store, and nodes are told nothing of it.
    const StoreWitness* witness = nullptr;
    // The thread where the store is read anew after it has failed; nullptr: on the loop's own
    // thread, which holds it for as long as that takes.
    Background* background = nullptr;
    // The heartbeat, beaten at each turn, once a second at least; nullptr: nobody listens to it.
    os::Heartbeat* heartbeat = nullptr;
    // Called on the loop's thread, as the next; empty: nobody is told. It gets the objects in force
    // at the beginning of Run() and after each change that was stored.
    std::function<void(const ObjectSet&)> on_objects = {};
    // Called with each node whose machine the cloud says is gone, or has another VM id now, once
    // that is stored.
    std::function<void(const NodeKey&)> on_node_gone = {};
    // Called at most once, with the nodes of the store, when that is taken to be the newest there
    // is; never by a server whose store was behind what nodes had been told.
    std::function<void(const std::vector<NodeKey>&)> on_known_nodes = {};
    // Called with OK when things can be stored again, and with the reason when they cannot and
    // whenever that was tried again; they can until the first call.
    std::function<void(const absl::Status& why_not)> on_writable = {};
    // The leadership under which the store is written; 0: it has no leaders.
    int64_t leadership = 0;
  };

  // Borrows the edges. `loaded`: as LoadState() gives it, with the same settings.
  FleetLoop(ServerSettings settings, LoadedState loaded, const Edges& edges);

  void PostHello(SessionId session, node_api::Hello hello, bool instance_proved = false);
  void PostFromAgent(AgentEvent event) { edges_.mailbox.Post(std::move(event)); }
  // `refused`: why the session was ended, when that was for what its agent said; else empty.
  void PostClosed(SessionId session, std::string refused = "") {
    edges_.mailbox.PostClosed(session, std::move(refused));
  }
  void PostListing(std::vector<NicAddresses> nics,
                   std::function<bool(const std::string& instance)> covers);
  // The cloud could not be listed. Operators are told when it cannot twice in a row.
  void PostListingFailed(absl::Status why);
  void PostQuery(std::function<void(const FleetView&)> query);
  // `done` is called on the loop's thread: OK once the change is durable. An error of `change` is
  // passed on; when nothing can be stored it is kUnavailable, and `change` may not have been
  // called.
  void PostChange(std::function<absl::StatusOr<Effects>(ServerState&, RawRecords&)> change,
                  std::function<void(const absl::Status&)> done);
  // Asks all connected agents what they hold. `on_inventory` is called on the loop's thread with
  // each answer, until the next call.
  void PostAskInventories(InventorySink on_inventory) {
    edges_.mailbox.Post(AgentEvent(AskInventoriesEvent{std::move(on_inventory)}));
  }
  // Asks the agent of `node` how the last ADDs of the pod went. `done` is called once, on the
  // loop's thread. Errors: kNotFound (no such node), kFailedPrecondition (its agent is away),
  // kUnavailable (it went away before it answered), kDeadlineExceeded (it does not answer),
  // kResourceExhausted (too many ask at once).
  void PostAskTraces(const std::string& node, const std::string& pod_namespace,
                     const std::string& pod_name, TracesDone done);
  // Asks the agent of `node` what it can reach; the id of `request` is given here. Errors: as
  // PostAskTraces().
  void PostAskProbe(const std::string& node, node_api::ProbeRequest request, ProbeDone done);
  // Asks the agent of `node` what `policy` would end there. Errors: as PostAskTraces().
  void PostAskTrial(const std::string& node, std::shared_ptr<const Bundle> policy, TrialDone done);
  // Asks the agent of `node` for these parts of what it has kept; none: all. Errors: as
  // PostAskTraces().
  void PostAskNodeData(const std::string& node, std::vector<std::string> parts, NodeDataDone done);
  // Tells the agent of `node` that these events of its maintenance may begin; none: all of them.
  // `done` is called with the ids that it was told. Errors: kNotFound (no such node or event),
  // kFailedPrecondition (its agent is away, or nothing is announced that has not begun).
  void PostStartMaintenance(const std::string& node, std::vector<std::string> events,
                            StartMaintenanceDone done);
  // Lists `text` among the problems, in place of the one before of that topic; empty: it is over.
  void PostProblem(std::string topic, std::string text) {
    edges_.mailbox.Post(OperatorEvent(ProblemEvent{std::move(topic), std::move(text)}));
  }

  // Serves until Stop(), from Begin() on.
  void Run();
  void Stop() { edges_.mailbox.Stop(); }

  // Has the cloud asked again for what was on its way when the process before ended. Whoever turns
  // the loop by RunOnce() calls it once, before.
  void Begin();
  // Waits up to `wait` for events, then handles all there are. False after Stop().
  bool RunOnce(absl::Duration wait);

  const Mailbox& mailbox() const { return edges_.mailbox; }

 private:
  // A listing of the cloud's, of which some NICs are compared in each turn.
  struct Listed {
    std::vector<NicAddresses> nics;
    std::function<bool(const std::string& instance)> covers;
    size_t next = 0;
    std::set<NodeKey> present = {};  // The nodes of NICs before `next`.
  };
  // The store as it is read on another thread.
  struct Reloading {
    absl::Mutex mutex;
    std::unique_ptr<absl::StatusOr<LoadedState>> loaded ABSL_GUARDED_BY(mutex);
  };
  // What has been decided but not yet stored.
  struct Batch {
    Effects effects;
    RawRecords raw;
    std::vector<std::pair<SessionId, ToAgent>> answers;
    std::vector<SessionId> read_next;
    std::vector<NodeKey> answered;  // Nodes whose agents can be asked for the next.
    std::vector<std::function<void(const absl::Status&)>> done;
    absl::Time now;
  };

  void Handle(HelloEvent event, Batch& batch);
  bool IsRefused(const HelloEvent& event, Batch& batch);
  bool IsNotItself(const HelloEvent& event, Batch& batch);
  void Handle(ReportEvent event, Batch& batch);
  void Handle(DesiredAckEvent event, Batch& batch);
  void Handle(ReclaimAnswerEvent event, Batch& batch);
  void Handle(PolicyAckEvent event, Batch& batch);
  void Handle(InventoryEvent event, Batch& batch);
  void Handle(DemandEvent event, Batch& batch);
  void Handle(AttachTracesEvent event, Batch& batch);
  void Handle(AskTracesEvent event, Batch& batch);
  void Handle(ProbeAnswerEvent event, Batch& batch);
  void Handle(AskProbeEvent event, Batch& batch);
  void Handle(PolicyTrialEvent event, Batch& batch);
  void Handle(AskTrialEvent event, Batch& batch);
  void Handle(NodeFindingsEvent event, Batch& batch);
  void Handle(MaintenanceEvent event, Batch& batch);
  void Handle(StartMaintenanceEvent event, Batch& batch);
  void Handle(NodeDataEvent event, Batch& batch);
  void Handle(AskNodeDataEvent event, Batch& batch);
  void ForgetFindings(const NodeKey& node);
  void TellBlocked();
  void Handle(const ProblemEvent& event, Batch& /*batch*/) { SetProblem(event.topic, event.text); }
  // Returns the session of that node. Errors: kNotFound, kFailedPrecondition (it is away).
  absl::StatusOr<Session*> SessionToAsk(const std::string& node);
  void Handle(AskInventoriesEvent event, Batch& batch);
  void Handle(ConflictEvent event, Batch& batch);
  void Handle(ClosedEvent event, Batch& batch);
  void Handle(CloudEvent event, Batch& batch);
  void Handle(ListingEvent event, Batch& batch);
  void Handle(ChangeEvent event, Batch& batch);

  // --- While the store may be older than what nodes were told. ---
  void BeginRecovery(Batch& batch);
  void TryToOpen(Batch& batch);
  void BeginCloud();
  void AskInventory(Session& session, Batch& batch);
  void FindUnheard();
  void TellRecovery(absl::Time now);
  void TellKnownNodes();
  // The agents that one turn tells what an operator's change means, of many that it concerns.
  static constexpr size_t kToldPerTurn = 64;
  void TellSome(Batch& batch);
  void TellDoubled();
  void GreetAnew(const NodeKey& node, const std::string& why);
  void RememberMark(absl::Time now, bool at_once);

  absl::Duration Patience(absl::Duration wait) const;
  // Returns how long what agents say is still to gather; zero when there is enough for a commit.
  absl::Duration Gathering() const;
  void HandleChanges(Batch& batch);
  void KeepTime(Batch& batch);
  void ReviewSome(Batch& batch);
  void PlanSome(Batch& batch);
  void CompareSome(Batch& batch);
  void FinishListing(Batch& batch);
  void RequestSome();
  void AskCloudAgain(const NodeKey& key, Batch& batch);
  void RememberCounters(absl::Time now);
  void CountEffects(const Effects& effects) const;
  LoopRates Rates(absl::Time now) const;
  void Commit(Batch& batch);
  void SendAnswers(Batch& batch);
  void CarryOut(Batch& batch);
  void AskToReclaim(const NodeKey& node, std::vector<ip::Prefix> ranges);
  void AskForNext(const NodeKey& node, Session& session);
  std::string EndOlderSessions(const NodeKey& newer, absl::Time now);
  void TellRivals(const std::string& node);
  void TellIdentities(absl::Time now);
  void EndSession(SessionId session, const NodeKey& node, const absl::Status& why);
  void PlanForecast(const NodeKey& node, Session& session);
  void SendForecasts(absl::Time now);
  void SendForecast(const NodeKey& node, Session& session, absl::Time now);
  CloudStanding StandingOf(const NodeKey& node) const;
  NicRequest RequestFor(const NodeRecord& record) const;
  void SpreadPolicy();
  void TellObjects();
  void TellNodesGone(const Effects& effects);
  void FindWithAddresses();
  void UpdateWithAddresses(const std::set<NodeKey>& changed);
  bool MayAskCloud(const NodeRecord& record) const;
  bool NeedsCloud(const NodeKey& node) const;
  void EndCloudProblems(const Effects& effects);
  void SendPolicy(const NodeKey& node, Session& session);
  void SendPolicyAnew(const NodeKey& node, Session& session);  // Sends it in one of the next turns.
  void Fail(const absl::Status& why, Batch& batch);
  void BeginReload(absl::Time now);
  void FinishReload();
  void AskAllInventories();
  void InBackground(std::function<void()> work);
  void TryToRecover(Batch& batch);
  void LogFindings(const std::vector<Finding>& findings);
  void Answer(const Batch& batch);
  void SetWritable(const absl::Status& why_not);
  void SetProblem(const std::string& topic, const std::string& text);
  FleetView View(absl::Time now);
  const NodeKey* NodeOf(SessionId session) const;
  Session* TouchSession(SessionId session, Batch& batch);

  const ServerSettings settings_;
  const Edges edges_;

  // The state owned by the loop's thread.
  ServerState state_;
  absl::flat_hash_set<NodeKey> with_addresses_;  // The nodes of which HasAddresses() is stored.
  absl::Time mark_remembered_;
  uint64_t epoch_remembered_ = 0;
  std::string token_;  // The last commit's; empty: none was made since.
  RecordWriter writer_;
  std::map<NodeKey, Session> sessions_;
  absl::flat_hash_map<SessionId, NodeKey> nodes_by_session_;
  // When sessions of a node replaced one another, the oldest first, and how many there are of each.
  std::deque<std::pair<absl::Time, std::string>> replacements_;
  std::map<std::string, size_t> replaced_;
  struct RefusedIdentity {
    absl::Time at;
    std::string why;
  };
  std::map<std::string, RefusedIdentity> not_themselves_;  // Keyed by node.
  std::map<NodeKey, absl::Time> cloud_retries_;
  std::map<NodeKey, absl::Time> cloud_asked_;  // Since when the cloud owes an answer.
  std::map<std::string, std::string> problems_by_topic_;
  std::set<ip::Address> doubled_told_;  // Addresses with a problem of their own.
  TraceRequests traces_{std::string(kLacksTraces)};
  ProbeRequests probes_{std::string(kLacksProbes)};
  TrialRequests trials_{std::string(kLacksTrials)};
  NodeDataRequests node_data_{std::string(kLacksData)};
  std::set<std::pair<absl::Time, NodeKey>> forecasts_;  // When to look for a node's next forecast.
  std::set<NodeKey> plan_waiting_;                      // Nodes to plan for, some in each turn.
  std::set<NodeKey> attach_waiting_;                    // Nodes to ask the cloud for, likewise.
  base::RateBook requests_{kCloudRequests, RecordWriter::kMostNodes};
  // Those that had not spoken when the store was taken for the newest there is, until they do;
  // where a cloud is told all of a NIC also at a start: their pods may use what the store cannot
  // name.
  std::set<NodeKey> unheard_;
  int listings_failed_ = 0;          // In a row.
  std::set<NodeKey> retry_waiting_;  // The ones whose earlier refusals do not count.
  std::optional<Listed> listed_;
  std::set<NodeKey> changed_by_loading_;  // Their records are to be stored.
  std::set<NodeKey> tell_anew_;  // What was decided of them may be stored, and was not told.
  // The names of connected nodes whose checks find what keeps pods from working.
  std::set<std::string> blocked_nodes_;
  std::set<NodeKey> policy_waiting_;  // Sessions that are to be sent the present policy.
  std::set<NodeKey> tell_waiting_;    // Nodes that an operator's change concerns, among many.
  bool cloud_begun_ = false;
  bool known_told_ = false;  // on_known_nodes() was called, or never will be.
  NodeKey awaited_;          // One that a recovery waits for, when it was last looked.
  NodeKey reviewed_;         // The last one; the next review goes on behind it.
  NodeKey waiting_looked_;   // The last of those where pods wait that was looked at.
  absl::Time last_tick_;
  absl::Time gathers_since_;  // When the last turn ended that took what agents say, and stored.
  StatePublisher publisher_;
  double review_credit_ = 0;
  bool writable_ = true;                  // The last commit went through.
  bool reload_due_ = false;               // Memory is ahead of the store, which was not read since.
  std::shared_ptr<Reloading> reloading_;  // Shared with who reads it; nullptr: nobody does.
  bool probed_ = false;                   // The store takes writes, and is being read anew.
  absl::Time next_probe_;                 // The next probe while not writable.
  absl::Duration probe_period_;
  absl::Time last_recovery_ = absl::InfinitePast();  // When a probe last went through.
  LoopCounters counters_;
  std::deque<std::pair<absl::Time, LoopCounters>> past_counters_;  // One a second, for a minute.
  InventorySink on_inventory_;
  uint64_t objects_told_ = 0;  // The version that was told; 0: none yet.
};

}  // namespace spoke::ipam
