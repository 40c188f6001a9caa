#include "tests/sim/server.h"

#include <algorithm>
#include <utility>

#include "ipam-server/audit/audit_repair.h"
#include "lib/base/status.h"
#include "lib/base/version.h"
#include "lib/node_api/messages.h"
#include "tests/sim/budget_load.h"

namespace spoke::sim {
namespace {

// How long a message waits for the loop's turn, at most; the loop sleeps so long if all is quiet.
constexpr absl::Duration kTurn = absl::Microseconds(300);
constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kQuiet = absl::Seconds(1);
// How long after the last message the loop may have something to do that nobody says.
constexpr absl::Duration kBusy = absl::Milliseconds(300);

node_api::ServerMessage Said(ipam::BundleMessages& bundles, ipam::ToAgent message) {
  return std::visit(
      [&](auto&& said) -> node_api::ServerMessage {
        using Said = std::decay_t<decltype(said)>;
        if constexpr (std::is_same_v<Said, ipam::BundleUpdate>) {
          return node_api::PolicyUpdate{.bundle = bundles.Get(said.from, said.to),
                                        .max_cut_permille = said.max_cut_permille};
        } else if constexpr (std::is_same_v<Said, ipam::BundleTrial>) {
          return node_api::PolicyTrial{.id = said.id, .policy = bundles.Get(nullptr, said.policy)};
        } else {
          return std::forward<decltype(said)>(said);
        }
      },
      std::move(message));
}

}  // namespace

Server::Server(const Edges& edges, uint64_t term, const MachineClock& clock,
               ipam::StoreWitness witness)
    : edges_(edges),
      term_(term),
      clock_(clock),
      log_(edges.index, edges.trace),
      store_({edges.disks, life_, edges.store_faults, edges.random, edges.trace}, term),
      witness_(std::move(witness)),
      rules_{.server_version = base::kVersion, .check_peer_name = false},
      budgets_(clock_),
      cloud_(edges.provider.Connect(
          {.life = life_,
           .random = edges.random,
           .clock = clock_,
           .write_margin = edges.write_margin},
          [this, post = ipam::AnswersTo(mailbox_)](const ipam::NodeKey& node,
                                                   absl::StatusOr<ipam::NicAddresses> result) {
            post(node, std::move(result));
            Wake();
          })),
      next_turn_(edges.schedule.now()),
      busy_until_(edges.schedule.now() + kBusy),
      next_listing_(edges.schedule.now() + absl::Seconds(60)) {}

Server::~Server() {
  life_.Die();
  cloud_->Stop();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Edges& edges,
                                                      const ipam::ServerSettings& settings,
                                                      uint64_t term, const MachineClock& clock) {
  ASSIGN_OR_RETURN(ipam::StoreWitness witness,
                   ipam::StoreWitness::Open(edges.witness_directory, edges.boot_id, edges.keys));
  std::unique_ptr<Server> server(new Server(edges, term, clock, std::move(witness)));
  ASSIGN_OR_RETURN(ipam::LoadedState loaded,
                   ipam::LoadState(server->store_, settings, server->clock_.Now()));
  if (edges.shares_budget) {
    server->budgets_.SetBudgets({SharedBudget()});
    server->Grant();
  }
  server->loop_ = std::make_unique<ipam::FleetLoop>(
      settings, std::move(loaded),
      ipam::FleetLoop::Edges{
          .store = server->store_,
          .agents = *server,
          .cloud = *server->cloud_,
          .mailbox = server->mailbox_,
          .clock = server->clock_,
          .log = server->log_,
          .witness = &server->witness_,
          .on_node_gone = [budgets = &server->budgets_](
                              const ipam::NodeKey& node) { budgets->OnNodeGone(node); },
          .on_known_nodes =
              [budgets = &server->budgets_](const auto& nodes) { budgets->ExpectNodes(nodes); }});
  server->loop_->Begin();
  return server;
}

void Server::Wake() {
  busy_until_ = edges_.schedule.now() + kBusy;
  next_turn_ = std::min(next_turn_, edges_.schedule.now() + kTurn);
}

void Server::Turn() {
  if (life_.dead()) return;
  if (edges_.schedule.now() >= next_listing_) List();
  const size_t waited = mailbox_.waiting_agents() + mailbox_.waiting_hellos();
  loop_->RunOnce(absl::ZeroDuration());
  const absl::Time now = edges_.schedule.now();
  // While nothing can be stored, the loop takes nothing of what agents say.
  const size_t left = mailbox_.waiting_agents() + mailbox_.waiting_hellos();
  const bool waits = left > 0 && left < waited;
  next_turn_ = now + (waits ? kTurn : now < busy_until_ ? kTick : kQuiet);
}

// The thread of budgets, once a second.
void Server::Grant() {
  edges_.schedule.After(ipam::BudgetBook::kTick, [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired() || life_.dead()) return;
    if (edges_.schedule.now() >= life_.still_until()) budgets_.Decide(*this, log_);
    Grant();
  });
}

// As AuditJob does it: one at a time, and a pause after each. Two pictures of before a machine came
// would say that it is gone.
void Server::List() {
  next_listing_ = absl::InfiniteFuture();
  cloud_->List([this](ipam::CloudListing listing) {
    next_listing_ = edges_.schedule.now() + cloud_->listing_period();
    if (listing.ok()) {
      loop_->PostListing(*std::move(listing),
                         [this](const std::string& instance) { return cloud_->Covers(instance); });
    } else {
      loop_->PostListingFailed(listing.status());
    }
    Wake();
  });
}

void Server::AuditAndRepair(absl::Duration patience, std::function<void(size_t)> done) {
  cloud_->List([this, patience, done = std::move(done)](ipam::CloudListing listing) {
    const auto snapshot = std::make_shared<ipam::AuditSnapshot>();
    Look([&](const ipam::FleetView& view) {
      for (const auto& entry : view.fleet.ledger.pools()) snapshot->Add(entry);
      for (const auto& [key, record] : view.fleet.ledger.nodes()) {
        snapshot->Add(record, view.fleet.ledger.quarantine());
      }
    });
    if (listing.ok()) snapshot->listing = *std::move(listing);
    loop_->PostAskInventories([snapshot](const ipam::NodeKey& key, node_api::Inventory inventory) {
      snapshot->inventories.insert_or_assign(key, std::move(inventory));
    });
    Wake();
    edges_.schedule.After(patience, [this, alive = std::weak_ptr(alive_), snapshot, done] {
      if (!alive.expired() && !life_.dead()) Repair(*snapshot, done);
    });
  });
}

void Server::Repair(ipam::AuditSnapshot& snapshot, const std::function<void(size_t)>& done) {
  const auto differences = ipam::Audit(snapshot.Finish(), {}, clock_.Now());
  const auto repaired = std::make_shared<size_t>(0);
  for (const ipam::AuditDifference& difference : differences) {
    if (difference.repair == ipam::AuditRepair::kNone) continue;
    Change([this, difference, repaired, compared = ipam::ComparedOf(difference, snapshot)](
               ipam::ServerState& state, ipam::RawRecords&) -> absl::StatusOr<ipam::Effects> {
      auto effects = ipam::Repair(state.fleet, difference, compared, clock_.Now());
      *repaired += effects ? 1 : 0;
      return effects ? *std::move(effects) : ipam::Effects();
    });
  }
  loop_->PostQuery([repaired, done](const ipam::FleetView&) { done(*repaired); });
  Wake();
}

void Server::Change(ipam::LoopChange change, std::function<void(const absl::Status&)> done) {
  loop_->PostChange(std::move(change), [done = std::move(done)](const absl::Status& status) {
    if (done) done(status);
  });
  Wake();
}

void Server::Look(const std::function<void(const ipam::FleetView&)>& query) {
  loop_->PostQuery(query);
  Turn();
}

// --- Streams. ---

Server::Stream* Server::Find(StreamId stream) {
  const auto it = streams_.find(stream);
  return it == streams_.end() ? nullptr : it->second.get();
}

void Server::Opened(StreamId stream) {
  streams_.try_emplace(stream, std::make_unique<Stream>(rules_));
}

void Server::Hear(StreamId id, v1::AgentMessage message) {
  Stream* const stream = Find(id);
  if (stream == nullptr) return;
  stream->unread.push_back(std::move(message));
  ReadSome(id);
}

void Server::ReadSome(StreamId id) {
  while (true) {
    Stream* const found = Find(id);
    if (found == nullptr || life_.dead()) return;
    Stream& stream = *found;
    if (!stream.reads || stream.ended || stream.unread.empty()) return;
    const v1::AgentMessage message = std::move(stream.unread.front());
    stream.unread.pop_front();
    const auto posted = Dispatch(id, stream, message);
    if (!posted.ok()) return Refuse(id, stream, posted.status());
    stream.reads = !*posted;
  }
}

// What the edge of gRPC does with a message. Returns whether the loop has it now.
absl::StatusOr<bool> Server::Dispatch(StreamId id, Stream& stream,
                                      const v1::AgentMessage& message) {
  RETURN_IF_ERROR(stream.gate.CheckOrder(message.message_case() == v1::AgentMessage::kHello));
  ASSIGN_OR_RETURN(std::optional<node_api::AgentMessage> said, node_api::FromWire(message));
  if (!said) return false;
  if (auto* hello = std::get_if<node_api::Hello>(&*said)) {
    ASSIGN_OR_RETURN(const bool proved, stream.gate.Admit(*hello));
    edges_.watcher.OnHeard(*stream.gate.node(), *said);
    loop_->PostHello(id, std::move(*hello), proved);
    Wake();
    return true;
  }
  edges_.watcher.OnHeard(*stream.gate.node(), *said);
  const auto post = [&](ipam::AgentEvent event) {
    loop_->PostFromAgent(std::move(event));
    Wake();
  };
  if (auto* report = std::get_if<node_api::AssignmentReport>(&*said)) {
    post(ipam::ReportEvent{id, std::move(*report)});
  } else if (const auto* ack = std::get_if<node_api::DesiredAck>(&*said)) {
    post(ipam::DesiredAckEvent{id, ack->version});
  } else if (auto* answer = std::get_if<node_api::ReclaimAnswer>(&*said)) {
    post(ipam::ReclaimAnswerEvent{id, std::move(*answer)});
  } else if (auto* policy = std::get_if<node_api::PolicyAck>(&*said)) {
    post(ipam::PolicyAckEvent{id, std::move(*policy)});
  } else if (auto* inventory = std::get_if<node_api::Inventory>(&*said)) {
    post(ipam::InventoryEvent{id, std::move(*inventory)});
  } else if (const auto* conflict = std::get_if<node_api::ConflictReport>(&*said)) {
    post(ipam::ConflictEvent{id, *conflict});
  } else if (auto* demand = std::get_if<node_api::Demand>(&*said)) {
    post(ipam::DemandEvent{id, std::move(*demand)});
  } else if (auto* maintenance = std::get_if<node_api::Maintenance>(&*said)) {
    post(ipam::MaintenanceEvent{id, std::move(*maintenance)});
  } else if (const auto* budget = std::get_if<node_api::BudgetReport>(&*said)) {
    budgets_.OnReport(*stream.gate.node(), id, *budget);
    return false;
  } else {
    return false;  // What changes nothing that is stored does not reach the loop.
  }
  return true;
}

void Server::Refuse(StreamId id, Stream& stream, const absl::Status& why) {
  edges_.trace.Say("server {} refuses a message: {}", edges_.index, base::MessageOf(why));
  stream.ended = true;
  loop_->PostClosed(id, std::string(base::MessageOf(why)));
  edges_.network.EndOfServer(id, why);
  Wake();
}

void Server::Ended(StreamId id) {
  const auto stream = streams_.extract(id);
  if (stream.empty()) return;
  loop_->PostClosed(id);
  const auto& node = stream.mapped()->gate.node();
  if (node) budgets_.OnStreamEnd(*node, id);
  if (!stream.mapped()->ended) edges_.network.EndOfServer(id, absl::OkStatus());
  Wake();
}

void Server::EndStreams() {
  std::vector<StreamId> open;
  for (const auto& [id, stream] : streams_) {
    if (!std::exchange(stream->ended, true)) open.push_back(id);
  }
  std::sort(open.begin(), open.end());  // The same order each time: the network draws lots.
  for (const StreamId id : open) {
    edges_.network.EndOfServer(id, absl::UnavailableError("another server may lead"));
  }
}

void Server::Send(ipam::SessionId session, ipam::ToAgent message) {
  const Stream* const stream = Find(session);
  if (stream == nullptr || stream->ended || !life_.Acts()) return;
  edges_.watcher.OnTold(*stream->gate.node(), message);
  if (auto* welcome = std::get_if<node_api::Welcome>(&message)) {
    welcome->server_version = base::kVersion;
  }
  edges_.network.FromServer(session, node_api::ToWire(Said(bundles_, std::move(message))));
}

void Server::ReadNext(ipam::SessionId session) {
  Stream* const stream = Find(session);
  if (stream == nullptr || life_.dead()) return;
  stream->reads = true;
  // The edge reads on its own thread, and so after the turn.
  edges_.schedule.After(absl::ZeroDuration(), [this, session, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) ReadSome(session);
  });
}

void Server::Close(ipam::SessionId session, absl::Status why) {
  Stream* const stream = Find(session);
  if (stream == nullptr || stream->ended || !life_.Acts()) return;
  stream->ended = true;
  edges_.trace.Say("server {} closes a stream of {}: {}", edges_.index,
                   stream->gate.node() ? stream->gate.node()->name : "?", base::MessageOf(why));
  edges_.network.EndOfServer(session, std::move(why));
}

}  // namespace spoke::sim
