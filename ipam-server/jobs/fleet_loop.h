// The one brain: takes what agents, cloud and operators say, lets core/ decide, stores it, and only
// then answers. One thread owns all state; everything that waits when it wakes becomes one commit.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/cloud/cloud.h"
#include "ipam-server/core/fleet.h"
#include "ipam-server/core/session.h"
#include "ipam-server/store/store.h"
#include "lib/os/clock.h"
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

// The way to the cloud. Thread-safe; never blocks; the answer comes as PostCloudResult(). A newer
// request for a node replaces one that waits.
class CloudRequests {
 public:
  virtual ~CloudRequests() = default;
  virtual void Request(NicAddresses desired) = 0;
};

// What a query sees; valid during the call only.
struct FleetView {
  const Fleet& fleet;
  const std::map<NodeKey, Session>& sessions;
  const std::vector<std::string>& problems;
};

// Public functions are thread-safe except Run() and RunOnce(), which are for the owning thread.
class FleetLoop {
 public:
  struct Edges {
    Store& store;
    AgentLink& agents;
    CloudRequests& cloud;
    const os::Clock& clock;
    telemetry::Log& log;
  };

  // Borrows the edges. `pools` and `policy` make the Fleet.
  FleetLoop(std::vector<PoolSpec> pools, const FleetPolicy& policy, const Edges& edges);

  // Reads all records. Call once, before Run(). Errors: as Store::List, DecodeNode and Fleet::Load.
  absl::Status Load();

  // What the loaded records say is on the NICs. For start-up, before Run().
  std::vector<NicAddresses> AllNics() const;

  void PostHello(SessionId session, Hello hello);
  void PostReport(SessionId session, LendingReport report);
  void PostDesiredAck(SessionId session, uint64_t version);
  void PostClosed(SessionId session);
  void PostCloudResult(const NodeKey& node, absl::StatusOr<NicAddresses> result);
  void PostQuery(std::function<void(const FleetView&)> query);

  // Serves until Stop().
  void Run();
  void Stop();

  // Waits up to `wait` for events, then handles all there are. False after Stop().
  bool RunOnce(absl::Duration wait);

 private:
  struct HelloEvent {
    SessionId session;
    Hello hello;
  };
  struct ReportEvent {
    SessionId session;
    LendingReport report;
  };
  struct AckEvent {
    SessionId session;
    uint64_t version;
  };
  struct ClosedEvent {
    SessionId session;
  };
  struct CloudEvent {
    NodeKey node;
    absl::StatusOr<NicAddresses> result;
  };
  struct QueryEvent {
    std::function<void(const FleetView&)> query;
  };
  using Event =
      std::variant<HelloEvent, ReportEvent, AckEvent, ClosedEvent, CloudEvent, QueryEvent>;

  // What has been decided but not yet stored.
  struct Batch {
    Effects effects;
    std::vector<std::pair<SessionId, ToAgent>> answers;
    std::vector<SessionId> read_next;
    std::vector<std::function<void(const FleetView&)>> queries;
  };

  void Post(Event event);
  void Handle(HelloEvent event, Batch& batch);
  void Handle(const ReportEvent& event, Batch& batch);
  void Handle(AckEvent event, Batch& batch);
  void Handle(ClosedEvent event, Batch& batch);
  void Handle(CloudEvent event, Batch& batch);
  void Handle(QueryEvent event, Batch& batch);
  void RetryCloud(Batch& batch);
  absl::Status CommitBatch(const Batch& batch);
  void CarryOut(Batch& batch);
  void RecoverFromFailedCommit(const absl::Status& why, const Batch& batch);
  void SetProblem(const std::string& topic, const std::string& text);
  const NodeKey* NodeOf(SessionId session) const;

  const std::vector<PoolSpec> pools_;
  const FleetPolicy policy_;
  Store& store_;
  AgentLink& agents_;
  CloudRequests& cloud_;
  const os::Clock& clock_;
  telemetry::Log& log_;

  // Owned by the loop's thread.
  Fleet fleet_;
  std::map<std::string, int64_t> revisions_;  // By store key.
  std::map<NodeKey, Session> sessions_;
  std::map<SessionId, NodeKey> nodes_by_session_;
  std::map<NodeKey, absl::Time> cloud_retries_;
  std::map<std::string, std::string> problems_by_topic_;
  std::vector<std::string> problems_;

  absl::Mutex mutex_;
  std::vector<Event> mailbox_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace spoke::ipam
