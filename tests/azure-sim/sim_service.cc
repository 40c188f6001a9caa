#include "tests/azure-sim/sim_service.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "tests/azure-sim/tokens.h"

namespace spoke::azure_sim {
namespace {

constexpr size_t kMostPlannedFaults = 1000;

constexpr std::array<std::string_view, 8> kFaultWords = {"none",  "stall",     "drop", "truncate",
                                                         "reset", "malformed", "html", "redirect"};

std::string Text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double Number(const Json& object, const char* key, double otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

http::Response Problem(int status, std::string_view what) {
  return JsonResponse(status, {{"error", what}});
}

http::Response Done() { return JsonResponse(200, {{"ok", true}}); }

}  // namespace

std::string FormatWire(const ArmModel& arm) {
  std::vector<std::tuple<ip::Prefix, ip::MacAddress, std::string>> rows;
  for (const ArmModel::OnWire& each : arm.Wire()) {
    // The primary is the NIC's own: the fabric knows it already.
    if (each.entry->primary) continue;
    rows.emplace_back(each.entry->range, each.nic->mac, each.instance->node);
  }
  std::sort(rows.begin(), rows.end());
  std::string text = "# address\tnic\tnode\n";
  for (const auto& [range, mac, node] : rows) {
    text += fmt::format("{}\t{}\t{}\n", range.ToString(), mac.ToString(), node);
  }
  return text;
}

SimService::SimService(std::unique_ptr<ArmModel> arm, const os::Clock& clock,
                       std::string attachments_file)
    : clock_(clock),
      attachments_file_(std::move(attachments_file)),
      arm_(std::move(arm)),
      imds_(arm_->backend()),
      wireserver_(arm_->backend()) {}

absl::Time SimService::Now() {
  latest_ = std::max(latest_, clock_.Now());
  return latest_;
}

absl::Status SimService::Publish() {
  if (attachments_file_.empty()) return absl::OkStatus();
  const uint64_t version = arm_->world().wire_version();
  if (ever_published_ && version == published_) return absl::OkStatus();
  RETURN_IF_ERROR(base::Annotate(
      os::WriteFileAtomic(attachments_file_, FormatWire(*arm_), os::Durability::kVisible),
      "publish attachments"));
  published_ = version;
  ever_published_ = true;
  return absl::OkStatus();
}

absl::Status SimService::Tick() {
  absl::MutexLock lock(&mutex_);
  arm_->Advance(Now());
  return Publish();
}

absl::Status SimService::CheckInstance(std::string_view id) {
  absl::MutexLock lock(&mutex_);
  if (arm_->world().FindInstance(id) != nullptr) return absl::OkStatus();
  return absl::NotFoundError(fmt::format("{}: there is no such instance", id));
}

std::string SimService::FirstInstance() {
  const std::vector<ArmModel::OnWire> wire = arm_->Wire();
  return wire.empty() ? "" : wire.front().instance->id;
}

TransportFault SimService::FaultFor(const http::Request& request) {
  for (auto it = planned_.begin(); it != planned_.end(); ++it) {
    if (!it->method.empty() && it->method != request.method) continue;
    if (Lower(request.url).find(Lower(it->part)) == std::string::npos) continue;
    TransportFault fault = it->fault;
    if (--it->count <= 0) planned_.erase(it);
    return fault;
  }
  return {};
}

Answer SimService::Handle(const http::Request& request) {
  const Target target = ParseTarget(request.url);
  absl::MutexLock lock(&mutex_);
  const absl::Time now = Now();
  Answer answer;
  const std::string_view first = target.Key(0);
  if (first == "sim") {
    arm_->Advance(now);
    answer.response = Admin(request, target);
  } else {
    answer.fault = FaultFor(request);
    const std::string instance(request.headers.Find("X-Sim-Instance").value_or(""));
    if (first == "metadata") {
      answer.response = imds_.Handle(request, instance.empty() ? FirstInstance() : instance, now);
    } else if (first == "machine") {
      answer.response =
          wireserver_.Handle(request, instance.empty() ? FirstInstance() : instance, now);
    } else if (target.size() >= 3 && target.keys.back() == "token") {
      answer.response = Login(request, target);
    } else {
      answer.response = arm_->Handle(request, now);
    }
  }
  // The next tick tries again, and says what is wrong.
  (void)Publish();
  return answer;
}

Answer SimService::HandleImds(const http::Request& request, std::string_view instance_id) {
  absl::MutexLock lock(&mutex_);
  return {imds_.Handle(request, instance_id, Now()), FaultFor(request)};
}

Answer SimService::HandleWireserver(const http::Request& request, std::string_view instance_id) {
  absl::MutexLock lock(&mutex_);
  return {wireserver_.Handle(request, instance_id, Now()), FaultFor(request)};
}

// Answers what the directory does to POST /TENANT/oauth2/v2.0/token: a secret, or a projected token
// that is exchanged. Any of either is good, but an empty one is refused.
http::Response SimService::Login(const http::Request& request, const Target& target) {
  const std::map<std::string, std::string> form = ParseQuery(request.body);
  const auto field = [&form](const char* key) {
    const auto found = form.find(key);
    return found == form.end() ? std::string() : found->second;
  };
  const bool proven =
      !field("client_secret").empty() ||
      (!field("client_assertion").empty() &&
       field("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
  if (request.method != "POST" || target.Key(1) != "oauth2" ||
      field("grant_type") != "client_credentials" || field("client_id").empty() || !proven) {
    return JsonResponse(400, {{"error", "invalid_request"},
                              {"error_description",
                               "AADSTS900144: The request body must contain "
                               "the required parameters."}});
  }
  if (arm_->knobs().identity_missing) {
    return JsonResponse(401, {{"error", "invalid_client"},
                              {"error_description",
                               "AADSTS7000215: Invalid client secret "
                               "provided."}});
  }
  const absl::Duration lifetime = arm_->knobs().token_lifetime;
  std::string principal = field("client_id");
  std::replace(principal.begin(), principal.end(), '.', '-');
  return JsonResponse(200,
                      {{"token_type", "Bearer"},
                       {"expires_in", absl::ToInt64Seconds(lifetime)},
                       {"ext_expires_in", absl::ToInt64Seconds(lifetime)},
                       {"access_token", FormatToken({principal, latest_, latest_ + lifetime})}});
}

http::Response SimService::Admin(const http::Request& request, const Target& target) {
  const std::string_view what = target.Key(1);
  if (request.method == "GET") {
    if (what == "state") return State();
    if (what == "counters") return CountersJson();
    if (what == "faults") {
      http::Response response = JsonResponse(200, Json());
      response.body = FormatKnobs(arm_->knobs());
      return response;
    }
    return Problem(404, "GET /sim/state, /sim/counters or /sim/faults");
  }
  if (request.method != "POST") return Problem(405, "GET or POST");
  if (what == "faults") {
    const absl::Status status = MergeKnobs(request.body, &arm_->knobs());
    return status.ok() ? Done() : Problem(400, base::MessageOf(status));
  }
  const Json body = Json::parse(request.body, nullptr, false);
  if (!body.is_object()) return Problem(400, "the body is not a JSON object");
  if (what == "instances") return ChangeInstance(body);
  if (what == "scale") return Scale(body);
  if (what == "events") return PlanEvent(body);
  if (what == "transport") return PlanFault(body);
  return Problem(404, "POST /sim/faults, /sim/instances, /sim/scale, /sim/events, /sim/transport");
}

http::Response SimService::State() {
  Json instances = Json::array();
  const Instance* last = nullptr;
  for (const ArmModel::OnWire& each : arm_->Wire()) {
    if (each.instance != last) {
      last = each.instance;
      instances.push_back({{"id", last->id},
                           {"name", last->name},
                           {"node", last->node},
                           {"state", NameOf(last->state)},
                           {"etag", last->etag},
                           {"mac", each.nic->mac.ToString()},
                           {"addresses", Json::array()}});
    }
    instances.back()["addresses"].push_back({{"name", each.entry->name},
                                             {"range", each.entry->range.ToString()},
                                             {"primary", each.entry->primary}});
  }
  return JsonResponse(200, {{"instances", std::move(instances)}});
}

http::Response SimService::CountersJson() {
  const Counters& counters = arm_->counters();
  Json calls = Json::object();
  for (const auto& [key, count] : counters.calls) {
    calls[key.first][fmt::format("{}", key.second)] = count;
  }
  return JsonResponse(200, {{"calls", std::move(calls)},
                            {"throttled", counters.throttled},
                            {"sent_into_closed_gate", counters.sent_into_closed_gate},
                            {"foreign_writes", counters.foreign_writes},
                            {"foreign_writes_lost", counters.foreign_writes_lost},
                            {"operations_succeeded", counters.operations_succeeded},
                            {"operations_failed", counters.operations_failed}});
}

http::Response SimService::ChangeInstance(const Json& body) {
  Instance* instance = arm_->world().FindInstance(Text(body, "id"));
  if (instance == nullptr) return Problem(404, "there is no such instance");
  const std::string action = Text(body, "action");
  Compute& compute = arm_->compute();
  if (action == "delete") {
    compute.DeleteInstance(*instance, latest_);
  } else if (action == "remove") {
    compute.RemoveInstance(*instance, latest_);
  } else if (action == "reimage") {
    compute.Reimage(*instance, latest_);
  } else if (action == "upgrade") {
    compute.Upgrade({instance}, latest_);
  } else if (action == "foreign-write") {
    compute.WriteAsForeigner(*instance);
  } else {
    return Problem(400, "action: delete, remove, reimage, upgrade or foreign-write");
  }
  return Done();
}

http::Response SimService::Scale(const Json& body) {
  ScaleSet* set = arm_->world().FindSet(Text(body, "id"));
  const double add = Number(body, "add", 1);
  if (set == nullptr) return Problem(404, "there is no such scale set");
  if (add < 1 || add > 1000) return Problem(400, "add: from 1 to 1000");
  if (!arm_->compute().AddInstances(*set, static_cast<int>(add), latest_)) {
    return Problem(409, "the subnet is full");
  }
  return Done();
}

http::Response SimService::PlanEvent(const Json& body) {
  ScheduledEvent event;
  if (const std::string type = Text(body, "type"); !type.empty()) event.type = type;
  if (body.contains("resources") && body["resources"].is_array()) {
    for (const Json& name : body["resources"]) {
      if (name.is_string()) event.resources.push_back(name.get<std::string>());
    }
  }
  if (event.resources.empty()) return Problem(400, "resources: names of instances");
  event.not_before = latest_ + absl::Seconds(Number(body, "notice_s", 900));
  event.description = Text(body, "description");
  if (const std::string source = Text(body, "source"); !source.empty()) event.source = source;
  event.over_after = absl::Seconds(Number(body, "over_after_s", 600));
  event.duration_seconds = static_cast<int>(Number(body, "duration_s", -1));
  return JsonResponse(200, {{"id", imds_.Schedule(std::move(event))}});
}

http::Response SimService::PlanFault(const Json& body) {
  Planned planned;
  planned.method = Text(body, "method");
  planned.part = Text(body, "path");
  planned.count = static_cast<int>(Number(body, "count", 1));
  planned.fault.seconds = Number(body, "seconds", 5);
  planned.fault.location = Text(body, "location");
  const auto* const word = std::find(kFaultWords.begin(), kFaultWords.end(), Text(body, "fault"));
  if (word == kFaultWords.end() || planned.count < 1 || planned_.size() >= kMostPlannedFaults) {
    return Problem(400,
                   "fault: stall, drop, truncate, reset, malformed, html or redirect; "
                   "count: at least 1");
  }
  planned.fault.kind = static_cast<TransportFault::Kind>(word - kFaultWords.begin());
  if (planned.fault.kind == TransportFault::Kind::kNone) {
    planned_.clear();
  } else {
    planned_.push_back(std::move(planned));
  }
  return Done();
}

}  // namespace spoke::azure_sim
