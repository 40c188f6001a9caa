// While the store may be older than what nodes were told: see ledger/recovery.h.
#include <algorithm>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/quarantine.h"
#include "ipam-server/loop/fleet_loop.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

// How often the mark beside the store is replaced, at most.
constexpr absl::Duration kMarkPeriod = absl::Seconds(1);

}  // namespace

void FleetLoop::FindWithAddresses() {
  with_addresses_.clear();
  for (const auto& [key, record] : state_.fleet.ledger.nodes()) {
    if (HasAddresses(record)) with_addresses_.insert(key);
  }
}

// By what was stored: to count all nodes once a second costs more than that in a large fleet.
void FleetLoop::UpdateWithAddresses(const std::set<NodeKey>& changed) {
  for (const NodeKey& key : changed) {
    const NodeRecord* record = state_.fleet.ledger.Find(key);
    if (record != nullptr && HasAddresses(*record)) {
      with_addresses_.insert(key);
    } else {
      with_addresses_.erase(key);
    }
  }
}

// A mark that cannot be written only makes the next start ask nodes.
void FleetLoop::RememberMark(absl::Time now, bool at_once) {
  if (edges_.witness == nullptr || !state_.recovery.open()) return;
  if (state_.recovery.state().epoch == epoch_remembered_) return;
  const absl::Duration passed = now - mark_remembered_;
  if (!at_once && passed >= absl::ZeroDuration() && passed < kMarkPeriod) return;
  mark_remembered_ = now;
  epoch_remembered_ = state_.recovery.state().epoch;
  const absl::Status status =
      edges_.witness->Remember(state_.recovery.Mark(with_addresses_.size()));
  SetProblem("mark", status.ok() ? std::string()
                                 : fmt::format("the mark beside the store cannot be written: {}",
                                               base::MessageOf(status)));
}

// Returns true if the node is not let in, since what it was told cannot be verified.
bool FleetLoop::IsRefused(const HelloEvent& event, Batch& batch) {
  const node_api::Hello& hello = event.hello;
  Recovery& recovery = state_.recovery;
  if (edges_.witness == nullptr) return false;
  if (hello.store_token.empty()) {
    recovery.Accept(hello.node.node_name);  // Another machine may have the name by now.
    return false;
  }
  const absl::StatusOr<StoreMark> shown = edges_.witness->Verify(hello.store_token);
  if (shown.ok()) {
    recovery.Accept(hello.node.node_name);
    if (recovery.OnMark(*shown, batch.now)) BeginRecovery(batch);
    return false;
  }
  const bool known = recovery.refused().contains(hello.node.node_name);
  if (!recovery.Refuse(hello.node.node_name, std::string(base::MessageOf(shown.status())),
                       batch.now)) {
    return false;
  }
  if (!known) {
    edges_.log.Error("node_token_refused",
                     {{"node", hello.node.node_name}, {"error", shown.status()}});
  }
  HoldClaims(state_.fleet, hello, batch.effects, batch.now);
  if (edges_.metrics != nullptr) edges_.metrics->CountHello(HelloOutcome::kRefused);
  edges_.agents.Close(event.session,
                      absl::FailedPreconditionError(fmt::format(
                          "the server cannot verify what this node was told of its store: {}",
                          base::MessageOf(shown.status()))));
  return true;
}

void FleetLoop::BeginRecovery(Batch& batch) {
  state_.fleet.hold.active = true;
  batch.effects.recovery = true;
  for (auto& [key, session] : sessions_) AskInventory(session, batch);
}

void FleetLoop::AskInventory(Session& session, Batch& batch) {
  batch.answers.emplace_back(session.id, node_api::InventoryRequest{++session.last_request});
}

// Looks at one node that it waits for in each turn, and at all only once that one has spoken.
void FleetLoop::TryToOpen(Batch& batch) {
  const Recovery& recovery = state_.recovery;
  if (recovery.open() || recovery.IsEarly(batch.now)) return;
  const NodeRecord* const awaited = state_.fleet.ledger.Find(awaited_);
  if (awaited != nullptr && HasAddresses(*awaited) && recovery.WaitsFor(awaited_, batch.now))
    return;
  const std::vector<NodeKey> known = NodesWithAddresses(state_.fleet.ledger);
  if (recovery.MayOpen(known, batch.now)) {
    FindUnheard();
    batch.effects.Merge(EndRecovery(state_, batch.now));
    return;
  }
  const auto next = std::find_if(known.begin(), known.end(), [&](const NodeKey& node) {
    return recovery.WaitsFor(node, batch.now);
  });
  if (next != known.end()) awaited_ = *next;
}

// Those that have nothing here, too: they may have been told since.
void FleetLoop::FindUnheard() {
  for (const auto& [key, record] : state_.fleet.ledger.nodes()) {
    if (!state_.recovery.spoken().contains(key) && !sessions_.contains(key)) unheard_.insert(key);
  }
}

// What a store that was behind knows of are not all that nodes may hold.
void FleetLoop::TellKnownNodes() {
  const Recovery& recovery = state_.recovery;
  if (known_told_ || !edges_.on_known_nodes) return;
  known_told_ = recovery.open() || recovery.phase() == Recovery::Phase::kRecovering;
  if (!recovery.open()) return;
  std::vector<NodeKey> known;
  for (const auto& [key, record] : state_.fleet.ledger.nodes()) known.push_back(key);
  edges_.on_known_nodes(known);
}

// Says so when it begins, and when it is over.
void FleetLoop::TellRecovery(absl::Time now) {
  TellKnownNodes();
  state_.recovery.ForgetRefused(now);
  const Recovery& recovery = state_.recovery;
  const bool under_way = problems_by_topic_.contains("recovery");
  if (under_way == recovery.open()) {
    if (edges_.metrics != nullptr) edges_.metrics->SetRecovery(!recovery.open());
    if (recovery.open()) {
      edges_.log.Info("recovery_over", {{"nodes", recovery.spoken().size()}});
    } else {
      edges_.log.Error("recovery_began", {{"reason", recovery.Reason()}});
    }
  }
  SetProblem("recovery",
             recovery.open()
                 ? std::string()
                 : fmt::format("no node gets or gives back an address: {}. See: spokectl recovery "
                               "show",
                               recovery.Reason()));
  const size_t refused = recovery.refused().size();
  SetProblem("tokens",
             refused == 0
                 ? std::string()
                 : fmt::format("{} nodes are refused, {} among them, since what they show was not "
                               "signed by this server's key. See: spokectl recovery show",
                               refused, recovery.refused().begin()->first));
}

void FleetLoop::GreetAnew(const NodeKey& node, const std::string& reason) {
  const auto session = sessions_.find(node);
  if (session == sessions_.end()) return;
  const SessionId id = session->second.id;
  const absl::Status why = absl::AbortedError(reason);
  EndSession(id, NodeKey(node), why);
  edges_.agents.Close(id, why);
}

void FleetLoop::BeginCloud() {
  const absl::Status begun = edges_.cloud.Begin(AllNics(state_.fleet));
  cloud_begun_ = begun.ok();
  SetProblem("cloud", begun.ok()
                          ? std::string()
                          : fmt::format("nothing can be attached: {}", base::MessageOf(begun)));
}

}  // namespace spoke::ipam
