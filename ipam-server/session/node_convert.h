// Messages of the wire to values of core/ and back. Pure. What an agent sends is checked here: a
// field that cannot be is an error, and an unknown one is none.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "ipam-server/budget/budget_book.h"
#include "ipam-server/ledger/agent_messages.h"
#include "ipam-server/ledger/attach_trace.h"
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/ledger/probe.h"
#include "ipam-server/policy/objects/rollout.h"
#include "ipam-server/traffic/traffic_sums.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::ipam {

// Errors: kInvalidArgument; the message names the field, and its place among many. Every field has
// a bound: of many values their count, of texts their length; names and ids beyond it are errors,
// and texts for people are cut. What a whole message may have is gRPC's to bound
// (kMaxAgentMessageBytes in node_service.h). Of a Hello, the message names the node as well.
absl::StatusOr<Hello> FromWire(const v1::Hello& in);
absl::StatusOr<AssignmentReport> FromWire(const v1::AssignmentReport& in);
absl::StatusOr<ReclaimAnswer> FromWire(const v1::ReclaimAnswer& in);
absl::StatusOr<Inventory> FromWire(const v1::Inventory& in);
// The address, and the MAC of who answers for it; empty: unknown.
absl::StatusOr<std::pair<ip::Address, std::string>> FromWire(const v1::ConflictReport& in);

// Takes kMaxWaitingPods pods and kMaxWaitingNamespaces namespaces of what waits; a node cannot
// serve more at once, and the rest is there when these are served.
Demand FromWire(const v1::Demand& in);
// Errors: kInvalidArgument (an address that is none). Of what is too long or too much, the first
// part is taken.
absl::StatusOr<AttachTraces> FromWire(const v1::AttachTraces& in);

// Never fails. Of what is too long or too much, the first part is taken: kMaxReportNamespaces
// namespaces, kMaxReportClasses classes of each, kMaxReportPods pods.
TrafficReport FromWire(const v1::TrafficReport& in);
// Errors: kInvalidArgument (an address or port that is none). Of too many results, the first part.
absl::StatusOr<ProbeAnswer> FromWire(const v1::ProbeResults& in);

// Never fails: no more connections are cut than there are.
ConnectionCut FromWire(const v1::CutCount& in);
PolicyTrialAnswer FromWire(const v1::PolicyTrialResult& in);

// Never fails. The first kMaxBudgetUses uses are taken, without those whose budget or team is no
// name; rates end at kMaxBudgetRate, so that those of all nodes together still fit.
BudgetReport FromWire(const v1::BudgetReport& in);

inline constexpr uint64_t kMaxTrackedConnections = uint64_t{1} << 32U;  // Of a node.
inline constexpr int kMaxReportNamespaces = 2048;
inline constexpr int kMaxReportClasses = 64;
inline constexpr int kMaxReportPods = 20;
inline constexpr int kMaxBudgetUses = 1000;
inline constexpr uint64_t kMaxBudgetRate = 10'000'000'000'000;  // Bits a second: 10 Tbit.
inline constexpr uint32_t kMaxBudgetConnections = 100'000'000;  // A second.
inline constexpr uint32_t kMaxWaitingPods = 4096;
inline constexpr size_t kMaxWaitingNamespaces = 256;

// All but what has a bundle in it (PolicyUpdate, PolicyTrial), which BundleMessages makes.
v1::ServerMessage ToWire(const ToAgent& message, std::string_view server_version);

}  // namespace spoke::ipam
