#include "admin-cli/dashboard/page_json.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "admin-cli/budget/budget_views.h"
#include "admin-cli/output/views.h"
#include "lib/ip/address.h"

namespace spoke::ctl {
namespace {

// No name of a pod with its namespace, of a node or of an address is longer.
constexpr size_t kMostSubject = 512;

Json FamilyJson(const v1::PoolInfo& counts) {
  return {{"usable", counts.usable()},       {"free", counts.free()},
          {"attaching", counts.attaching()}, {"available", counts.available()},
          {"in_use", counts.in_use()},       {"cooldown", counts.cooldown() + counts.released()},
          {"detaching", counts.detaching()}, {"quarantined", counts.quarantined()}};
}

Json AddJson(const v1::AddTrace& add) {
  Json value = {{"pod", PodOf(add.pod_namespace(), add.pod_name())},
                {"node", add.node()},
                {"interface", add.ifname()},
                {"addresses", JsonList(add.addresses())},
                {"trace_id", add.trace_id()},
                {"since", add.since_unix_ms()},
                {"error", add.error()},
                {"steps", Json::array()}};
  for (const v1::AddTrace::Step& step : add.steps()) {
    value["steps"].push_back(
        {{"name", step.name()}, {"begin_us", step.begin_us()}, {"took_us", step.took_us()}});
  }
  return value;
}

}  // namespace

Json FleetJson(const v1::GetStatusResponse& status, const v1::RecoveryInfo& recovery) {
  Json value = {{"version", status.version()},
                {"started", status.started_unix_ms()},
                {"store", status.store()},
                {"cloud", status.cloud()},
                {"nodes", status.nodes()},
                {"nodes_connected", status.nodes_connected()},
                {"policy_version", status.policy_version()},
                {"releases_frozen", status.releases_frozen()},
                {"reservations", status.reservations()},
                {"last_audit", status.last_audit_unix_ms()},
                {"audit_differences", status.audit_differences()},
                {"audit_cloud_error", status.audit_cloud_error()},
                {"problems", JsonList(status.problems())},
                {"recovery", recovery.phase() == "open" ? "" : recovery.phase()},
                {"recovery_reason", recovery.reason()}};
  // The families' addresses are never added up: pods of two families have one of each.
  if (status.has_ipv4()) value["ipv4"] = FamilyJson(status.ipv4());
  if (status.has_ipv6()) value["ipv6"] = FamilyJson(status.ipv6());
  return value;
}

Json PoolsJson(const v1::ListPoolsResponse& pools) {
  return JsonList(pools.pools(), [](const v1::PoolInfo& pool) {
    Json value = {{"name", pool.name()},
                  {"cidr", pool.cidr()},
                  {"family", pool.cidr().find(':') == std::string::npos ? 4 : 6},
                  {"vnet", pool.vnet()}};
    value.update(FamilyJson(pool));
    value["reserved"] = pool.reserved();
    return value;
  });
}

Json RolloutJson(const v1::GetRolloutResponse& rollout) {
  return {{"version", rollout.version()},
          {"nodes", rollout.nodes()},
          {"current", rollout.nodes_current()},
          {"refused", rollout.nodes_refused()},
          {"held", rollout.nodes_held()},
          {"away", rollout.nodes_away()},
          {"behind", rollout.behind_size()},
          {"connections", rollout.connections()},
          {"connections_cut", rollout.connections_cut()},
          {"held_connections", rollout.held_connections()},
          {"held_connections_cut", rollout.held_connections_cut()}};
}

Json BudgetsJson(const v1::GetBudgetsResponse& budgets) {
  return JsonList(budgets.budgets(), [](const v1::BudgetInfo& budget) {
    return Json{{"name", budget.name()},
                {"destination", DestinationOf(budget)},
                {"direction", DirectionOf(budget)},
                {"mode", ModeOf(budget)},
                {"state", StateCell(budget).text},
                {"capacity", budget.capacity()},
                {"usage", budget.usage()},
                {"granted", budget.granted()},
                {"teams", JsonList(budget.teams(), [](const v1::BudgetTeamInfo& team) {
                   return Json{{"name", team.name()},
                               {"usage", team.usage()},
                               {"demand", team.demand()},
                               {"granted", team.granted()},
                               {"throttled", team.throttled()}};
                 })}};
  });
}

Json EventsJson(const std::vector<v1::EventInfo>& events) {
  Json list = Json::array();
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    Json fields = Json::object();
    for (const auto& [key, value] :
         std::map<std::string, std::string>(event->fields().begin(), event->fields().end())) {
      fields[key] = value;
    }
    list.push_back({{"time", event->unix_ms()},
                    {"level", event->level()},
                    {"event", event->event()},
                    {"fields", fields}});
  }
  return list;
}

Json TrafficJson(const v1::GetTrafficCourseResponse& course) {
  return {{"classes", JsonList(course.classes())},
          {"times", JsonList(course.times_unix_ms())},
          {"lines", JsonList(course.lines(), [](const v1::TrafficLine& line) {
             return Json{{"name", line.name()},
                         {"rates", JsonList(line.bits_per_second(),
                                            [](double rate) { return std::llround(rate); })}};
           })}};
}

Json StoryJson(const v1::ExplainRequest& request, const v1::ExplainResponse& response) {
  std::string kind = "node";
  if (!request.pod().empty()) kind = "pod";
  if (!request.address().empty()) kind = "ip";
  return {{"kind", kind},
          {"name", request.pod() + request.node() + request.address()},
          {"summary", response.summary()},
          {"details", JsonList(response.details())},
          {"eta", response.eta_unix_ms()},
          {"nodes", JsonList(response.nodes())},
          {"adds", JsonList(response.adds(), AddJson)},
          {"without_adds", JsonList(response.without_adds())}};
}

absl::StatusOr<v1::ExplainRequest> SubjectOf(std::string_view text) {
  std::string name(text);
  absl::StripAsciiWhitespace(&name);
  if (name.empty()) return absl::InvalidArgumentError("name an address, a node, or NAMESPACE/POD");
  if (name.size() > kMostSubject) return absl::InvalidArgumentError("no name is that long");
  v1::ExplainRequest request;
  if (ip::Address::Parse(name).ok()) {
    request.set_address(name);
    return request;
  }
  const size_t slash = name.find('/');
  if (slash == std::string::npos) {
    request.set_node(name);
    return request;
  }
  if (slash == 0 || slash + 1 == name.size() || name.find('/', slash + 1) != std::string::npos) {
    return absl::InvalidArgumentError("a pod is named as NAMESPACE/POD");
  }
  request.set_pod(name);
  return request;
}

int HttpStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 502;
  }
}

Json ErrorJson(const absl::Status& status) {
  return {{"error", absl::AsciiStrToLower(absl::StatusCodeToString(status.code()))},
          {"message", base::MessageOf(status)}};
}

std::string Line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace spoke::ctl
