// A server of the simulation: the real loop with all that it decides by, around it a store, a cloud
// and streams that the world has in its hands.
//
// Where there are several, it stands by until nobody leads, or the leader's process has ended; it
// leads under a lease, and ends when another one has taken over.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ipam-server/loop/fleet_loop.h"
#include "ipam-server/loop/mailbox.h"
#include "ipam-server/loop/store_witness.h"
#include "ipam-server/policy/bundle_message.h"
#include "ipam-server/session/stream_gate.h"
#include "lib/os/clock.h"
#include "tests/sim/basis.h"
#include "tests/sim/fabric.h"
#include "tests/sim/network.h"
#include "tests/sim/process.h"
#include "tests/sim/sim_store.h"

namespace spoke::sim {

class ServerProcess final : public Process, public ipam::AgentLink {
 public:
  struct Edges {
    Basis& basis;
    Machine& machine;
    Database& database;
    Fabric& fabric;
    std::function<bool()> reaches_store;
    std::function<bool(const std::string& leader)> has_ended;  // The kernel there says so.
    std::function<void()> on_death;
    // Opens the witness beside the store of this machine; called once it leads.
    std::function<absl::StatusOr<ipam::StoreWitness>()> open_witness;
  };
  ServerProcess(const ipam::ServerSettings& settings, Edges edges);
  ~ServerProcess() override;

  // Begins to stand by, or to lead where it is alone.
  void Start();
  bool leads() const { return loop_ != nullptr; }
  // A new stream of an agent. `name`: what the certificate at the other end proves.
  void Accept(const std::shared_ptr<Connection>& connection, const std::string& name);

  // Operators. Does nothing unless it leads. `done` is not called when the process dies before.
  using Change = std::function<absl::StatusOr<ipam::Effects>(ipam::ServerState&, absl::Time now)>;
  void Operate(Change change, std::function<void(const absl::Status&)> done);
  // Looks at the fleet as operators do.
  void Query(std::function<void(const ipam::FleetView&)> query);
  void AskInventories(ipam::InventorySink sink);
  void ListCloud(ipam::CloudListed listed) { cloud_->List(std::move(listed)); }

  void FailStoreUntil(absl::Time until) { store_->FailUntil(until); }

  // --- AgentLink. ---
  void Send(ipam::SessionId session, ipam::ToAgent message) override;
  void ReadNext(ipam::SessionId session) override;
  void Close(ipam::SessionId session, absl::Status why) override;

 private:
  struct Stream {
    Stream(const ipam::StreamGate::Rules& rules, const std::string& name,
           std::shared_ptr<Connection> to)
        : gate(rules, {name}, {}), connection(std::move(to)) {}
    ipam::StreamGate gate;
    std::shared_ptr<Connection> connection;
    ipam::StreamWrites<std::string> writes;
    std::deque<std::string> unread;
    bool reading = true;
    std::deque<node_api::AssignmentReport> reports;  // Not acknowledged yet.
  };
  struct ReadOrder {};
  struct CloseOrder {
    absl::Status why;
  };
  struct Order {
    ipam::SessionId session;
    std::variant<ipam::ToAgent, ReadOrder, CloseOrder> what;
  };

  void OnDeath() override;
  void Campaign();
  void BeginToLead();
  absl::Status Load();
  void KeepLease();
  absl::Duration Margin() const;
  bool HasSession(const NodeKey& node) const;
  void ListSoon();
  void WakeLoop(absl::Duration wait);
  void Turn();
  void Read(ipam::SessionId id, Stream& stream);
  void Dispatch(ipam::SessionId id, Stream& stream, const std::string& bytes);
  absl::Status Take(ipam::SessionId id, Stream& stream, const std::string& bytes);
  void Advance(ipam::SessionId id, Stream& stream);
  void CarryOut();
  void CarryOut(Order& order);
  node_api::ServerMessage Said(ipam::ToAgent message);
  void CheckAcknowledgement(Stream& stream, const node_api::ReportAck& ack);
  void OnStreamEnd(ipam::SessionId id);

  const ipam::ServerSettings settings_;
  const Edges edges_;
  const ipam::StreamGate::Rules rules_;
  os::SteadyClock clock_;
  TracedLog log_;
  ipam::Mailbox mailbox_;
  int64_t fence_ = 0;
  absl::Time renewed_ = absl::InfinitePast();
  std::unique_ptr<StoreClient> store_;
  std::unique_ptr<ipam::Cloud> cloud_;
  std::optional<ipam::StoreWitness> witness_;
  std::unique_ptr<ipam::FleetLoop> loop_;
  ipam::BundleMessages bundles_;
  std::map<ipam::SessionId, Stream> streams_;
  ipam::SessionId last_session_ = 0;
  std::vector<Order> orders_;
  absl::Time turn_at_ = absl::InfiniteFuture();
  uint64_t turn_ = 0;
};

}  // namespace spoke::sim
