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
#include "ipam-server/policy/kind.h"
#include "ipam-server/policy/object_text.h"
#include "ipam-server/policy/objects/rollout.h"
#include "ipam-server/session/pod_traces.h"
#include "ipam-server/traffic/traffic_history.h"
#include "ipam-server/traffic/traffic_query.h"
#include "lib/base/status.h"
#include "lib/node_api/traffic_classes.h"

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
  return AskLoop(edges_.loop, PatienceOf(context), std::move(query));
}

absl::Status AdminService::Do(const Context& context, ChangeSummary& summary, LoopChange change) {
  const absl::Time now = edges_.time_of_day.Now();
  ASSIGN_OR_RETURN(const Operator who, CallerOf(context, now));
  std::optional<v1::OperatorRecord> record;
  RETURN_IF_ERROR(ChangeInLoop(edges_.loop, PatienceOf(context),
                               [&](ServerState& state, RawRecords& raw) -> absl::StatusOr<Effects> {
                                 const uint64_t before = state.objects.version();
                                 ASSIGN_OR_RETURN(Effects effects, change(state, raw));
                                 if (summary.what.empty()) return effects;
                                 record = RecordOf(who, summary, now);
                                 record->set_policy_before(before);
                                 record->set_policy_after(state.objects.version());
                                 raw.insert_or_assign(edges_.operator_log.Next(now),
                                                      record->SerializeAsString());
                                 return effects;
                               }));
  if (record) LogChange(*record);
  return absl::OkStatus();
}

void AdminService::LogChange(const v1::OperatorRecord& record) {
  edges_.events.Info("operator_change", {{"who", record.who()},
                                         {"role", record.role()},
                                         {"from", record.from()},
                                         {"method", record.method()},
                                         {"what", record.what()},
                                         {"policy_before", record.policy_before()},
                                         {"policy_after", record.policy_after()}});
}

absl::StatusOr<AdminService::PreparedRecord> AdminService::PrepareRecord(
    const Context& context, const ChangeSummary& summary) {
  const absl::Time now = edges_.time_of_day.Now();
  ASSIGN_OR_RETURN(const Operator who, CallerOf(context, now));
  PreparedRecord prepared{.record = RecordOf(who, summary, now), .put = {}};
  prepared.put = {.key = edges_.operator_log.Next(now),
                  .value = prepared.record.SerializeAsString()};
  return prepared;
}

absl::Status AdminService::AskForNodes(
    const Context& context, const std::function<void(const FleetView&, const NodeRecord&)>& visit) {
  return VisitNodes(edges_.loop, PatienceOf(context), visit);
}

absl::Status AdminService::GetStatus(const Context& context, const v1::GetStatusRequest&,
                                     v1::GetStatusResponse& response) {
  response.set_version(about_.version);
  response.set_started_unix_ms(absl::ToUnixMillis(about_.started));
  response.set_store(about_.store);
  response.set_cloud(about_.cloud);
  if (const auto last = edges_.audit.Last()) {
    response.set_last_audit_unix_ms(absl::ToUnixMillis(last->at));
    response.set_audit_differences(last->differences.size());
    response.set_audit_cloud_error(std::string(base::MessageOf(last->cloud)));
  }
  return Ask(context, [&](const FleetView& view) {
    const AddressCounts counts = CountAddresses(view.fleet.ledger);
    DescribeFamilies(view.fleet, response);
    response.set_nodes(view.fleet.ledger.nodes().size());
    response.set_nodes_connected(view.sessions.size());
    response.set_addresses_usable(response.ipv4().usable() + response.ipv6().usable());
    response.set_addresses_free(response.ipv4().free() + response.ipv6().free());
    response.set_addresses_attached(counts.attached());
    response.set_addresses_in_use(counts.in_use);
    response.set_addresses_cooldown(counts.cooldown);
    response.set_addresses_attaching(counts.attaching);
    response.set_addresses_detaching(counts.detaching);
    response.set_addresses_quarantined(view.fleet.ledger.quarantine().entries.size());
    for (const auto& [key, demand] : view.fleet.demands) {
      if (demand.said.pods() == 0) continue;
      response.set_pods_waiting(response.pods_waiting() + demand.said.pods());
      response.set_nodes_waiting(response.nodes_waiting() + 1);
    }
    response.set_policy_version(view.state.objects.version());
    response.set_reservations(view.fleet.reservations.all().size());
    const BreakerState& breaker = view.fleet.breaker.state();
    if (breaker.freeze) response.set_releases_frozen(breaker.freeze->reason);
    for (const auto& [topic, problem] : view.problems) response.add_problems(problem);
  });
}

absl::Status AdminService::ListPools(const Context& context, const v1::ListPoolsRequest& request,
                                     v1::ListPoolsResponse& response) {
  RETURN_IF_ERROR(Ask(context, [&](const FleetView& view) {
    for (const PoolEntry& entry : view.fleet.ledger.pools()) {
      if (!request.name().empty() && request.name() != entry.pool.spec().name) continue;
      *response.add_pools() = DescribePool(view.fleet, entry);
    }
  }));
  if (request.name().empty() || !response.pools().empty()) return absl::OkStatus();
  return absl::NotFoundError(
      fmt::format("there is no pool {}; see: spokectl pool list", request.name()));
}

absl::Status AdminService::ListNodes(const Context& context, const v1::ListNodesRequest& request,
                                     Writer<v1::ListNodesResponse>& writer) {
  std::vector<v1::ListNodesResponse> batches(1);
  RETURN_IF_ERROR(AskForNodes(context, [&](const FleetView& view, const NodeRecord& record) {
    if (!request.name().empty() && request.name() != record.key.name) return;
    if (batches.back().nodes_size() >= kRowsPerMessage) batches.emplace_back();
    *batches.back().add_nodes() = DescribeNode(view, record);
  }));
  for (const v1::ListNodesResponse& batch : batches) writer.Write(batch);
  return absl::OkStatus();
}

absl::Status AdminService::GetNode(const Context& context, const v1::GetNodeRequest& request,
                                   v1::GetNodeResponse& response) {
  RETURN_IF_ERROR(Ask(context, [&](const FleetView& view) {
    const auto& nodes = view.fleet.ledger.nodes();
    const NodeRecord* present = FindByName(view.fleet.ledger, request.name());
    for (auto it = nodes.lower_bound({request.name(), ""});
         it != nodes.end() && it->first.name == request.name(); ++it) {
      if (present == nullptr) present = &it->second;
      if (&it->second == present) continue;
      *response.add_retired() = DescribeNode(view, it->second);
    }
    if (present == nullptr) return;
    *response.mutable_node() = DescribeNode(view, *present);
    for (const auto& [base, configuration] : present->configurations) {
      for (size_t i = 0; i < configuration.slots.size(); ++i) {
        *response.add_addresses() =
            DescribeAddress(view.fleet, *present, configuration, configuration.AddressAt(i));
      }
    }
  }));
  if (response.has_node()) return absl::OkStatus();
  return absl::NotFoundError(
      fmt::format("there is no node {}; see: spokectl node list", request.name()));
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

// A name that is none must not look like a list that is empty.
absl::Status AdminService::CheckFilters(const Context& context,
                                        const v1::ListAddressesRequest& request) {
  bool has_node = request.node().empty();
  bool has_pool = request.pool().empty();
  RETURN_IF_ERROR(Ask(context, [&](const FleetView& view) {
    const auto& nodes = view.fleet.ledger.nodes();
    const auto node = nodes.lower_bound({request.node(), ""});
    has_node = has_node || (node != nodes.end() && node->first.name == request.node());
    for (const PoolEntry& entry : view.fleet.ledger.pools()) {
      has_pool = has_pool || entry.pool.spec().name == request.pool();
    }
  }));
  if (!has_node) {
    return absl::NotFoundError(
        fmt::format("there is no node {}; see: spokectl node list", request.node()));
  }
  if (has_pool) return absl::OkStatus();
  return absl::NotFoundError(
      fmt::format("there is no pool {}; see: spokectl pool list", request.pool()));
}

absl::Status AdminService::ListAddresses(const Context& context,
                                         const v1::ListAddressesRequest& request,
                                         Writer<v1::ListAddressesResponse>& writer) {
  std::deque<v1::AddressInfo> rows;
  RETURN_IF_ERROR(CheckFilters(context, request));
  RETURN_IF_ERROR(CollectAddresses(context, request, rows));
  v1::ListAddressesResponse batch;
  for (const size_t row : RowsByAddress(rows)) {
    *batch.add_addresses() = std::move(rows[row]);
    if (batch.addresses_size() < kRowsPerMessage) continue;
    writer.Write(batch);
    batch.Clear();
  }
  if (batch.addresses_size() > 0) writer.Write(batch);
  return absl::OkStatus();
}

absl::Status AdminService::Describe(const Context& context, const ip::Address& address,
                                    v1::AddressInfo& response) {
  std::optional<v1::AddressInfo> info;
  RETURN_IF_ERROR(Ask(context, [&](const FleetView& view) {
    info = DescribeAddress(view.fleet, address);
    if (!info || info->state() != "free") return;
    if (const NodeKey* node = OwnAddressOf(view, address); node != nullptr) {
      info->set_state("excluded");
      info->set_note(fmt::format("the own address of node {}, and for no pod", node->name));
    }
  }));
  if (!info) {
    return absl::NotFoundError(
        fmt::format("{} is in none of the pools; see: spokectl pool list", address.ToString()));
  }
  response = *std::move(info);
  return absl::OkStatus();
}

absl::Status AdminService::GetAddress(const Context& context, const v1::GetAddressRequest& request,
                                      v1::AddressInfo& response) {
  ASSIGN_OR_RETURN(const auto address, ip::Address::Parse(request.address()));
  return Describe(context, address, response);
}

absl::Status AdminService::GetAddressHistory(const Context&,
                                             const v1::GetAddressHistoryRequest& request,
                                             v1::GetAddressHistoryResponse& response) {
  return QueryHistory(edges_.store, request, response);
}

absl::Status AdminService::ListReservations(const Context& context,
                                            const v1::ListReservationsRequest&,
                                            v1::ListReservationsResponse& response) {
  std::string last;
  for (bool more = true; more;) {
    RETURN_IF_ERROR(Ask(context, [&](const FleetView& view) {
      const auto& all = view.fleet.reservations.all();
      auto it = all.upper_bound(last);
      for (size_t names = 0; names < kNamesPerQuery && it != all.end(); ++it) {
        names += 1 + it->second.missing.size();
        *response.add_reservations() = DescribeReservation(it->second);
        last = it->first;
      }
      more = it != all.end();
    }));
  }
  return absl::OkStatus();
}

// The text is written here, on the caller's thread: the loop only hands out the set.
absl::Status AdminService::GetObjects(const Context& context, const v1::GetObjectsRequest& request,
                                      v1::GetObjectsResponse& response) {
  ObjectSet set;
  std::vector<PolicyObject> configured;
  RETURN_IF_ERROR(Ask(context, [&](const FleetView& view) {
    set = view.state.objects;
    configured = view.state.configured;
  }));
  const auto add = [&](const PolicyObject& object) {
    if (!request.kind().empty() && request.kind() != object.key.kind) return;
    if (!request.name().empty() && request.name() != object.key.name) return;
    v1::PolicyObjectInfo& info = *response.add_objects();
    info.set_kind(object.key.kind);
    info.set_name(object.key.name);
    info.set_yaml(ObjectYaml(object));
    info.set_json(ObjectJson(object));
    info.set_version(object.version);
    info.set_changed_unix_ms(absl::ToUnixMillis(object.changed));
  };
  response.set_policy_version(set.version());
  if (!request.kind().empty() && FindKind(request.kind()) == nullptr) {
    return absl::NotFoundError(
        fmt::format("there is no kind \"{}\"; the kinds are {}", request.kind(), KnownKinds()));
  }
  for (const PolicyObject& object : configured) add(object);
  for (const auto& [key, object] : set.objects()) add(*object);
  if (!request.name().empty() && response.objects().empty()) {
    return absl::NotFoundError(fmt::format("there is no {} \"{}\"; see: spokectl get {}",
                                           request.kind(), request.name(), request.kind()));
  }
  return absl::OkStatus();
}

absl::Status AdminService::GetRollout(const Context& context, const v1::GetRolloutRequest&,
                                      v1::GetRolloutResponse& response) {
  std::vector<NodePolicy> nodes;
  std::vector<v1::NodeInfo> infos;
  uint64_t version = 0;
  RETURN_IF_ERROR(AskForNodes(context, [&](const FleetView& view, const NodeRecord& record) {
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
  }));
  const Rollout rollout = SummarizeRollout(version, nodes);
  response.set_version(rollout.version);
  response.set_nodes(rollout.nodes);
  response.set_nodes_current(rollout.current);
  response.set_nodes_refused(rollout.refused);
  response.set_nodes_away(rollout.away);
  response.set_nodes_held(rollout.held);
  response.set_connections(rollout.done.connections);
  response.set_connections_cut(rollout.done.cut);
  response.set_held_connections(rollout.waiting.connections);
  response.set_held_connections_cut(rollout.waiting.cut);
  for (const size_t index : rollout.behind) *response.add_behind() = infos[index];
  return absl::OkStatus();
}

absl::Status AdminService::ListOperatorLog(const Context& context,
                                           const v1::ListOperatorLogRequest& request,
                                           v1::ListOperatorLogResponse& response) {
  uint64_t version = 0;
  RETURN_IF_ERROR(
      Ask(context, [&](const FleetView& view) { version = view.state.objects.version(); }));
  return QueryOperatorLog(edges_.store, request, version, response);
}

absl::Status AdminService::Explain(const Context& context, const v1::ExplainRequest& request,
                                   v1::ExplainResponse& response) {
  absl::StatusOr<v1::ExplainResponse> explained;
  RETURN_IF_ERROR(
      Ask(context, [&](const FleetView& view) { explained = ExplainSubject(view, request); }));
  ASSIGN_OR_RETURN(response, std::move(explained));
  if (!request.pod().empty()) {
    // Agents have half of the time, so that one that does not answer costs nothing known here.
    AddPodTraces(edges_.loop, edges_.store, PatienceOf(context) / 2, request, response);
  }
  return absl::OkStatus();
}

absl::Status AdminService::WhatIf(const Context& context, const v1::WhatIfRequest& request,
                                  v1::WhatIfResponse& response) {
  absl::StatusOr<v1::WhatIfResponse> judged;
  RETURN_IF_ERROR(
      Ask(context, [&](const FleetView& view) { judged = JudgeScaleUp(view, request); }));
  ASSIGN_OR_RETURN(response, std::move(judged));
  return absl::OkStatus();
}

absl::Status AdminService::GetTop(const Context& context, const v1::GetTopRequest& request,
                                  v1::GetTopResponse& response) {
  TopUsers top;
  LoopRates rates;
  RETURN_IF_ERROR(AskForNodes(context, [&](const FleetView& view, const NodeRecord& record) {
    top.Add(record);
    rates = view.rates;
  }));
  response = top.Describe(request.limit() == 0 ? 20 : request.limit());
  response.set_assignments_per_second(rates.assignments);
  response.set_releases_per_second(rates.releases);
  response.set_commits_per_second(rates.commits);
  return absl::OkStatus();
}

absl::Status AdminService::GetTraffic(const Context&, const v1::GetTrafficRequest& request,
                                      v1::GetTrafficResponse& response) {
  absl::StatusOr<v1::GetTrafficResponse> answer;
  edges_.traffic.Look(
      [&](const TrafficSums& sums, absl::Time now) { answer = QueryTraffic(sums, now, request); });
  ASSIGN_OR_RETURN(response, std::move(answer));
  return absl::OkStatus();
}

absl::Status AdminService::GetTrafficCourse(const Context&,
                                            const v1::GetTrafficCourseRequest& request,
                                            v1::GetTrafficCourseResponse& response) {
  constexpr size_t kLines = 8;
  const std::string_view of =
      request.traffic_class().empty() ? node_api::kExternalTraffic : request.traffic_class();
  const TrafficCourse course =
      edges_.traffic.CourseOf(of, request.limit() == 0 ? kLines : request.limit());
  response.mutable_times_unix_ms()->Add(course.times_ms.begin(), course.times_ms.end());
  for (const TrafficCourse::Line& line : course.lines) {
    v1::TrafficLine& out = *response.add_lines();
    out.set_name(line.name);
    out.mutable_bits_per_second()->Add(line.bits_per_second.begin(), line.bits_per_second.end());
  }
  for (const std::string& name : edges_.traffic.Classes()) response.add_classes(name);
  return absl::OkStatus();
}

absl::Status AdminService::GetBudgets(const Context&, const v1::GetBudgetsRequest& request,
                                      v1::GetBudgetsResponse& response) {
  std::vector<std::pair<std::string, NodeBudgetStanding>> nodes;
  if (!request.name().empty() && !request.team().empty()) {
    nodes = edges_.budgets.NodesOf(request.name(), request.team());
  }
  ASSIGN_OR_RETURN(response, QueryBudgets(edges_.budgets.Standings(), std::move(nodes), request));
  return absl::OkStatus();
}

}  // namespace spoke::ipam
