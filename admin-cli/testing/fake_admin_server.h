// A server for tests: real gRPC on a socket, with a state that calls read and change. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ctl {

struct FakeState {
  v1::GetStatusResponse status;
  std::string frozen;
  v1::RecoveryInfo recovery;
  std::map<std::string, v1::NodeInfo> nodes;
  std::map<std::string, std::string> node_data;  // By part; of any node.
  std::vector<v1::RevokedIdentity> revoked;
  v1::ListRootsResponse roots;
  std::map<std::string, v1::PoolInfo> pools;
  std::map<std::string, v1::AddressInfo> addresses;
  std::map<std::string, v1::ReservationInfo> reservations;
  // The objects by kind and name, as YAML.
  std::map<std::pair<std::string, std::string>, std::string> objects;
  std::map<std::pair<std::string, std::string>, std::string> specs;  // JSON of those that have any.
  uint64_t policy_version = 1;
  v1::GetAddressHistoryResponse history;
  v1::GetRolloutResponse rollout;
  v1::ResumeRolloutResponse resumed;
  v1::ApplyResponse undone;
  v1::ListOperatorLogResponse operator_log;
  v1::EstimateCutsResponse cuts;
  // The audit's messages; --repair repairs what has a repair.
  std::vector<v1::AuditResponse> audit;
  v1::ExplainResponse explain;
  v1::WhatIfResponse what_if;
  v1::GetTopResponse top;
  v1::GetTrafficResponse traffic;
  v1::GetTrafficCourseResponse course;
  // What is answered by node, once it has entries; else `traffic` is.
  v1::GetTrafficResponse node_traffic;
  v1::GetReachabilityResponse reachability;
  std::vector<v1::CheckNodesResponse> check;  // What a check of nodes answers, one by one.
  std::map<std::string, v1::BudgetInfo> budgets;
  std::vector<v1::NodeBudgetInfo> budget_nodes;
  std::vector<v1::VerifyPolicyResponse> verified;
  std::vector<v1::EventInfo> events;
  std::vector<v1::BackupResponse> backup;

  // The calls that fail, by the name of the method.
  std::map<std::string, absl::Status> refusals;
  // The calls that are never answered.
  std::string silent_method;
  // The requests that came, as text: "GetNode name: \"node1\"".
  std::vector<std::string> requests;
};

class FakeAdminServer {
 public:
  // Listens at `target` until it is destroyed.
  explicit FakeAdminServer(const std::string& target);
  ~FakeAdminServer();
  FakeAdminServer(const FakeAdminServer&) = delete;
  FakeAdminServer& operator=(const FakeAdminServer&) = delete;

  // Reads or changes the state while no call does.
  void With(const std::function<void(FakeState&)>& visit);
  std::string last_request();

 private:
  class Service;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace spoke::ctl
