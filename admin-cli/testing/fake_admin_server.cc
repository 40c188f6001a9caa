#include "admin-cli/testing/fake_admin_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "admin-cli/policy/objects.h"
#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/admin.grpc.pb.h"
#include "tests/support/schema.h"

namespace spoke::ctl {
namespace {

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(base::MessageOf(status))};
}

// The version of the objects, whatever was applied.
constexpr uint64_t kPolicyVersion = 1'789'034'112'345;

grpc::Status NotFound(const std::string& message) { return {grpc::StatusCode::NOT_FOUND, message}; }

// Returns what stands behind `key` in a line of `text`, without quotes; empty when there is no such
// line.
std::string ValueOf(const std::string& text, const std::string& key) {
  const size_t at = text.find(key);
  if (at == std::string::npos) return "";
  std::string value = text.substr(at + key.size(), text.find('\n', at) - at - key.size());
  std::erase(value, '"');
  return value;
}

}  // namespace

class FakeAdminServer::Service final : public v1::AdminService::Service {
 public:
  using Context = grpc::ServerContext;

  template <typename Request>
  grpc::Status Begin(const std::string& method, const Request& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    state.requests.push_back(method + " " + testing_support::ShortTextOf(request));
    if (state.silent_method == method) {
      mutex.Unlock();
      ending.WaitForNotification();
      mutex.Lock();
    }
    const auto refusal = state.refusals.find(method);
    return refusal == state.refusals.end() ? grpc::Status::OK : ToGrpc(refusal->second);
  }

  grpc::Status GetStatus(Context*, const v1::GetStatusRequest* request,
                         v1::GetStatusResponse* response) override {
    absl::MutexLock lock(&mutex);
    *response = state.status;
    response->set_releases_frozen(state.frozen);
    return Begin("GetStatus", *request);
  }
  grpc::Status GetRecovery(Context*, const v1::GetRecoveryRequest* request,
                           v1::RecoveryInfo* response) override {
    absl::MutexLock lock(&mutex);
    *response = state.recovery;
    return Begin("GetRecovery", *request);
  }
  grpc::Status ConfirmRecovery(Context*, const v1::ConfirmRecoveryRequest* request,
                               v1::RecoveryInfo* response) override {
    absl::MutexLock lock(&mutex);
    state.recovery = v1::RecoveryInfo();
    state.recovery.set_phase("open");
    *response = state.recovery;
    return Begin("ConfirmRecovery", *request);
  }
  grpc::Status Unfreeze(Context*, const v1::UnfreezeRequest* request,
                        v1::UnfreezeResponse* response) override {
    absl::MutexLock lock(&mutex);
    response->set_was_frozen_for(std::exchange(state.frozen, ""));
    return Begin("Unfreeze", *request);
  }
  grpc::Status ListPools(Context*, const v1::ListPoolsRequest* request,
                         v1::ListPoolsResponse* response) override {
    absl::MutexLock lock(&mutex);
    for (const auto& [name, pool] : state.pools) {
      if (request->name().empty() || request->name() == name) *response->add_pools() = pool;
    }
    if (!request->name().empty() && response->pools().empty()) return NotFound("no such pool");
    return Begin("ListPools", *request);
  }
  grpc::Status ListNodes(Context*, const v1::ListNodesRequest* request,
                         grpc::ServerWriter<v1::ListNodesResponse>* writer) override {
    absl::MutexLock lock(&mutex);
    // Each node is a message of its own: they are put together.
    for (const auto& [name, node] : state.nodes) {
      v1::ListNodesResponse response;
      *response.add_nodes() = node;
      writer->Write(response);
    }
    return Begin("ListNodes", *request);
  }
  grpc::Status GetNode(Context*, const v1::GetNodeRequest* request,
                       v1::GetNodeResponse* response) override {
    absl::MutexLock lock(&mutex);
    const auto node = state.nodes.find(request->name());
    if (node == state.nodes.end()) {
      return NotFound(fmt::format("there is no node {}; see: spokectl node list", request->name()));
    }
    *response->mutable_node() = node->second;
    for (const auto& [text, address] : state.addresses) {
      if (address.node() == request->name()) *response->add_addresses() = address;
    }
    return Begin("GetNode", *request);
  }
  grpc::Status RevokeIdentity(Context*, const v1::RevokeIdentityRequest* request,
                              v1::RevokeIdentityResponse* response) override {
    absl::MutexLock lock(&mutex);
    v1::RevokedIdentity& identity = *response->mutable_identity();
    identity.set_kind(request->kind());
    identity.set_value(request->value());
    identity.set_reason(request->reason());
    state.revoked.push_back(identity);
    const bool is_away = request->kind() == "node" && !state.nodes.contains(request->value());
    response->set_sessions_ended(is_away ? 0 : 1);
    return Begin("RevokeIdentity", *request);
  }
  grpc::Status UnrevokeIdentity(Context*, const v1::UnrevokeIdentityRequest* request,
                                v1::UnrevokeIdentityResponse*) override {
    absl::MutexLock lock(&mutex);
    if (std::erase_if(state.revoked, [&](const v1::RevokedIdentity& identity) {
          return identity.value() == request->value();
        }) == 0) {
      return NotFound(request->kind() + " " + request->value() + " is not revoked");
    }
    return Begin("UnrevokeIdentity", *request);
  }
  grpc::Status ListRevoked(Context*, const v1::ListRevokedRequest* request,
                           v1::ListRevokedResponse* response) override {
    absl::MutexLock lock(&mutex);
    for (const v1::RevokedIdentity& identity : state.revoked) {
      *response->add_identities() = identity;
    }
    return Begin("ListRevoked", *request);
  }
  grpc::Status ListRoots(Context*, const v1::ListRootsRequest* request,
                         v1::ListRootsResponse* response) override {
    absl::MutexLock lock(&mutex);
    *response = state.roots;
    return Begin("ListRoots", *request);
  }
  grpc::Status RotateAuthority(Context*, const v1::RotateAuthorityRequest* request,
                               v1::ListRootsResponse* response) override {
    absl::MutexLock lock(&mutex);
    state.roots.add_roots()->set_state("next");
    *response = state.roots;
    return Begin("RotateAuthority", *request);
  }
  grpc::Status SetNodeMode(Context*, const v1::SetNodeModeRequest* request,
                           v1::NodeInfo* response) override {
    absl::MutexLock lock(&mutex);
    const grpc::Status status = Begin("SetNodeMode", *request);
    if (!status.ok()) return status;
    const auto node = state.nodes.find(request->name());
    if (node == state.nodes.end()) return NotFound("there is no node " + request->name());
    node->second.set_mode(request->mode());
    *response = node->second;
    return status;
  }
  grpc::Status RetryNode(Context*, const v1::RetryNodeRequest* request,
                         v1::NodeInfo* response) override {
    absl::MutexLock lock(&mutex);
    const grpc::Status status = Begin("RetryNode", *request);
    if (!status.ok()) return status;
    const auto node = state.nodes.find(request->name());
    if (node == state.nodes.end()) return NotFound("there is no node " + request->name());
    *response = node->second;
    return status;
  }
  grpc::Status StartMaintenance(Context*, const v1::StartMaintenanceRequest* request,
                                v1::StartMaintenanceResponse* response) override {
    absl::MutexLock lock(&mutex);
    const grpc::Status status = Begin("StartMaintenance", *request);
    if (!status.ok()) return status;
    const auto node = state.nodes.find(request->node());
    if (node == state.nodes.end()) return NotFound("there is no node " + request->node());
    for (v1::MaintenanceEvent& event : *node->second.mutable_maintenance()) {
      event.set_started(true);
      response->add_events(event.id());
    }
    return status;
  }
  grpc::Status GetNodeData(Context*, const v1::GetNodeDataRequest* request,
                           v1::GetNodeDataResponse* response) override {
    absl::MutexLock lock(&mutex);
    const grpc::Status status = Begin("GetNodeData", *request);
    if (!status.ok()) return status;
    if (!state.nodes.contains(request->node())) {
      return NotFound("there is no node " + request->node());
    }
    for (const auto& [name, text] : state.node_data) {
      v1::NodeData::Part& part = *response->add_parts();
      part.set_name(name);
      part.set_text(text);
    }
    return status;
  }
  grpc::Status ForgetNode(Context*, const v1::ForgetNodeRequest* request,
                          v1::ForgetNodeResponse* response) override {
    absl::MutexLock lock(&mutex);
    const grpc::Status status = Begin("ForgetNode", *request);
    if (!status.ok()) return status;
    const auto node = state.nodes.find(request->name());
    if (node == state.nodes.end()) return NotFound("there is no node " + request->name());
    response->set_vm_id(node->second.vm_id());
    response->set_addresses(node->second.attached());
    state.nodes.erase(node);
    return status;
  }
  grpc::Status ListAddresses(Context*, const v1::ListAddressesRequest* request,
                             grpc::ServerWriter<v1::ListAddressesResponse>* writer) override {
    absl::MutexLock lock(&mutex);
    v1::ListAddressesResponse response;
    if (!request->node().empty() && !state.nodes.contains(request->node())) {
      return NotFound(fmt::format("there is no node {}; see: spokectl node list", request->node()));
    }
    if (!request->pool().empty() && !state.pools.contains(request->pool())) {
      return NotFound(fmt::format("there is no pool {}; see: spokectl pool list", request->pool()));
    }
    for (const auto& [text, address] : state.addresses) {
      if (!request->node().empty() && request->node() != address.node()) continue;
      if (!request->pool().empty() && request->pool() != address.pool()) continue;
      if (!request->state().empty() && request->state() != address.state()) continue;
      *response.add_addresses() = address;
    }
    writer->Write(response);
    return Begin("ListAddresses", *request);
  }
  grpc::Status GetAddress(Context*, const v1::GetAddressRequest* request,
                          v1::AddressInfo* response) override {
    absl::MutexLock lock(&mutex);
    if (!state.addresses.contains(request->address())) {
      return NotFound(request->address() + " is in none of the pools; see: spokectl pool list");
    }
    *response = state.addresses[request->address()];
    return Begin("GetAddress", *request);
  }
  grpc::Status GetAddressHistory(Context*, const v1::GetAddressHistoryRequest* request,
                                 v1::GetAddressHistoryResponse* response) override {
    absl::MutexLock lock(&mutex);
    response->set_kept_since_unix_ms(state.history.kept_since_unix_ms());
    for (const v1::HistoryEntry& entry : state.history.entries()) {
      const int64_t at = request->at_unix_ms();
      const bool held =
          entry.unix_ms() <= at && (entry.until_unix_ms() == 0 || at < entry.until_unix_ms());
      if (at == 0 || held) *response->add_entries() = entry;
    }
    return Begin("GetAddressHistory", *request);
  }
  grpc::Status ReleaseAddress(Context*, const v1::ReleaseAddressRequest* request,
                              v1::AddressInfo* response) override {
    absl::MutexLock lock(&mutex);
    const grpc::Status status = Begin("ReleaseAddress", *request);
    v1::AddressInfo& address = state.addresses[request->address()];
    if (address.state() == "in_use") {
      return {grpc::StatusCode::FAILED_PRECONDITION,
              fmt::format("{} is assigned to {}/{}; delete the pod first", request->address(),
                          address.pod_namespace(), address.pod_name())};
    }
    address.set_state("detaching");
    *response = address;
    return status;
  }
  grpc::Status QuarantineAddress(Context*, const v1::QuarantineAddressRequest* request,
                                 v1::AddressInfo* response) override {
    absl::MutexLock lock(&mutex);
    v1::AddressInfo& address = state.addresses[request->address()];
    address.set_address(request->address());
    address.set_state(request->lift() ? "free" : "quarantined");
    address.set_note(request->reason());
    *response = address;
    return Begin("QuarantineAddress", *request);
  }
  grpc::Status CreateReservation(Context*, const v1::CreateReservationRequest* request,
                                 v1::ReservationInfo* response) override {
    absl::MutexLock lock(&mutex);
    const grpc::Status status = Begin("CreateReservation", *request);
    if (!status.ok()) return status;
    if (state.reservations.contains(request->name())) {
      return {grpc::StatusCode::ALREADY_EXISTS, "there is a reservation " + request->name()};
    }
    response->set_name(request->name());
    *response->mutable_nodes() = request->nodes();
    response->set_count(request->count());
    response->set_addresses_per_node(request->addresses_per_node());
    response->set_created_unix_ms(1'700'000'000'000);
    response->set_expires_unix_ms(1'700'000'000'000 + request->ttl_ms());
    if (!request->dry_run()) state.reservations[request->name()] = *response;
    return status;
  }
  grpc::Status ListReservations(Context*, const v1::ListReservationsRequest* request,
                                v1::ListReservationsResponse* response) override {
    absl::MutexLock lock(&mutex);
    for (const auto& [name, one] : state.reservations) *response->add_reservations() = one;
    return Begin("ListReservations", *request);
  }
  grpc::Status DeleteReservation(Context*, const v1::DeleteReservationRequest* request,
                                 v1::ReservationInfo* response) override {
    absl::MutexLock lock(&mutex);
    if (!state.reservations.contains(request->name())) return NotFound("no such reservation");
    *response = state.reservations[request->name()];
    state.reservations.erase(request->name());
    return Begin("DeleteReservation", *request);
  }
  grpc::Status Apply(Context*, const v1::ApplyRequest* request,
                     v1::ApplyResponse* response) override {
    absl::MutexLock lock(&mutex);
    const grpc::Status status = Begin("Apply", *request);
    if (!status.ok()) return status;
    if (request->expected_version() != 0 && request->expected_version() != kPolicyVersion) {
      return {grpc::StatusCode::FAILED_PRECONDITION,
              fmt::format("the policy objects are of version {} now, not of version {}",
                          kPolicyVersion, request->expected_version())};
    }
    auto objects = state.objects;
    for (const v1::PolicyFile& file : request->files()) {
      const std::string kind = ValueOf(file.text(), "kind: ");
      const std::string name = ValueOf(file.text(), "  name: ");
      if (kind.empty() || name.empty()) {
        return {
            grpc::StatusCode::INVALID_ARGUMENT,
            file.name() + ":1: kind: is missing\n" + file.name() + ":2: metadata.name: is missing"};
      }
      std::string& object = objects[{kind, name}];
      v1::ObjectChange& change = *response->add_changes();
      change.set_kind(kind);
      change.set_name(name);
      change.set_before_yaml(object);
      change.set_after_yaml(file.text());
      change.set_action(object.empty()          ? "created"
                        : object == file.text() ? "unchanged"
                                                : "changed");
      object = file.text();
    }
    if (!request->dry_run()) state.objects = objects;
    return status;
  }
  grpc::Status DeleteObjects(Context*, const v1::DeleteObjectsRequest* request,
                             v1::DeleteObjectsResponse* response) override {
    absl::MutexLock lock(&mutex);
    const grpc::Status status = Begin("DeleteObjects", *request);
    if (!status.ok()) return status;
    auto objects = state.objects;
    std::vector<std::pair<std::string, std::string>> names;
    for (const v1::ObjectName& one : request->objects()) names.emplace_back(one.kind(), one.name());
    for (const v1::PolicyFile& file : request->files()) {
      names.emplace_back(ValueOf(file.text(), "kind: "), ValueOf(file.text(), "  name: "));
    }
    for (const auto& [kind, name] : names) {
      if (objects.erase({kind, name}) == 0)
        return NotFound(fmt::format("there is no {} {}", kind, name));
      v1::ObjectChange& change = *response->add_changes();
      change.set_kind(kind);
      change.set_name(name);
      change.set_action("deleted");
    }
    if (!request->dry_run()) state.objects = objects;
    return status;
  }
  grpc::Status GetObjects(Context*, const v1::GetObjectsRequest* request,
                          v1::GetObjectsResponse* response) override {
    absl::MutexLock lock(&mutex);
    const std::vector<std::string>& kinds = KnownKinds();
    if (!request->kind().empty() &&
        std::find(kinds.begin(), kinds.end(), request->kind()) == kinds.end()) {
      return NotFound(fmt::format("there is no kind \"{}\"", request->kind()));
    }
    for (const auto& [key, yaml] : state.objects) {
      if (!request->kind().empty() && request->kind() != key.first) continue;
      if (!request->name().empty() && request->name() != key.second) continue;
      v1::PolicyObjectInfo& object = *response->add_objects();
      object.set_kind(key.first);
      object.set_name(key.second);
      object.set_yaml(yaml);
      object.set_version(7);
      object.set_json(fmt::format(R"({{"kind": "{}", "metadata": {{"name": "{}"}}, "spec": {}}})",
                                  key.first, key.second,
                                  state.specs.contains(key) ? state.specs.at(key) : "{}"));
    }
    if (!request->name().empty() && response->objects().empty()) {
      return NotFound(fmt::format("there is no {} {}", request->kind(), request->name()));
    }
    return Begin("GetObjects", *request);
  }
  grpc::Status GetRollout(Context*, const v1::GetRolloutRequest* request,
                          v1::GetRolloutResponse* response) override {
    absl::MutexLock lock(&mutex);
    *response = state.rollout;
    return Begin("GetRollout", *request);
  }
  grpc::Status ResumeRollout(Context*, const v1::ResumeRolloutRequest* request,
                             v1::ResumeRolloutResponse* response) override {
    absl::MutexLock lock(&mutex);
    *response = state.resumed;
    return Begin("ResumeRollout", *request);
  }
  grpc::Status UndoRollout(Context*, const v1::UndoRolloutRequest* request,
                           v1::ApplyResponse* response) override {
    absl::MutexLock lock(&mutex);
    *response = state.undone;
    return Begin("UndoRollout", *request);
  }
  grpc::Status ListOperatorLog(Context*, const v1::ListOperatorLogRequest* request,
                               v1::ListOperatorLogResponse* response) override {
    absl::MutexLock lock(&mutex);
    *response = state.operator_log;
    return Begin("ListOperatorLog", *request);
  }
  grpc::Status EstimateCuts(Context*, const v1::ApplyRequest* request,
                            v1::EstimateCutsResponse* response) override {
    absl::MutexLock lock(&mutex);
    *response = state.cuts;
    return Begin("EstimateCuts", *request);
  }
  grpc::Status Audit(Context*, const v1::AuditRequest* request,
                     grpc::ServerWriter<v1::AuditResponse>* writer) override {
    absl::MutexLock lock(&mutex);
    for (v1::AuditResponse message : state.audit) {
      for (v1::AuditDifference& difference : *message.mutable_differences()) {
        difference.set_repaired(request->repair() && !difference.repair().empty());
      }
      writer->Write(message);
    }
    return Begin("Audit", *request);
  }
  grpc::Status Explain(Context*, const v1::ExplainRequest* request,
                       v1::ExplainResponse* response) override {
    absl::MutexLock lock(&mutex);
    *response = state.explain;
    return Begin("Explain", *request);
  }
  grpc::Status WhatIf(Context*, const v1::WhatIfRequest* request,
                      v1::WhatIfResponse* response) override {
    absl::MutexLock lock(&mutex);
    *response = state.what_if;
    return Begin("WhatIf", *request);
  }
  grpc::Status GetTraffic(Context*, const v1::GetTrafficRequest* request,
                          v1::GetTrafficResponse* response) override {
    absl::MutexLock lock(&mutex);
    const bool nodes =
        request->by() == v1::GetTrafficRequest::NODE && state.node_traffic.entries_size() > 0;
    *response = nodes ? state.node_traffic : state.traffic;
    return Begin("GetTraffic", *request);
  }
  grpc::Status GetTrafficCourse(Context*, const v1::GetTrafficCourseRequest* request,
                                v1::GetTrafficCourseResponse* response) override {
    absl::MutexLock lock(&mutex);
    *response = state.course;
    return Begin("GetTrafficCourse", *request);
  }
  grpc::Status GetBudgets(Context*, const v1::GetBudgetsRequest* request,
                          v1::GetBudgetsResponse* response) override {
    absl::MutexLock lock(&mutex);
    const grpc::Status status = Begin("GetBudgets", *request);
    if (!status.ok()) return status;
    if (!request->name().empty() && !state.budgets.contains(request->name())) {
      return NotFound("there is no budget " + request->name());
    }
    for (const auto& [name, budget] : state.budgets) {
      if (request->name().empty() || request->name() == name) *response->add_budgets() = budget;
    }
    for (const v1::NodeBudgetInfo& node : state.budget_nodes) {
      if (node.budget() != request->name() || node.team() != request->team()) continue;
      *response->add_nodes() = node;
    }
    return status;
  }
  grpc::Status VerifyPolicy(Context*, const v1::VerifyPolicyRequest* request,
                            grpc::ServerWriter<v1::VerifyPolicyResponse>* writer) override {
    absl::MutexLock lock(&mutex);
    for (const v1::VerifyPolicyResponse& answer : state.verified) writer->Write(answer);
    return Begin("VerifyPolicy", *request);
  }
  grpc::Status GetReachability(Context*, const v1::GetReachabilityRequest* request,
                               v1::GetReachabilityResponse* response) override {
    absl::MutexLock lock(&mutex);
    *response = state.reachability;
    return Begin("GetReachability", *request);
  }
  grpc::Status CheckNodes(Context*, const v1::CheckNodesRequest* request,
                          grpc::ServerWriter<v1::CheckNodesResponse>* writer) override {
    absl::MutexLock lock(&mutex);
    for (const v1::CheckNodesResponse& message : state.check) writer->Write(message);
    return Begin("CheckNodes", *request);
  }
  grpc::Status GetTop(Context*, const v1::GetTopRequest* request,
                      v1::GetTopResponse* response) override {
    absl::MutexLock lock(&mutex);
    *response = state.top;
    return Begin("GetTop", *request);
  }
  grpc::Status ListEvents(Context*, const v1::ListEventsRequest* request,
                          grpc::ServerWriter<v1::ListEventsResponse>* writer) override {
    absl::MutexLock lock(&mutex);
    for (const v1::EventInfo& event : state.events) {
      v1::ListEventsResponse response;
      *response.add_events() = event;
      writer->Write(response);
    }
    return Begin("ListEvents", *request);
  }
  grpc::Status Backup(Context*, const v1::BackupRequest* request,
                      grpc::ServerWriter<v1::BackupResponse>* writer) override {
    absl::MutexLock lock(&mutex);
    for (const v1::BackupResponse& piece : state.backup) writer->Write(piece);
    return Begin("Backup", *request);
  }

  absl::Mutex mutex;
  FakeState state ABSL_GUARDED_BY(mutex);
  absl::Notification ending;
};

struct FakeAdminServer::Parts {
  Service service;
  std::unique_ptr<grpc::Server> server;
};

FakeAdminServer::FakeAdminServer(const std::string& target) : parts_(std::make_unique<Parts>()) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(target, grpc::InsecureServerCredentials());
  builder.RegisterService(&parts_->service);
  parts_->server = builder.BuildAndStart();
  CHECK(parts_->server != nullptr, "the tests' server can listen");
}

FakeAdminServer::~FakeAdminServer() {
  parts_->service.ending.Notify();
  parts_->server->Shutdown(std::chrono::system_clock::now());
}

void FakeAdminServer::With(const std::function<void(FakeState&)>& visit) {
  absl::MutexLock lock(&parts_->service.mutex);
  visit(parts_->service.state);
}

std::string FakeAdminServer::last_request() {
  absl::MutexLock lock(&parts_->service.mutex);
  return parts_->service.state.requests.empty() ? "" : parts_->service.state.requests.back();
}

}  // namespace spoke::ctl
