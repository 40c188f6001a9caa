// The calls that change something.
#include <map>
#include <memory>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/admin/admin_service.h"
#include "ipam-server/admin/describe.h"
#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/ledger/decisions/quarantine.h"
#include "ipam-server/ledger/decisions/reservations.h"
#include "ipam-server/loop/loop_call.h"
#include "ipam-server/operators/policy_change.h"
#include "ipam-server/operators/policy_versions.h"
#include "ipam-server/policy/kind.h"
#include "ipam-server/policy/kinds/pool.h"
#include "ipam-server/policy/object_codec.h"
#include "ipam-server/policy/object_text.h"
#include "ipam-server/policy/policy_file.h"
#include "ipam-server/policy/resolved_names.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

// The time to resolve all host names in the files of one call, on the caller's thread. What is
// unknown by then is taken as it is: an operator does not wait for somebody's name server.
constexpr absl::Duration kResolveTime = absl::Seconds(2);
// How often a change of the objects is judged anew because another one came between.
constexpr int kMostPlans = 10;
// The most nodes whose agents are asked at once what a policy would end: a sample of all nodes.
constexpr size_t kMaxTrialNodes = 20;
// The connections that an estimate names.
constexpr int kMaxCutExamples = 20;

absl::StatusOr<NodeMode> ModeOf(const std::string& text) {
  for (const NodeMode mode : {NodeMode::kActive, NodeMode::kDraining, NodeMode::kFrozen}) {
    if (NameOf(mode) == text) return mode;
  }
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" is no mode of a node; write active, draining or frozen", text));
}

std::vector<PolicyFileText> FilesOf(
    const google::protobuf::RepeatedPtrField<v1::PolicyFile>& files) {
  std::vector<PolicyFileText> out;
  for (const v1::PolicyFile& file : files) out.push_back({file.name(), file.text()});
  return out;
}

void DescribeCut(const std::string& node, const node_api::CutFlow& flow, v1::CutConnection& out) {
  out.set_node(node);
  out.set_pod_namespace(flow.pod_namespace);
  out.set_pod_name(flow.pod_name);
  out.set_address(flow.address.ToString());
  out.set_far_address(flow.far_address.ToString());
  out.set_reason(flow.peer_spoke ? "peer-spoke" : "egress");
}

template <typename Response>
void Describe(const ApplyPlan& plan, Response& response) {
  for (const ObjectChange& change : plan.changes) {
    v1::ObjectChange& out = *response.add_changes();
    out.set_kind(change.key.kind);
    out.set_name(change.key.name);
    out.set_action(std::string(NameOf(change.action)));
    if (change.before != nullptr) out.set_before_yaml(ObjectYaml(*change.before));
    if (change.after != nullptr) out.set_after_yaml(ObjectYaml(*change.after));
  }
  response.set_policy_version(plan.next.version());
}

// Says what changes: the first objects by their names, and how many more there are.
std::string SummaryOf(const ApplyPlan& plan) {
  constexpr size_t kMostNames = 12;
  std::string text;
  size_t count = 0;
  for (const ObjectChange& change : plan.changes) {
    if (change.action == ChangeAction::kUnchanged) continue;
    if (++count > kMostNames) continue;
    text += fmt::format("{}{}/{} {}", text.empty() ? "" : ", ", change.key.kind, change.key.name,
                        NameOf(change.action));
  }
  if (count > kMostNames) text += fmt::format(", and {} more", count - kMostNames);
  return text;
}

// Checks the version; `expected` 0: any.
absl::Status CheckVersion(const ObjectSet& set, uint64_t expected) {
  if (expected == 0 || expected == set.version()) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "the policy objects are of version {} now, not of version {}: somebody has changed them "
      "since. Look at what there is (spokectl diff), and apply anew with that version",
      set.version(), expected));
}

}  // namespace

absl::Status AdminService::GetRecovery(const Context& context, const v1::GetRecoveryRequest&,
                                       v1::RecoveryInfo& response) {
  return Ask(context, [&](const FleetView& view) {
    response = DescribeRecovery(view.fleet, view.state.recovery);
  });
}

absl::Status AdminService::ConfirmRecovery(const Context& context,
                                           const v1::ConfirmRecoveryRequest& request,
                                           v1::RecoveryInfo& response) {
  ChangeSummary summary{
      .method = "ConfirmRecovery",
      .what = fmt::format("took the store for the newest; {} nodes had not spoken",
                          request.nodes_silent())};
  return Do(context, summary, [&](ServerState& state, RawRecords&) {
    auto effects = ipam::ConfirmRecovery(state, request.nodes_silent(), edges_.clock.Now());
    response = DescribeRecovery(state.fleet, state.recovery);
    return effects;
  });
}

absl::Status AdminService::Unfreeze(const Context& context, const v1::UnfreezeRequest&,
                                    v1::UnfreezeResponse& response) {
  ChangeSummary summary{.method = "Unfreeze", .what = ""};
  return Do(context, summary, [&](ServerState& state, RawRecords&) {
    const BreakerState& breaker = state.fleet.breaker.state();
    if (breaker.freeze) {
      response.set_was_frozen_for(breaker.freeze->reason);
      summary.what = fmt::format("releases go on; they were frozen: {}", breaker.freeze->reason);
    }
    return LiftFreeze(state.fleet, edges_.clock.Now());
  });
}

absl::Status AdminService::SetNodeMode(const Context& context,
                                       const v1::SetNodeModeRequest& request,
                                       v1::NodeInfo& response) {
  ASSIGN_OR_RETURN(const NodeMode mode, ModeOf(request.mode()));
  ChangeSummary summary{.method = "SetNodeMode",
                        .what = fmt::format("node {} is {}", request.name(), request.mode())};
  RETURN_IF_ERROR(Do(context, summary, [&](ServerState& state, RawRecords&) {
    return SetMode(state.fleet, request.name(), mode, edges_.clock.Now());
  }));
  return Describe(context, request.name(), response);
}

absl::Status AdminService::Describe(const Context& context, const std::string& node,
                                    v1::NodeInfo& response) {
  return Ask(context, [&](const FleetView& view) {
    const NodeRecord* record = FindByName(view.fleet.ledger, node);
    if (record == nullptr) return;
    response = DescribeNode(view, *record);
  });
}

absl::Status AdminService::RetryNode(const Context& context, const v1::RetryNodeRequest& request,
                                     v1::NodeInfo& response) {
  ChangeSummary summary{.method = "RetryNode", .what = fmt::format("node {}", request.name())};
  RETURN_IF_ERROR(Do(context, summary, [&](ServerState& state, RawRecords&) {
    return Retry(state.fleet, request.name());
  }));
  return Describe(context, request.name(), response);
}

absl::Status AdminService::ForgetNode(const Context& context, const v1::ForgetNodeRequest& request,
                                      v1::ForgetNodeResponse& response) {
  Farewell farewell{.node = request.name(), .vm_id = request.vm_id(), .in_use = request.in_use()};
  RETURN_IF_ERROR(Ask(context, [&](const FleetView& view) {
    const auto& nodes = view.fleet.ledger.nodes();
    for (auto it = nodes.lower_bound({farewell.node, ""});
         it != nodes.end() && it->first.name == farewell.node; ++it) {
      if (view.sessions.contains(it->first)) continue;
      farewell.silent.emplace(it->first, it->second.session_epoch);
    }
  }));
  ChangeSummary summary{.method = "ForgetNode", .what = ""};
  return Do(context, summary, [&](ServerState& state, RawRecords&) -> absl::StatusOr<Effects> {
    ASSIGN_OR_RETURN(Forgotten forgotten, Forget(state.fleet, farewell, edges_.clock.Now()));
    summary.what = fmt::format("node {}, machine {}, with {} addresses", farewell.node,
                               forgotten.node.vm_id, forgotten.addresses);
    response.set_vm_id(forgotten.node.vm_id);
    response.set_addresses(forgotten.addresses);
    return std::move(forgotten.effects);
  });
}

absl::Status AdminService::ReleaseAddress(const Context& context,
                                          const v1::ReleaseAddressRequest& request,
                                          v1::AddressInfo& response) {
  ASSIGN_OR_RETURN(const auto address, ip::Address::Parse(request.address()));
  std::string away;
  RETURN_IF_ERROR(Ask(context, [&](const FleetView& view) {
    const NodeRecord* holder = HolderOf(view.fleet.ledger, address);
    if (holder != nullptr && !view.sessions.contains(holder->key)) away = holder->key.name;
  }));
  if (!away.empty()) {
    return absl::FailedPreconditionError(fmt::format(
        "the agent of node {} is away and cannot be asked for {}; try again when it is back", away,
        address.ToString()));
  }
  ChangeSummary summary{.method = "ReleaseAddress", .what = address.ToString()};
  if (request.force()) summary.what += fmt::format(", by force: {}", request.reason());
  RETURN_IF_ERROR(Do(context, summary, [&](ServerState& state, RawRecords&) {
    return request.force() ? ForceRelease(state.fleet, address, request.node(), request.reason())
                           : Release(state.fleet, address, request.node());
  }));
  return Describe(context, address, response);
}

absl::Status AdminService::QuarantineAddress(const Context& context,
                                             const v1::QuarantineAddressRequest& request,
                                             v1::AddressInfo& response) {
  ASSIGN_OR_RETURN(const auto address, ip::Address::Parse(request.address()));
  ChangeSummary summary{.method = "QuarantineAddress",
                        .what = request.lift()
                                    ? fmt::format("{} is out of quarantine", address.ToString())
                                    : fmt::format("{}: {}", address.ToString(), request.reason())};
  RETURN_IF_ERROR(Do(context, summary, [&](ServerState& state, RawRecords&) {
    const absl::Time now = edges_.clock.Now();
    std::optional<Quarantine> quarantine;
    if (!request.lift()) {
      quarantine = {.reason = request.reason().empty() ? "by an operator" : request.reason(),
                    .since = now};
    }
    return SetQuarantine(state.fleet, address, std::move(quarantine), now);
  }));
  return Describe(context, address, response);
}

absl::Status AdminService::CreateReservation(const Context& context,
                                             const v1::CreateReservationRequest& request,
                                             v1::ReservationInfo& response) {
  RETURN_IF_ERROR(base::Annotate(CheckLabel(request.name()), "name"));
  ReservationRequest wanted{.name = request.name(),
                            .nodes = {request.nodes().begin(), request.nodes().end()},
                            .count = request.count(),
                            .addresses_per_node = request.addresses_per_node(),
                            .ttl = absl::Milliseconds(request.ttl_ms())};
  ChangeSummary summary{.method = "CreateReservation", .what = ""};
  if (!request.dry_run()) {
    summary.what = fmt::format("{}: {} addresses for each of {} nodes", wanted.name,
                               wanted.addresses_per_node, wanted.nodes.size() + wanted.count);
  }
  return Do(context, summary, [&](ServerState& state, RawRecords&) -> absl::StatusOr<Effects> {
    ASSIGN_OR_RETURN(Effects effects,
                     Reserve(state.fleet, wanted, edges_.clock.Now(), request.dry_run()));
    const auto& all = state.fleet.reservations.all();
    if (const auto it = all.find(wanted.name); it != all.end()) {
      response = DescribeReservation(it->second);
    }
    return effects;
  });
}

absl::Status AdminService::DeleteReservation(const Context& context,
                                             const v1::DeleteReservationRequest& request,
                                             v1::ReservationInfo& response) {
  ChangeSummary summary{.method = "DeleteReservation", .what = request.name()};
  return Do(context, summary, [&](ServerState& state, RawRecords&) -> absl::StatusOr<Effects> {
    const auto& all = state.fleet.reservations.all();
    if (const auto it = all.find(request.name()); it != all.end()) {
      response = DescribeReservation(it->second);
    }
    return EndReservation(state.fleet, request.name());
  });
}

// Plans and compiles the change on the caller's thread, from what the loop has at one moment; the
// loop only puts it into force, if nothing was changed since. Otherwise all is judged anew.
absl::StatusOr<ApplyPlan> AdminService::ChangeObjects(const Context& context,
                                                      std::string_view method,
                                                      const PlanObjects& plan, bool commit) {
  for (int i = 0; i < kMostPlans; ++i) {
    ObjectSet set;
    PolicyWorld world{.protected_addresses = settings_.protected_addresses};
    RETURN_IF_ERROR(Ask(context, [&](const FleetView& view) {
      set = view.state.objects;
      world.configured = view.state.configured;
      world.used = PoolUses(view.fleet);
    }));
    ASSIGN_OR_RETURN(ApplyPlan planned, plan(set, world));
    if (!commit || planned.next.version() == set.version()) return planned;
    ASSIGN_OR_RETURN(const bool in_force, PutIntoForce(context, method, set.version(), planned));
    if (in_force) return planned;
  }
  return absl::AbortedError(
      "others change the policy objects all the time; nothing was changed, try again");
}

// Returns false, and nothing happens, when the objects are no longer of the version `from`.
absl::StatusOr<bool> AdminService::PutIntoForce(const Context& context, std::string_view method,
                                                uint64_t from, const ApplyPlan& plan) {
  PolicyChange change(settings_, plan, from);
  std::string changed = SummaryOf(plan);
  ChangeSummary summary{.method = method, .what = ""};
  bool in_force = false;
  const absl::Status status =
      Do(context, summary, [&](ServerState& state, RawRecords& raw) -> absl::StatusOr<Effects> {
        ASSIGN_OR_RETURN(auto effects, change.PutIntoForce(state, raw, edges_.clock.Now()));
        if (!effects) return Effects();
        in_force = true;
        summary.what = std::move(changed);
        return *std::move(effects);
      });
  if (!status.ok()) return status;
  return in_force;
}

absl::Status AdminService::Apply(const Context& context, const v1::ApplyRequest& request,
                                 v1::ApplyResponse& response) {
  ParsedFiles parsed = ParsePolicyFiles(FilesOf(request.files()));
  AddResolved(edges_.resolver.Resolve(NamesToResolve(parsed), kResolveTime), parsed);
  ASSIGN_OR_RETURN(
      const auto plan,
      ChangeObjects(
          context, "Apply",
          [&](const ObjectSet& set, const PolicyWorld& world) -> absl::StatusOr<ApplyPlan> {
            RETURN_IF_ERROR(CheckVersion(set, request.expected_version()));
            return PlanApply(set, parsed, world, edges_.clock.Now());
          },
          !request.dry_run()));
  ipam::Describe(plan, response);
  for (const Problem& warning : parsed.warnings) response.add_warnings(TextOf(warning));
  return absl::OkStatus();
}

absl::Status AdminService::DeleteObjects(const Context& context,
                                         const v1::DeleteObjectsRequest& request,
                                         v1::DeleteObjectsResponse& response) {
  std::vector<ObjectKey> keys;
  if (!request.files().empty()) {
    ASSIGN_OR_RETURN(keys, ParseObjectKeys(FilesOf(request.files())));
  }
  for (const v1::ObjectName& object : request.objects()) {
    if (FindKind(object.kind()) == nullptr) {
      return absl::NotFoundError(
          fmt::format("there is no kind \"{}\"; the kinds are {}", object.kind(), KnownKinds()));
    }
    keys.push_back({object.kind(), object.name()});
  }
  if (keys.empty()) {
    return absl::InvalidArgumentError("name an object, or a file with objects, to delete");
  }
  ASSIGN_OR_RETURN(const auto plan, ChangeObjects(
                                        context, "DeleteObjects",
                                        [&](const ObjectSet& set, const PolicyWorld& world) {
                                          return PlanDelete(set, keys, world, edges_.clock.Now());
                                        },
                                        !request.dry_run()));
  ipam::Describe(plan, response);
  return absl::OkStatus();
}

absl::Status AdminService::ResumeRollout(const Context& context,
                                         const v1::ResumeRolloutRequest& request,
                                         v1::ResumeRolloutResponse& response) {
  // The loop's sessions, which a change does not see, tell who holds it back now.
  RETURN_IF_ERROR(Ask(context, [&](const FleetView& view) {
    node_api::CutCount cut;
    for (const auto& [key, session] : view.sessions) {
      if (!session.policy_held || session.policy_sent != request.version()) continue;
      response.set_nodes(response.nodes() + 1);
      cut.connections += session.policy_cut.connections;
      cut.cut += session.policy_cut.cut;
    }
    response.set_connections(cut.connections);
    response.set_connections_cut(cut.cut);
  }));
  ChangeSummary summary{
      .method = "ResumeRollout",
      .what = fmt::format("version {} may end {} of {} connections on {} nodes", request.version(),
                          response.connections_cut(), response.connections(), response.nodes())};
  return Do(context, summary, [&](ServerState& state, RawRecords&) -> absl::StatusOr<Effects> {
    if (state.bundles.version() != request.version()) {
      return absl::FailedPreconditionError(
          fmt::format("the newest version is {} by now, not {}; see: spokectl rollout status",
                      state.bundles.version(), request.version()));
    }
    state.cuts_accepted = request.version();
    return Effects();
  });
}

// Goes the way of Apply(), with its guards: what was in force once may no longer fit to the pools
// in use, or to what is configured by now.
absl::Status AdminService::UndoRollout(const Context& context,
                                       const v1::UndoRolloutRequest& request,
                                       v1::ApplyResponse& response) {
  const auto plan = ChangeObjects(
      context, "UndoRollout",
      [&](const ObjectSet& set, const PolicyWorld& world) -> absl::StatusOr<ApplyPlan> {
        ASSIGN_OR_RETURN(WayBack way,
                         FindWayBack(edges_.store, set.version(), request.to_version()));
        AddResolved(edges_.resolver.Resolve(NamesToResolve(way.objects), kResolveTime),
                    way.objects);
        return PlanApply(set, way.objects, world, edges_.clock.Now(), way.gone);
      },
      !request.dry_run());
  if (!plan.ok()) return plan.status();
  ipam::Describe(*plan, response);
  return absl::OkStatus();
}

absl::Status AdminService::EstimateCuts(const Context& context, const v1::ApplyRequest& request,
                                        v1::EstimateCutsResponse& response) {
  ParsedFiles parsed = ParsePolicyFiles(FilesOf(request.files()));
  AddResolved(edges_.resolver.Resolve(NamesToResolve(parsed), kResolveTime), parsed);
  ASSIGN_OR_RETURN(const auto plan, ChangeObjects(
                                        context, "EstimateCuts",
                                        [&](const ObjectSet& set, const PolicyWorld& world) {
                                          return PlanApply(set, parsed, world, edges_.clock.Now());
                                        },
                                        /*commit=*/false));
  std::map<std::string, NodeLabels> connected;
  RETURN_IF_ERROR(AskForNodes(context, [&](const FleetView& view, const NodeRecord& record) {
    if (view.sessions.contains(record.key)) connected[record.key.name] = record.labels;
  }));
  CompiledPolicy compiled(plan.next);
  std::map<std::string, std::shared_ptr<const Bundle>> asked;
  size_t position = 0;
  for (const auto& [node, labels] : connected) {
    // The nodes asked are spread evenly, so that their names lie far apart.
    const size_t before = position * kMaxTrialNodes / connected.size();
    const size_t after = ++position * kMaxTrialNodes / connected.size();
    const bool all = connected.size() <= kMaxTrialNodes;
    if (all || before != after) asked[node] = compiled.Select(labels);
  }
  response.set_nodes(connected.size());
  response.set_nodes_asked(asked.size());
  AskTrials(
      edges_.loop, asked,
      [&](const std::string& node, const absl::StatusOr<node_api::PolicyTrialAnswer>& answer) {
        const std::string error =
            answer.ok() ? answer->error : std::string(base::MessageOf(answer.status()));
        if (!error.empty()) {
          if (response.error().empty()) response.set_error(node + ": " + error);
          return;
        }
        response.set_nodes_answered(response.nodes_answered() + 1);
        response.set_connections(response.connections() + answer->cut.connections);
        response.set_connections_cut(response.connections_cut() + answer->cut.cut);
        for (const node_api::CutFlow& flow : answer->flows) {
          if (response.examples_size() >= kMaxCutExamples) break;
          DescribeCut(node, flow, *response.add_examples());
        }
      });
  return absl::OkStatus();
}

}  // namespace spoke::ipam
