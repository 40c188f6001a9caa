// The calls that look.
#include "ipam-server/admin/admin_service.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/admin/describe.h"
#include "ipam-server/admin/explain.h"
#include "ipam-server/budget/budget_query.h"
#include "ipam-server/history/history_query.h"
#include "ipam-server/operators/caller.h"
#include "ipam-server/policy/object_text.h"
#include "ipam-server/policy/objects/rollout.h"
#include "ipam-server/session/pod_traces.h"
#include "ipam-server/traffic/traffic_query.h"
#include "lib/base/status.h"
#include "lib/rpc/status.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kLoopPatience = absl::Seconds(10);
constexpr int kRowsPerMessage = 1000;
constexpr int kQuarantinedPerQuery = 512;
constexpr size_t kNamesPerQuery = 4096;  // The most names of nodes, in reservations.

const Session* SessionOf(const FleetView& view, const NodeKey& key) {
  const auto it = view.sessions.find(key);
  return it == view.sessions.end() ? nullptr : &it->second;
}

// How long the caller is ready to wait, and no longer than the loop may take.
absl::Duration PatienceOf(const grpc::ServerContext& context) {
  return std::clamp(absl::FromChrono(context.deadline()) - absl::Now(), absl::ZeroDuration(),
                    kLoopPatience);
}

}  // namespace

absl::Status AdminService::Ask(const Context& context, LoopQuery query) {
  return AskLoop(loop_, PatienceOf(context), std::move(query));
}

absl::Status AdminService::Do(const Context& context, ChangeSummary& summary, LoopChange change) {
  const absl::Time now = time_of_day_.Now();
  ASSIGN_OR_RETURN(const Operator who, CallerOf(context, now));
  std::optional<v1::OperatorRecord> record;
  RETURN_IF_ERROR(ChangeInLoop(loop_, PatienceOf(context),
                               [&](ServerState& state, RawRecords& raw) -> absl::StatusOr<Effects> {
                                 const uint64_t before = state.objects.version();
                                 ASSIGN_OR_RETURN(Effects effects, change(state, raw));
                                 if (summary.what.empty()) return effects;
                                 record = RecordOf(who, summary, now);
                                 record->set_policy_before(before);
                                 record->set_policy_after(state.objects.version());
                                 raw.insert_or_assign(operator_log_.Next(now),
                                                      record->SerializeAsString());
                                 return effects;
                               }));
  if (record) LogChange(*record);
  return absl::OkStatus();
}

void AdminService::LogChange(const v1::OperatorRecord& record) {
  events_.Info("operator_change", {{"who", record.who()},
                                   {"role", record.role()},
                                   {"from", record.from()},
                                   {"method", record.method()},
                                   {"what", record.what()},
                                   {"policy_before", record.policy_before()},
                                   {"policy_after", record.policy_after()}});
}

absl::StatusOr<AdminService::PreparedRecord> AdminService::PrepareRecord(
    const Context& context, const ChangeSummary& summary) {
  const absl::Time now = time_of_day_.Now();
  ASSIGN_OR_RETURN(const Operator who, CallerOf(context, now));
  PreparedRecord prepared{.record = RecordOf(who, summary, now), .put = {}};
  prepared.put = {.key = operator_log_.Next(now), .value = prepared.record.SerializeAsString()};
  return prepared;
}

absl::Status AdminService::AskForNodes(
    const Context& context, const std::function<void(const FleetView&, const NodeRecord&)>& visit) {
  return VisitNodes(loop_, PatienceOf(context), visit);
}

grpc::Status AdminService::GetStatus(Context* context, const v1::GetStatusRequest*,
                                     v1::GetStatusResponse* response) {
  response->set_version(about_.version);
  response->set_started_unix_ms(absl::ToUnixMillis(about_.started));
  response->set_store(about_.store);
  response->set_cloud(about_.cloud);
  if (const auto last = audit_.Last()) {
    response->set_last_audit_unix_ms(absl::ToUnixMillis(last->at));
    response->set_audit_differences(last->differences.size());
  }
  return rpc::ToGrpc(Ask(*context, [&](const FleetView& view) {
    const AddressCounts counts = CountAddresses(view.fleet.ledger);
    uint64_t usable = 0;
    uint64_t free = 0;
    for (const PoolEntry& entry : view.fleet.ledger.pools()) {
      usable += entry.pool.usable();
      free += entry.free();
    }
    response->set_nodes(view.fleet.ledger.nodes().size());
    response->set_nodes_connected(view.sessions.size());
    response->set_addresses_usable(usable);
    response->set_addresses_free(free);
    response->set_addresses_attached(counts.attached());
    response->set_addresses_in_use(counts.in_use);
    response->set_addresses_cooldown(counts.cooldown);
    response->set_addresses_attaching(counts.attaching);
    response->set_addresses_detaching(counts.detaching);
    response->set_addresses_quarantined(view.fleet.ledger.quarantine().entries.size());
    response->set_policy_version(view.state.objects.version());
    response->set_reservations(view.fleet.reservations.all().size());
    const BreakerState& breaker = view.fleet.breaker.state();
    if (breaker.freeze) response->set_releases_frozen(breaker.freeze->reason);
    for (const std::string& problem : view.problems) response->add_problems(problem);
  }));
}

grpc::Status AdminService::ListPools(Context* context, const v1::ListPoolsRequest* request,
                                     v1::ListPoolsResponse* response) {
  absl::Status status = Ask(*context, [&](const FleetView& view) {
    for (const PoolEntry& entry : view.fleet.ledger.pools()) {
      if (!request->name().empty() && request->name() != entry.pool.spec().name) continue;
      *response->add_pools() = DescribePool(view.fleet, entry);
    }
  });
  if (status.ok() && !request->name().empty() && response->pools().empty()) {
    status = absl::NotFoundError(
        fmt::format("there is no pool {}; see: spokectl pool list", request->name()));
  }
  return rpc::ToGrpc(status);
}

grpc::Status AdminService::ListNodes(Context* context, const v1::ListNodesRequest* request,
                                     Writer<v1::ListNodesResponse>* writer) {
  std::vector<v1::ListNodesResponse> batches(1);
  const absl::Status status =
      AskForNodes(*context, [&](const FleetView& view, const NodeRecord& record) {
        if (!request->name().empty() && request->name() != record.key.name) return;
        if (batches.back().nodes_size() >= kRowsPerMessage) batches.emplace_back();
        *batches.back().add_nodes() = DescribeNode(view.fleet, record, SessionOf(view, record.key),
                                                   view.cloud.ForecastOf(record.key));
      });
  if (!status.ok()) return rpc::ToGrpc(status);
  for (const v1::ListNodesResponse& batch : batches) writer->Write(batch);
  return grpc::Status::OK;
}

grpc::Status AdminService::GetNode(Context* context, const v1::GetNodeRequest* request,
                                   v1::GetNodeResponse* response) {
  absl::Status status = Ask(*context, [&](const FleetView& view) {
    const auto& nodes = view.fleet.ledger.nodes();
    const NodeRecord* present = FindByName(view.fleet.ledger, request->name());
    for (auto it = nodes.lower_bound({request->name(), ""});
         it != nodes.end() && it->first.name == request->name(); ++it) {
      if (present == nullptr) present = &it->second;
      if (&it->second == present) continue;
      *response->add_retired() = DescribeNode(view.fleet, it->second, SessionOf(view, it->first));
    }
    if (present == nullptr) return;
    *response->mutable_node() = DescribeNode(view.fleet, *present, SessionOf(view, present->key),
                                             view.cloud.ForecastOf(present->key));
    for (const auto& [base, configuration] : present->configurations) {
      for (size_t i = 0; i < configuration.slots.size(); ++i) {
        *response->add_addresses() =
            DescribeAddress(view.fleet, *present, configuration, configuration.AddressAt(i));
      }
    }
  });
  if (status.ok() && !response->has_node()) {
    status = absl::NotFoundError(
        fmt::format("there is no node {}; see: spokectl node list", request->name()));
  }
  return rpc::ToGrpc(status);
}

// Collects in the order of VisitNodes(); quarantined addresses that no node holds come last.
absl::Status AdminService::CollectAddresses(const Context& context,
                                            const v1::ListAddressesRequest& request,
                                            std::deque<v1::AddressInfo>& rows) {
  const auto add = [&](v1::AddressInfo info) {
    if (!request.node().empty() && request.node() != info.node()) return;
    if (!request.pool().empty() && request.pool() != info.pool()) return;
    if (!request.state().empty() && request.state() != info.state()) return;
    rows.push_back(std::move(info));
  };
  RETURN_IF_ERROR(AskForNodes(context, [&](const FleetView& view, const NodeRecord& record) {
    if (!request.node().empty() && request.node() != record.key.name) return;
    for (v1::AddressInfo& info : DescribeAddresses(view.fleet, record)) add(std::move(info));
  }));
  std::optional<ip::Address> last;
  for (bool more = true; more;) {
    RETURN_IF_ERROR(Ask(context, [&](const FleetView& view) {
      const auto& all = view.fleet.ledger.quarantine().entries;
      auto it = last ? all.upper_bound(*last) : all.begin();
      for (int i = 0; i < kQuarantinedPerQuery && it != all.end(); ++i, ++it) {
        last = it->first;
        if (HolderOf(view.fleet.ledger, it->first) != nullptr)
          continue;  // It is listed with its node.
        if (auto info = DescribeAddress(view.fleet, it->first)) add(*std::move(info));
      }
      more = it != all.end();
    }));
  }
  return absl::OkStatus();
}

grpc::Status AdminService::ListAddresses(Context* context, const v1::ListAddressesRequest* request,
                                         Writer<v1::ListAddressesResponse>* writer) {
  std::deque<v1::AddressInfo> rows;
  const absl::Status status = CollectAddresses(*context, *request, rows);
  if (!status.ok()) return rpc::ToGrpc(status);
  v1::ListAddressesResponse batch;
  for (const size_t row : RowsByAddress(rows)) {
    *batch.add_addresses() = std::move(rows[row]);
    if (batch.addresses_size() < kRowsPerMessage) continue;
    writer->Write(batch);
    batch.Clear();
  }
  if (batch.addresses_size() > 0) writer->Write(batch);
  return grpc::Status::OK;
}

absl::Status AdminService::Describe(const Context& context, const ip::Address& address,
                                    v1::AddressInfo* response) {
  std::optional<v1::AddressInfo> info;
  RETURN_IF_ERROR(
      Ask(context, [&](const FleetView& view) { info = DescribeAddress(view.fleet, address); }));
  if (!info) {
    return absl::NotFoundError(
        fmt::format("{} is in none of the pools; see: spokectl pool list", address.ToString()));
  }
  *response = *std::move(info);
  return absl::OkStatus();
}

grpc::Status AdminService::GetAddress(Context* context, const v1::GetAddressRequest* request,
                                      v1::AddressInfo* response) {
  const auto address = ip::Address::Parse(request->address());
  if (!address.ok()) return rpc::ToGrpc(address.status());
  return rpc::ToGrpc(Describe(*context, *address, response));
}

grpc::Status AdminService::GetAddressHistory(Context*, const v1::GetAddressHistoryRequest* request,
                                             v1::GetAddressHistoryResponse* response) {
  return rpc::ToGrpc(QueryHistory(store_, *request, *response));
}

grpc::Status AdminService::ListReservations(Context* context, const v1::ListReservationsRequest*,
                                            v1::ListReservationsResponse* response) {
  absl::Status status;
  std::string last;
  for (bool more = true; more && status.ok();) {
    status = Ask(*context, [&](const FleetView& view) {
      const auto& all = view.fleet.reservations.all();
      auto it = all.upper_bound(last);
      for (size_t names = 0; names < kNamesPerQuery && it != all.end(); ++it) {
        names += 1 + it->second.missing.size();
        *response->add_reservations() = DescribeReservation(it->second);
        last = it->first;
      }
      more = it != all.end();
    });
  }
  return rpc::ToGrpc(status);
}

// The text is written here, on the caller's thread: the loop only hands out the set.
grpc::Status AdminService::GetObjects(Context* context, const v1::GetObjectsRequest* request,
                                      v1::GetObjectsResponse* response) {
  ObjectSet set;
  std::vector<PolicyObject> configured;
  const absl::Status status = Ask(*context, [&](const FleetView& view) {
    set = view.state.objects;
    configured = view.state.configured;
  });
  if (!status.ok()) return rpc::ToGrpc(status);
  const auto add = [&](const PolicyObject& object) {
    if (!request->kind().empty() && request->kind() != object.key.kind) return;
    if (!request->name().empty() && request->name() != object.key.name) return;
    v1::PolicyObjectInfo& info = *response->add_objects();
    info.set_kind(object.key.kind);
    info.set_name(object.key.name);
    info.set_yaml(ObjectYaml(object));
    info.set_json(ObjectJson(object));
    info.set_version(object.version);
    info.set_changed_unix_ms(absl::ToUnixMillis(object.changed));
  };
  response->set_policy_version(set.version());
  for (const PolicyObject& object : configured) add(object);
  for (const auto& [key, object] : set.objects()) add(*object);
  if (!request->name().empty() && response->objects().empty()) {
    return rpc::ToGrpc(
        absl::NotFoundError(fmt::format("there is no {} \"{}\"; see: spokectl get {}",
                                        request->kind(), request->name(), request->kind())));
  }
  return grpc::Status::OK;
}

grpc::Status AdminService::GetRollout(Context* context, const v1::GetRolloutRequest*,
                                      v1::GetRolloutResponse* response) {
  std::vector<NodePolicy> nodes;
  std::vector<v1::NodeInfo> infos;
  uint64_t version = 0;
  const absl::Status status =
      AskForNodes(*context, [&](const FleetView& view, const NodeRecord& record) {
        version = view.state.bundles.version();
        if (record.mode == NodeMode::kRetired) return;
        const Session* session = SessionOf(view, record.key);
        nodes.push_back({.node = record.key.name,
                         .connected = session != nullptr,
                         .acked = session == nullptr ? 0 : session->policy_acked,
                         .error = session == nullptr ? "" : session->policy_error,
                         .held = session != nullptr && session->policy_held,
                         .cut = session == nullptr ? node_api::CutCount() : session->policy_cut});
        v1::NodeInfo& info = infos.emplace_back();
        info.set_name(record.key.name);
        info.set_vm_id(record.key.vm_id);
        info.set_connected(session != nullptr);
        if (session == nullptr) return;
        info.set_policy_version(session->policy_acked);
        info.set_policy_error(session->policy_error);
      });
  if (!status.ok()) return rpc::ToGrpc(status);
  const Rollout rollout = SummarizeRollout(version, nodes);
  response->set_version(rollout.version);
  response->set_nodes(rollout.nodes);
  response->set_nodes_current(rollout.current);
  response->set_nodes_refused(rollout.refused);
  response->set_nodes_away(rollout.away);
  response->set_nodes_held(rollout.held);
  response->set_connections(rollout.done.connections);
  response->set_connections_cut(rollout.done.cut);
  response->set_held_connections(rollout.waiting.connections);
  response->set_held_connections_cut(rollout.waiting.cut);
  for (const size_t index : rollout.behind) *response->add_behind() = infos[index];
  return grpc::Status::OK;
}

grpc::Status AdminService::ListOperatorLog(Context* context,
                                           const v1::ListOperatorLogRequest* request,
                                           v1::ListOperatorLogResponse* response) {
  uint64_t version = 0;
  absl::Status status =
      Ask(*context, [&](const FleetView& view) { version = view.state.objects.version(); });
  if (status.ok()) status = QueryOperatorLog(store_, *request, version, *response);
  return rpc::ToGrpc(status);
}

grpc::Status AdminService::Explain(Context* context, const v1::ExplainRequest* request,
                                   v1::ExplainResponse* response) {
  absl::Status found;
  absl::Status status = Ask(*context, [&](const FleetView& view) {
    auto explained = ExplainSubject(view, *request);
    found = explained.status();
    if (explained.ok()) *response = *std::move(explained);
  });
  status.Update(found);
  if (status.ok() && !request->pod().empty()) {
    // Agents have half of the time, so that one that does not answer costs nothing known here.
    AddPodTraces(loop_, store_, PatienceOf(*context) / 2, *request, *response);
  }
  return rpc::ToGrpc(status);
}

grpc::Status AdminService::WhatIf(Context* context, const v1::WhatIfRequest* request,
                                  v1::WhatIfResponse* response) {
  absl::Status judged;
  absl::Status status = Ask(*context, [&](const FleetView& view) {
    auto answer = JudgeScaleUp(view.fleet, *request);
    judged = answer.status();
    if (answer.ok()) *response = *std::move(answer);
  });
  status.Update(judged);
  return rpc::ToGrpc(status);
}

grpc::Status AdminService::GetTop(Context* context, const v1::GetTopRequest* request,
                                  v1::GetTopResponse* response) {
  TopUsers top;
  LoopRates rates;
  const absl::Status status =
      AskForNodes(*context, [&](const FleetView& view, const NodeRecord& record) {
        top.Add(record);
        rates = view.rates;
      });
  if (status.ok()) *response = top.Describe(request->limit() == 0 ? 20 : request->limit());
  response->set_assignments_per_second(rates.assignments);
  response->set_releases_per_second(rates.releases);
  response->set_commits_per_second(rates.commits);
  return rpc::ToGrpc(status);
}

grpc::Status AdminService::GetTraffic(Context*, const v1::GetTrafficRequest* request,
                                      v1::GetTrafficResponse* response) {
  absl::StatusOr<v1::GetTrafficResponse> answer = absl::UnknownError("not asked");
  traffic_.Look(
      [&](const TrafficSums& sums, absl::Time now) { answer = QueryTraffic(sums, now, *request); });
  if (!answer.ok()) return rpc::ToGrpc(answer.status());
  *response = *std::move(answer);
  return grpc::Status::OK;
}

grpc::Status AdminService::GetBudgets(Context*, const v1::GetBudgetsRequest* request,
                                      v1::GetBudgetsResponse* response) {
  std::vector<std::pair<std::string, NodeBudgetStanding>> nodes;
  if (!request->name().empty() && !request->team().empty()) {
    nodes = budgets_.NodesOf(request->name(), request->team());
  }
  auto answer = QueryBudgets(budgets_.Standings(), std::move(nodes), *request);
  if (!answer.ok()) return rpc::ToGrpc(answer.status());
  *response = *std::move(answer);
  return grpc::Status::OK;
}

}  // namespace spoke::ipam
