#include "tests/sim/server.h"

#include <algorithm>
#include <utility>

#include "ipam-server/loop/server_state.h"
#include "lib/base/fnv1a.h"
#include "lib/base/status.h"
#include "lib/base/version.h"
#include "lib/node_api/messages.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::sim {
namespace {

constexpr absl::Duration kLease = absl::Seconds(3);
constexpr absl::Duration kRenewal = absl::Milliseconds(500);
constexpr absl::Duration kLongestTurnPause = absl::Seconds(1);

}  // namespace

ServerProcess::ServerProcess(const ipam::ServerSettings& settings, Edges edges)
    : Process(edges.basis, edges.machine, edges.machine.name()),
      settings_(settings),
      edges_(std::move(edges)),
      rules_{.server_version = base::kVersion},
      clock_(machine_.time_of_day(), machine_.uptime()),
      log_(basis_.trace, who()) {}

ServerProcess::~ServerProcess() {
  // The kernel closes what a process had open.
  for (auto& [id, stream] : streams_) {
    stream.connection->Close(Connection::kServer, absl::UnavailableError("the connection ended"));
  }
}

void ServerProcess::OnDeath() { edges_.on_death(); }

void ServerProcess::Start() {
  if (!edges_.database.fenced) return BeginToLead();
  After(basis_.random.Between(absl::Milliseconds(100), absl::Milliseconds(400)),
        [this] { Campaign(); });
}

// --- Leading. ---

void ServerProcess::Campaign() {
  Database& database = edges_.database;
  const absl::Time now = basis_.schedule.now();
  const bool free =
      database.leader.empty() || database.lease_ends < now || edges_.has_ended(database.leader);
  if (!free || !edges_.reaches_store()) {
    After(basis_.random.Between(absl::Milliseconds(50), absl::Milliseconds(300)),
          [this] { Campaign(); });
    return;
  }
  if (database.fence > 0) basis_.Happened(Fault::kTakeover, who());
  fence_ = ++database.fence;
  database.leader = who();
  database.lease_ends = now + kLease;
  renewed_ = now;
  KeepLease();
  After(basis_.random.Between(absl::Milliseconds(20), absl::Milliseconds(400)),
        [this] { BeginToLead(); });
}

void ServerProcess::BeginToLead() {
  basis_.trace.Tell(who(), "begins to lead under fence {}", fence_);
  if (const absl::Status loaded = Load(); !loaded.ok()) {
    basis_.trace.Tell(who(), "cannot begin: {}", loaded.ToString());
    Kill();
  }
}

absl::Status ServerProcess::Load() {
  store_ = std::make_unique<StoreClient>(
      StoreClient::Edges{.basis = basis_,
                         .process = *this,
                         .database = edges_.database,
                         .reachable = edges_.reaches_store,
                         .on_lost =
                             [this] {
                               // It still does what it is at, for as long as it takes to end.
                               After(basis_.random.Between(absl::ZeroDuration(), absl::Seconds(1)),
                                     [this] { Kill(); });
                             }},
      fence_);
  ASSIGN_OR_RETURN(ipam::LoadedState loaded, ipam::LoadState(*store_, settings_, clock_.Now()));
  ASSIGN_OR_RETURN(witness_, edges_.open_witness());
  cloud_ = edges_.fabric.NewClient(
      {.process = *this,
       .margin = [this] { return Margin(); },
       .clock = [this] { return clock_.Now(); },
       .has_session = [this](const NodeKey& node) { return HasSession(node); },
       .answer =
           [this, answer = ipam::AnswersTo(mailbox_)](const NodeKey& node,
                                                      absl::StatusOr<ipam::NicAddresses> result) {
             answer(node, std::move(result));
             WakeLoop(absl::ZeroDuration());
           }});
  loop_ = std::make_unique<ipam::FleetLoop>(
      settings_, std::move(loaded),
      ipam::FleetLoop::Edges{
          .store = *store_,
          .agents = *this,
          .cloud = *cloud_,
          .mailbox = mailbox_,
          .clock = clock_,
          .log = log_,
          .witness = basis_.Has(Mutant::kWitnessForgotten) ? nullptr : &*witness_});
  loop_->Begin();
  WakeLoop(absl::ZeroDuration());
  ListSoon();
  return absl::OkStatus();
}

bool ServerProcess::HasSession(const NodeKey& node) const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [&](const auto& entry) { return entry.second.gate.node() == node; });
}

void ServerProcess::KeepLease() {
  Database& database = edges_.database;
  const absl::Time now = basis_.schedule.now();
  if (edges_.reaches_store()) {
    if (database.fence != fence_ || database.lease_ends < now) {
      basis_.trace.Tell(who(), "finds that it leads no more");
      if (!basis_.Has(Mutant::kStoreWithoutFence)) return Kill();
    } else {
      database.lease_ends = now + kLease;
      renewed_ = now;
    }
  }
  CarryOut();
  After(kRenewal, [this] { KeepLease(); });
}

absl::Duration ServerProcess::Margin() const {
  if (!edges_.database.fenced) return absl::InfiniteDuration();
  return renewed_ + kLease - basis_.schedule.now();
}

void ServerProcess::ListSoon() {
  After(cloud_->listing_period(), [this] {
    cloud_->List([this](ipam::CloudListing listing) {
      if (!listing.ok()) return;
      if (basis_.Has(Mutant::kOneListingIsEnough)) {
        After(absl::Seconds(3), [this, nics = *listing] {
          loop_->PostListing(nics, [](const std::string&) { return true; });
          WakeLoop(absl::ZeroDuration());
        });
      }
      loop_->PostListing(*std::move(listing),
                         [this](const std::string& instance) { return cloud_->Covers(instance); });
      WakeLoop(absl::ZeroDuration());
    });
    ListSoon();
  });
}

// --- The loop's turns. ---

void ServerProcess::WakeLoop(absl::Duration wait) {
  const absl::Time at = basis_.schedule.now() + wait;
  if (at >= turn_at_) return;
  turn_at_ = at;
  After(wait, [this, turn = ++turn_] {
    if (turn == turn_) Turn();
  });
}

void ServerProcess::Turn() {
  turn_at_ = absl::InfiniteFuture();
  if (!loop_->RunOnce(absl::ZeroDuration())) return;
  // A turn takes some time itself.
  const absl::Duration patience = machine_.uptime().TrueWait(loop_->Patience(kLongestTurnPause));
  WakeLoop(
      std::max(patience, basis_.random.Between(absl::Microseconds(200), absl::Milliseconds(3))));
}

void ServerProcess::Operate(Change change, std::function<void(const absl::Status&)> done) {
  if (!leads()) return;
  loop_->PostChange(
      [this, change = std::move(change)](ipam::ServerState& state, ipam::RawRecords&) {
        return change(state, clock_.Now());
      },
      std::move(done));
  WakeLoop(absl::ZeroDuration());
}

void ServerProcess::Query(std::function<void(const ipam::FleetView&)> query) {
  if (!leads()) return;
  loop_->PostQuery(std::move(query));
  WakeLoop(absl::ZeroDuration());
}

void ServerProcess::AskInventories(ipam::InventorySink sink) {
  if (!leads()) return;
  loop_->PostAskInventories(std::move(sink));
  WakeLoop(absl::ZeroDuration());
}

// --- Streams. ---

void ServerProcess::Accept(const std::shared_ptr<Connection>& connection, const std::string& name) {
  const ipam::SessionId id = ++last_session_;
  streams_.try_emplace(id, rules_, name, connection);
  connection->Listen(
      Connection::kServer,
      {.on_message =
           [this, id](const std::string& bytes) {
             Enter([this, id, bytes] {
               const auto stream = streams_.find(id);
               if (stream == streams_.end()) return;
               stream->second.unread.push_back(bytes);
               Read(id, stream->second);
             });
           },
       .on_end = [this, id](const absl::Status&) { Enter([this, id] { OnStreamEnd(id); }); }});
}

void ServerProcess::OnStreamEnd(ipam::SessionId id) {
  const auto stream = streams_.extract(id);
  if (stream.empty() || !leads()) return;
  stream.mapped().connection->Close(Connection::kServer, absl::OkStatus());
  loop_->PostClosed(id);
  WakeLoop(absl::ZeroDuration());
}

// One message of a stream is at the loop at a time.
void ServerProcess::Read(ipam::SessionId id, Stream& stream) {
  while (stream.reading && !stream.unread.empty() && !stream.writes.has_ended()) {
    stream.reading = false;
    const std::string bytes = std::move(stream.unread.front());
    stream.unread.pop_front();
    Dispatch(id, stream, bytes);
  }
}

void ServerProcess::Dispatch(ipam::SessionId id, Stream& stream, const std::string& bytes) {
  const absl::Status taken = Take(id, stream, bytes);
  if (!taken.ok()) {
    loop_->PostClosed(id, std::string(base::MessageOf(taken)));
    stream.writes.End(taken);
    Advance(id, stream);
  }
  WakeLoop(absl::ZeroDuration());
}

absl::Status ServerProcess::Take(ipam::SessionId id, Stream& stream, const std::string& bytes) {
  v1::AgentMessage wire;
  if (!wire.ParseFromString(bytes)) return absl::InvalidArgumentError("not a message");
  RETURN_IF_ERROR(stream.gate.CheckOrder(wire.has_hello()));
  ASSIGN_OR_RETURN(auto message, node_api::FromWire(wire));
  if (!message) {
    stream.reading = true;
    return absl::OkStatus();
  }
  if (auto* hello = std::get_if<node_api::Hello>(&*message)) {
    ASSIGN_OR_RETURN(const bool proved, stream.gate.Admit(*hello));
    loop_->PostHello(id, std::move(*hello), proved);
    return absl::OkStatus();
  }
  if (auto* report = std::get_if<node_api::AssignmentReport>(&*message)) {
    if (basis_.Has(Mutant::kReportsLost) && basis_.random.Below(8) == 0) {
      *report = {.sequence = report->sequence};
    } else {
      stream.reports.push_back(*report);
    }
    if (basis_.Has(Mutant::kReleasesReportedFirst)) {
      loop_->PostFromAgent(ipam::ReportEvent{id, {.released = std::move(report->released)}});
      report->released.clear();
    }
  }
  if (auto* answer = std::get_if<node_api::ReclaimAnswer>(&*message);
      answer != nullptr && basis_.Has(Mutant::kDenialTakenForAgreement)) {
    answer->agreed.insert(answer->agreed.end(), answer->denied.begin(), answer->denied.end());
    answer->denied.clear();
  }
  auto event = ipam::EventOf(id, *std::move(message));
  if (event) {
    loop_->PostFromAgent(*std::move(event));
  } else {
    stream.reading = true;
  }
  return absl::OkStatus();
}

void ServerProcess::Advance(ipam::SessionId id, Stream& stream) {
  using Act = ipam::StreamWrites<std::string>::Act;
  while (true) {
    switch (stream.writes.Next()) {
      case Act::kNothing:
        return;
      case Act::kWrite:
        stream.connection->Send(Connection::kServer, stream.writes.front());
        stream.writes.OnWritten(true);
        break;
      case Act::kFinish:
        stream.connection->Close(Connection::kServer, stream.writes.why());
        After(absl::ZeroDuration(), [this, id] {
          streams_.erase(id);
          loop_->PostClosed(id);
          WakeLoop(absl::ZeroDuration());
        });
        return;
    }
  }
}

// --- What the loop says. ---

void ServerProcess::Send(ipam::SessionId session, ipam::ToAgent message) {
  const auto* request = std::get_if<node_api::ReclaimRequest>(&message);
  if (request != nullptr && basis_.Has(Mutant::kReclaimWithoutAgreement)) {
    loop_->PostFromAgent(ipam::ReclaimAnswerEvent{session, {request->id, request->ranges, {}}});
  }
  orders_.push_back({session, std::move(message)});
  if (orders_.size() > 1) return;
  const bool slow = basis_.random.Chance(0.01);
  After(basis_.random.Between(absl::ZeroDuration(),
                              slow ? absl::Milliseconds(300) : absl::Milliseconds(1)),
        [this] { CarryOut(); });
}

void ServerProcess::ReadNext(ipam::SessionId session) {
  orders_.push_back({session, ReadOrder{}});
  if (orders_.size() == 1) After(absl::Microseconds(50), [this] { CarryOut(); });
}

void ServerProcess::Close(ipam::SessionId session, absl::Status why) {
  orders_.push_back({session, CloseOrder{std::move(why)}});
  if (orders_.size() == 1) After(absl::Microseconds(50), [this] { CarryOut(); });
}

void ServerProcess::CarryOut() {
  std::vector<Order> orders = std::exchange(orders_, {});
  const bool may_lead = Margin() > absl::ZeroDuration() || basis_.Has(Mutant::kMarginZero);
  if (!may_lead) {
    for (auto& [id, stream] : streams_) {
      if (stream.writes.has_ended()) continue;
      stream.writes.Abort(absl::UnavailableError("another server may lead: ask the next"));
      Advance(id, stream);
    }
    return;
  }
  for (Order& order : orders) CarryOut(order);
}

void ServerProcess::CarryOut(Order& order) {
  const auto found = streams_.find(order.session);
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  if (auto* message = std::get_if<ipam::ToAgent>(&order.what)) {
    if (const auto* ack = std::get_if<node_api::ReportAck>(message)) {
      CheckAcknowledgement(stream, *ack);
    }
    const v1::ServerMessage wire = node_api::ToWire(Said(std::move(*message)));
    std::string bytes = wire.SerializeAsString();
    basis_.trace.Tell(who(), "to {}: {} bytes of kind {}, {:016x}",
                      stream.gate.node() ? stream.gate.node()->name : "?", bytes.size(),
                      static_cast<int>(wire.message_case()), base::Fnv1a(bytes));
    stream.writes.Push(std::move(bytes));
  } else if (auto* close = std::get_if<CloseOrder>(&order.what)) {
    stream.writes.End(std::move(close->why));
  } else {
    stream.reading = true;
    Read(order.session, stream);
  }
  Advance(order.session, stream);
}

node_api::ServerMessage ServerProcess::Said(ipam::ToAgent message) {
  return std::visit(
      [this](auto&& said) -> node_api::ServerMessage {
        using Type = std::decay_t<decltype(said)>;
        if constexpr (std::is_same_v<Type, ipam::BundleUpdate>) {
          return node_api::PolicyUpdate{.bundle = bundles_.Get(said.from, said.to),
                                        .max_cut_permille = said.max_cut_permille};
        } else if constexpr (std::is_same_v<Type, ipam::BundleTrial>) {
          return node_api::PolicyTrial{.id = said.id, .policy = bundles_.Get(nullptr, said.policy)};
        } else {
          if constexpr (std::is_same_v<Type, node_api::Welcome>) {
            said.server_version = base::kVersion;
          }
          return std::move(said);
        }
      },
      std::move(message));
}

// What is acknowledged has to be in the store by now.
void ServerProcess::CheckAcknowledgement(Stream& stream, const node_api::ReportAck& ack) {
  while (!stream.reports.empty() && stream.reports.front().sequence <= ack.sequence) {
    basis_.judge.Acknowledged(*stream.gate.node(), stream.reports.front());
    stream.reports.pop_front();
  }
}

}  // namespace spoke::sim
