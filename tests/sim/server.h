// One process of the server: the real loop with its ledger, store records and fence, gates of
// streams and both codecs, on a simulated store, cloud and network.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "ipam-server/audit/audit_snapshot.h"
#include "ipam-server/budget/budget_keeper.h"
#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/loop/loop_call.h"
#include "ipam-server/loop/mailbox.h"
#include "ipam-server/policy/bundle_message.h"
#include "ipam-server/session/stream_gate.h"
#include "lib/telemetry/log.h"
#include "tests/sim/agent.h"
#include "tests/sim/cloud/provider.h"
#include "tests/sim/network.h"
#include "tests/sim/sim_store.h"

namespace spoke::sim {

// What a server warns of is part of the story.
class TracedLog final : public telemetry::Log {
 public:
  // Borrows `trace`.
  TracedLog(size_t server, Trace& trace) : server_(server), trace_(trace) {}

  void Write(telemetry::Level level, std::string_view event,
             std::initializer_list<telemetry::Field> fields) override {
    if (level < telemetry::Level::kWarn) return;
    trace_.Say("server {} logs {}", server_, telemetry::FormatEvent(event, fields));
  }

 private:
  const size_t server_;
  Trace& trace_;
};

// Sees what the server tells agents, as it is told.
class ServerWatcher {
 public:
  virtual ~ServerWatcher() = default;
  virtual void OnTold(const ipam::NodeKey& node, const ipam::ToAgent& message) = 0;
  virtual void OnHeard(const ipam::NodeKey& node, const node_api::AgentMessage& message) = 0;
};

// Not thread-safe. Each entry may leave the process dead; its owner looks, and buries it.
class Server final : public ipam::AgentLink {
 public:
  struct Edges {
    size_t index = 0;  // Which machine it is on.
    Schedule& schedule;
    Network& network;
    Trace& trace;
    StoreDisks& disks;
    Provider& provider;
    const StoreFaults& store_faults;
    bool shares_budget = false;  // It grants of a budget that all machines share.
    Random& random;
    ServerWatcher& watcher;
    std::function<absl::Duration()> write_margin;  // How long nobody else can lead, from now on.
    std::string witness_directory;
    std::string boot_id;
    ipam::MarkKeys keys;
  };

  // Borrows the edges. `ahead` and `drift`: its machine's clock. Errors: as LoadState() and
  // StoreWitness::Open().
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Edges& edges,
                                                       const ipam::ServerSettings& settings,
                                                       uint64_t term, const MachineClock& clock);
  ~Server() override;

  // One turn of the loop.
  void Turn();
  // When the next turn is due, unless something is posted before.
  absl::Time NextTurn() const { return next_turn_; }

  void Opened(StreamId stream);
  void Hear(StreamId stream, v1::AgentMessage message);
  void Ended(StreamId stream);
  // It cannot renew its leadership: its agents are to ask the next server.
  void EndStreams();

  // What operators do. `done` may be empty.
  void Change(ipam::LoopChange change, std::function<void(const absl::Status&)> done = {});
  // As AuditJob does it: compares, with what agents say within `patience`, and makes the repairs
  // that are safe. `done` hears how many it made, unless the process dies before.
  void AuditAndRepair(absl::Duration patience, std::function<void(size_t repaired)> done);
  // Looks at the state between two turns.
  void Look(const std::function<void(const ipam::FleetView&)>& query);

  // The clock of its process: what its machine's was at the start, and how fast that goes.
  const MachineClock& clock() const { return clock_; }
  Life& life() { return life_; }
  bool deposed() const { return store_.deposed(); }
  uint64_t term() const { return term_; }

  void Send(ipam::SessionId session, ipam::ToAgent message) override;
  void ReadNext(ipam::SessionId session) override;
  void Close(ipam::SessionId session, absl::Status why) override;

 private:
  struct Stream {
    explicit Stream(const ipam::StreamGate::Rules& rules) : gate(rules, {}, {}) {}
    ipam::StreamGate gate;
    std::deque<v1::AgentMessage> unread;
    bool reads = true;   // The loop has dealt with the message before.
    bool ended = false;  // Nothing more is written to it.
  };

  Server(const Edges& edges, uint64_t term, const MachineClock& clock, ipam::StoreWitness witness);
  Stream* Find(StreamId stream);  // nullptr: there is none.
  void Wake();
  void List();
  void Repair(ipam::AuditSnapshot& snapshot, const std::function<void(size_t)>& done);
  void Grant();
  void ReadSome(StreamId id);
  absl::StatusOr<bool> Dispatch(StreamId id, Stream& stream, const v1::AgentMessage& message);
  void Refuse(StreamId id, Stream& stream, const absl::Status& why);

  const Edges edges_;
  const uint64_t term_;
  const MachineClock clock_;
  Life life_;
  TracedLog log_;
  SimStore store_;
  const ipam::StoreWitness witness_;
  const ipam::StreamGate::Rules rules_;
  ipam::BundleMessages bundles_;
  ipam::BudgetKeeper budgets_;
  ipam::Mailbox mailbox_;
  const std::unique_ptr<ipam::Cloud> cloud_;
  std::unique_ptr<ipam::FleetLoop> loop_;
  absl::flat_hash_map<StreamId, std::unique_ptr<Stream>> streams_;
  absl::Time next_turn_;
  absl::Time busy_until_;
  absl::Time next_listing_;
  // What is on the schedule for this process does nothing once it is gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace spoke::sim
