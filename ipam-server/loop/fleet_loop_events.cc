// What each event does.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/conflict.h"
#include "ipam-server/ledger/decisions/hello.h"
#include "ipam-server/ledger/decisions/inventory.h"
#include "ipam-server/ledger/decisions/nic.h"
#include "ipam-server/ledger/decisions/reclaim.h"
#include "ipam-server/ledger/decisions/report.h"
#include "ipam-server/loop/fleet_loop.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kCloudRetryDelay = absl::Seconds(5);
// Addresses in two places that are told one by one.
constexpr size_t kDoubledShown = 8;

}  // namespace

void FleetLoop::Handle(HelloEvent event, Batch& batch) {
  if (IsRefused(event, batch) || IsNotItself(event, batch)) return;
  if (edges_.metrics != nullptr) edges_.metrics->CountHello(HelloOutcome::kAdmitted);
  const NodeKey key = KeyOf(event.hello);
  const bool forgot = event.hello.store_token.empty() && state_.fleet.ledger.Find(key) != nullptr;
  batch.effects.Merge(OnHello(state_.fleet, event.hello, batch.now, event.instance_proved));
  std::string warning = EndOlderSessions(key, batch.now);
  Session& session = sessions_[key];
  session = Session{.id = event.session,
                    .policy_acked = event.hello.policy_version,
                    .agent_version = event.hello.node.agent_version,
                    .boot_id = event.hello.node.boot_id,
                    .own_addresses = event.hello.nic.addresses,
                    .nic_mtu = event.hello.nic.mtu,
                    .last_seen = batch.now};
  nodes_by_session_[event.session] = key;
  if (unheard_.erase(key) > 0) batch.effects.attach.insert(key);
  batch.effects.desired.insert(key);
  policy_waiting_.insert(key);
  batch.answers.emplace_back(
      event.session,
      node_api::Welcome{.session_epoch = state_.fleet.ledger.Find(key)->session_epoch,
                        .warning = std::move(warning),
                        .reconnect_within = ReconnectWithin(state_.fleet.ledger.nodes().size())});
  if (state_.recovery.phase() == Recovery::Phase::kRecovering) {
    AskInventory(session, batch);
  } else if (!state_.recovery.open() && forgot) {
    state_.recovery.OnForgotten(key);
  } else if (!state_.recovery.open()) {
    state_.recovery.OnSpoken(key);
  }
  batch.read_next.push_back(event.session);
  edges_.log.Info("agent_connected", {{"node", key.name},
                                      {"vm", key.vm_id},
                                      {"version", event.hello.node.agent_version},
                                      {"in_use", event.hello.in_use.size()}});
}

// The session of an agent that has just said something; nullptr: it is over.
Session* FleetLoop::TouchSession(SessionId session, Batch& batch) {
  const NodeKey* key = NodeOf(session);
  if (key == nullptr) return nullptr;
  Session& found = sessions_.at(*key);
  found.last_seen = batch.now;
  batch.read_next.push_back(session);
  return &found;
}

void FleetLoop::Handle(ReportEvent event, Batch& batch) {
  if (TouchSession(event.session, batch) == nullptr) return;
  counters_.assignments += event.report.in_use.size();
  counters_.releases += event.report.released.size();
  Effects effects = OnReport(state_.fleet, *NodeOf(event.session), event.report, batch.now);
  if (edges_.metrics != nullptr) {
    edges_.metrics->CountReport(event.report.in_use.size(), event.report.released.size());
    if (!effects.Stores()) edges_.metrics->CountStale();
  }
  batch.effects.Merge(std::move(effects));
  batch.answers.emplace_back(event.session, node_api::ReportAck{.sequence = event.report.sequence});
}

void FleetLoop::Handle(DesiredAckEvent event, Batch& batch) {
  Session* session = TouchSession(event.session, batch);
  if (session == nullptr) return;
  session->acked_version =
      std::max(session->acked_version, std::min(event.version, session->desired_version));
}

void FleetLoop::Handle(ReclaimAnswerEvent event, Batch& batch) {
  Session* session = TouchSession(event.session, batch);
  // Only an answer to what was asked in this session counts: the agent may have assigned it again.
  if (session == nullptr || session->reclaim_pending != event.answer.id) return;
  session->reclaim_pending = 0;
  // What it was not told of meanwhile, and has not given up, it is told of now.
  const std::vector<ip::Prefix> asked = std::exchange(session->reclaim_asked, {});
  if (!std::includes(session->told.begin(), session->told.end(), asked.begin(), asked.end())) {
    batch.effects.desired.insert(*NodeOf(event.session));
  }
  batch.answered.push_back(*NodeOf(event.session));
  if (edges_.metrics != nullptr) {
    edges_.metrics->CountReclaim(ReclaimOutcome::kAgreed, event.answer.agreed.size());
    edges_.metrics->CountReclaim(ReclaimOutcome::kDenied, event.answer.denied.size());
  }
  batch.effects.Merge(
      OnReclaimAnswer(state_.fleet, *NodeOf(event.session), event.answer, batch.now));
}

void FleetLoop::Handle(PolicyAckEvent event, Batch& batch) {
  Session* session = TouchSession(event.session, batch);
  if (session == nullptr || event.ack.version != session->policy_sent) return;
  node_api::PolicyAck& ack = event.ack;
  if (!ack.error.empty() && session->policy_error != ack.error) {
    const std::string& node = NodeOf(event.session)->name;
    const uint64_t version = ack.version;
    if (ack.held) {
      edges_.log.Warn("policy_held", {{"node", node}, {"version", version}, {"error", ack.error}});
    } else {
      edges_.log.Warn("policy_refused",
                      {{"node", node}, {"version", version}, {"error", ack.error}});
    }
  }
  session->policy_error = std::move(ack.error);
  session->policy_held = ack.held && !session->policy_error.empty();
  session->policy_cut = ack.cut.value_or(node_api::CutCount());
  if (session->policy_error.empty()) session->policy_acked = ack.version;
  // An operator has spoken while the agent counted.
  if (session->policy_held && session->policy_limited && ack.version == state_.cuts_accepted) {
    SendPolicyAnew(*NodeOf(event.session), *session);
  }
}

void FleetLoop::Handle(InventoryEvent event, Batch& batch) {
  if (TouchSession(event.session, batch) == nullptr) return;
  if (state_.recovery.phase() == Recovery::Phase::kRecovering) {
    const NodeKey& key = *NodeOf(event.session);
    batch.effects.Merge(OnInventory(state_.fleet, key, event.inventory, batch.now));
    state_.recovery.OnSpoken(key);
  }
  if (on_inventory_) on_inventory_(*NodeOf(event.session), std::move(event.inventory));
}

void FleetLoop::Handle(AskInventoriesEvent event, Batch& /*batch*/) {
  on_inventory_ = std::move(event.on_inventory);
  for (auto& [key, session] : sessions_) {
    edges_.agents.Send(session.id, node_api::InventoryRequest{++session.last_request});
  }
}

void FleetLoop::Handle(ConflictEvent event, Batch& batch) {
  if (TouchSession(event.session, batch) == nullptr) return;
  const std::optional<ip::MacAddress>& mac = event.conflict.other_mac;
  batch.effects.Merge(OnConflict(state_.fleet, *NodeOf(event.session), event.conflict.address,
                                 mac ? mac->ToString() : "", batch.now));
}

void FleetLoop::Handle(ClosedEvent event, Batch& /*batch*/) {
  if (!event.refused.empty()) edges_.log.Warn("agent_refused", {{"error", event.refused}});
  const auto it = nodes_by_session_.find(event.session);
  if (it == nodes_by_session_.end()) return;
  edges_.log.Info("agent_disconnected", {{"node", it->second.name}, {"vm", it->second.vm_id}});
  EndSession(event.session, NodeKey(it->second), absl::UnavailableError("the connection ended"));
}

void FleetLoop::Handle(CloudEvent event, Batch& batch) {
  const std::string topic = CloudTopicOf(event.node);
  if (const auto asked = cloud_asked_.extract(event.node);
      edges_.metrics != nullptr && !asked.empty()) {
    edges_.metrics->CountCloudCall(CloudCall::kApply, event.result.status(),
                                   batch.now - asked.mapped());
  }
  if (!event.result.ok() && !NeedsCloud(event.node)) return;
  if (!event.result.ok()) {
    cloud_retries_[event.node] = batch.now + kCloudRetryDelay;
    if (!problems_by_topic_.contains(topic)) {
      edges_.log.Warn("cloud_apply_failed",
                      {{"node", event.node.name}, {"error", event.result.status()}});
    }
    SetProblem(topic, fmt::format("attaching addresses to node {} fails: {}", event.node.name,
                                  base::MessageOf(event.result.status())));
    return;
  }
  SetProblem(topic, "");
  batch.effects.Merge(OnNic(state_.fleet, event.node, event.result->configurations, batch.now));
}

void FleetLoop::Handle(ChangeEvent event, Batch& batch) {
  if (!writable_) {
    const auto why = problems_by_topic_.find("store");
    event.done(absl::UnavailableError(why == problems_by_topic_.end() ? "nothing can be stored now"
                                                                      : why->second));
    return;
  }
  const uint64_t policy_before = state_.bundles.version();
  const uint64_t cuts_before = state_.cuts_accepted;
  absl::StatusOr<Effects> effects = event.change(state_, batch.raw);
  if (!effects.ok()) {
    event.done(effects.status());
    return;
  }
  if (effects->desired.size() > kToldPerTurn) {
    tell_waiting_.merge(std::exchange(effects->desired, {}));
  }
  batch.effects.Merge(*std::move(effects));
  batch.done.push_back(std::move(event.done));
  if (state_.cuts_accepted != cuts_before) {
    for (auto& [key, session] : sessions_) {
      if (!session.policy_held || session.policy_sent != state_.cuts_accepted) continue;
      SendPolicyAnew(key, session);
    }
  }
  if (state_.bundles.version() == policy_before) return;
  for (const auto& [key, session] : sessions_) policy_waiting_.insert(key);
}

void FleetLoop::SendPolicyAnew(const NodeKey& node, Session& session) {
  session.policy_sent = 0;
  policy_waiting_.insert(node);
}

void FleetLoop::SendPolicy(const NodeKey& node, Session& session) {
  const NodeRecord* record = state_.fleet.ledger.Find(node);
  if (record == nullptr) return;
  auto bundle = state_.bundles.For(record->labels);
  if (session.policy_acked == bundle->version || session.policy_sent == bundle->version) return;
  auto known = state_.bundles.KnownTo(session.policy_acked, record->labels);
  session.policy_sent = bundle->version;
  std::optional<uint32_t> limit;
  if (state_.cuts_accepted != bundle->version) limit = settings_.max_cut_permille;
  session.policy_limited = limit.has_value();
  edges_.agents.Send(
      session.id,
      BundleUpdate{.from = std::move(known), .to = std::move(bundle), .max_cut_permille = limit});
}

void FleetLoop::LogFindings(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    const auto write = [&](telemetry::Level level, std::string_view event) {
      // Some concern a node as a whole, or all of them.
      if (finding.address == ip::Address()) {
        edges_.log.Write(level, event, {{"node", finding.node.name}, {"detail", finding.detail}});
        return;
      }
      edges_.log.Write(level, event,
                       {{"node", finding.node.name},
                        {"address", finding.address.ToString()},
                        {"detail", finding.detail}});
    };
    switch (finding.kind) {
      case Finding::Kind::kAdopted:
        write(telemetry::Level::kWarn, "address_adopted");
        break;
      case Finding::Kind::kRefused:
        write(telemetry::Level::kError, "address_refused");
        break;
      case Finding::Kind::kHeldElsewhere:
        write(telemetry::Level::kError, "address_conflict");
        break;
      case Finding::Kind::kForeign:
        write(telemetry::Level::kWarn, "address_foreign");
        break;
      case Finding::Kind::kConflict:
        write(telemetry::Level::kError, "address_doubled");
        break;
      case Finding::Kind::kRenamed:
        write(telemetry::Level::kWarn, "node_renamed");
        break;
      case Finding::Kind::kReplaced:
        write(telemetry::Level::kWarn, "node_replaced");
        break;
      case Finding::Kind::kForced:
        write(telemetry::Level::kWarn, "address_forced");
        break;
      case Finding::Kind::kDisplaced:
        write(telemetry::Level::kError, "node_displaced");
        break;
      case Finding::Kind::kGone:
        write(telemetry::Level::kWarn, "node_gone");
        break;
      case Finding::Kind::kFrozen:
        write(telemetry::Level::kError, "releases_frozen");
        break;
      case Finding::Kind::kLost:
        write(telemetry::Level::kError, "address_lost");
        break;
      case Finding::Kind::kUnusable:
        write(telemetry::Level::kError, "address_unusable");
        break;
    }
  }
}

// A problem for each of the first, in the order of addresses, and one for the others.
void FleetLoop::TellDoubled() {
  const std::map<ip::Address, DoubledAddress>& doubled = state_.fleet.doubled;
  if (doubled.empty() && doubled_told_.empty()) return;
  std::set<ip::Address> told;
  for (const auto& [address, two] : doubled) {
    if (told.size() == kDoubledShown) break;
    told.insert(address);
    const std::string text = address.ToString();
    SetProblem("doubled " + text, fmt::format("{} is in two places: {}. Delete the pod that uses "
                                              "it on one of them; see: spokectl explain ip {}",
                                              text, two.holders, text));
  }
  for (const ip::Address& address : doubled_told_) {
    if (!told.contains(address)) SetProblem("doubled " + address.ToString(), "");
  }
  const size_t others = doubled.size() - told.size();
  SetProblem("doubled", others == 0 ? std::string()
                                    : fmt::format("{} more addresses are in two places: the log "
                                                  "names them (address_doubled, address_conflict)",
                                                  others));
  doubled_told_ = std::move(told);
}

}  // namespace spoke::ipam
