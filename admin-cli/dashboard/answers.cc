#include "admin-cli/dashboard/answers.h"

#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "admin-cli/dashboard/page_json.h"
#include "lib/base/status.h"
#include "lib/node_api/traffic_classes.h"

namespace spoke::ctl {
namespace {

constexpr uint32_t kLines = 8;     // The most namespaces of a plot.
constexpr uint32_t kEvents = 100;  // The last events that are shown.

}  // namespace

Answers::Ask Answers::AskOf(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Ask>, 8> kAsks = {
      {{"fleet", &Answers::Fleet},
       {"pools", &Answers::Pools},
       {"nodes", &Answers::Nodes},
       {"traffic", &Answers::Traffic},
       {"budgets", &Answers::Budgets},
       {"rollout", &Answers::Rollout},
       {"events", &Answers::Events},
       {"story", &Answers::Story}}};
  for (const auto& [known, ask] : kAsks) {
    if (known == name) return ask;
  }
  return nullptr;
}

std::shared_ptr<const PageAnswer> Answers::Of(const std::string& name,
                                              const std::string& argument) {
  const Ask ask = AskOf(name);
  if (ask == nullptr) return nullptr;
  return cache_.Of(name + "?" + argument, [&] {
    const absl::StatusOr<Json> data = (this->*ask)(argument);
    Json body = {{"at", absl::ToUnixMillis(clock_.Now())}};
    if (data.ok()) {
      body["data"] = *data;
    } else {
      body.update(ErrorJson(data.status()));
    }
    return PageAnswer{.status = HttpStatusOf(data.status()), .body = Line(body)};
  });
}

absl::StatusOr<Json> Answers::Fleet(const std::string& /*argument*/) {
  ASSIGN_OR_RETURN(const v1::GetStatusResponse status, client_.Ask(kGetStatus));
  ASSIGN_OR_RETURN(const v1::RecoveryInfo recovery, client_.Ask(kGetRecovery));
  Json fleet = FleetJson(status, recovery);
  fleet["server"] = client_.server();
  fleet["interval_ms"] = absl::ToInt64Milliseconds(interval_);
  return fleet;
}

absl::StatusOr<Json> Answers::Pools(const std::string& /*argument*/) {
  ASSIGN_OR_RETURN(const v1::ListPoolsResponse pools, client_.Ask(kListPools));
  return PoolsJson(pools);
}

absl::StatusOr<Json> Answers::Nodes(const std::string& /*argument*/) {
  std::vector<v1::NodeInfo> nodes;
  RETURN_IF_ERROR(client_.Read(kListNodes, {}, [&](const v1::ListNodesResponse& batch) {
    nodes.insert(nodes.end(), batch.nodes().begin(), batch.nodes().end());
    return absl::OkStatus();
  }));
  v1::GetTrafficRequest request;
  request.set_by(v1::GetTrafficRequest::NODE);
  request.set_traffic_class(std::string(node_api::kExternalTraffic));
  ASSIGN_OR_RETURN(const v1::GetTrafficResponse traffic, client_.Ask(kGetTraffic, request));
  std::map<std::string, uint64_t> totals;
  for (const v1::TrafficEntry& entry : traffic.entries()) {
    totals[entry.name()] += entry.sent() + entry.received();
  }
  std::set<std::string> lossy;
  // A server of an older version does not know the call, and nobody is suspected there.
  if (const auto reachability = client_.Ask(kGetReachability); reachability.ok()) {
    for (const v1::ReachabilityNode& node : reachability->suspects()) lossy.insert(node.name());
  }
  absl::MutexLock lock(&mutex_);
  node_rates_.Add(traffic.now_unix_ms(), std::move(totals));
  return NodesJson(nodes, node_rates_.BitsPerSecond(), lossy);
}

absl::StatusOr<Json> Answers::Traffic(const std::string& argument) {
  v1::GetTrafficCourseRequest request;
  request.set_traffic_class(argument);
  request.set_limit(kLines);
  ASSIGN_OR_RETURN(const v1::GetTrafficCourseResponse course,
                   client_.Ask(kGetTrafficCourse, request));
  return TrafficJson(course);
}

absl::StatusOr<Json> Answers::Budgets(const std::string& /*argument*/) {
  ASSIGN_OR_RETURN(const v1::GetBudgetsResponse budgets, client_.Ask(kGetBudgets));
  return BudgetsJson(budgets);
}

absl::StatusOr<Json> Answers::Rollout(const std::string& /*argument*/) {
  ASSIGN_OR_RETURN(const v1::GetRolloutResponse rollout, client_.Ask(kGetRollout));
  return RolloutJson(rollout);
}

absl::StatusOr<Json> Answers::Events(const std::string& /*argument*/) {
  v1::ListEventsRequest request;
  request.set_limit(kEvents);
  std::vector<v1::EventInfo> events;
  RETURN_IF_ERROR(client_.Read(kListEvents, request, [&](const v1::ListEventsResponse& batch) {
    events.insert(events.end(), batch.events().begin(), batch.events().end());
    return absl::OkStatus();
  }));
  return EventsJson(events);
}

absl::StatusOr<Json> Answers::Story(const std::string& argument) {
  ASSIGN_OR_RETURN(const v1::ExplainRequest request, SubjectOf(argument));
  ASSIGN_OR_RETURN(const v1::ExplainResponse response, client_.Ask(kExplain, request));
  return StoryJson(request, response);
}

}  // namespace spoke::ctl
