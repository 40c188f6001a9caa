#include "netagent/maintenance/scheduled_events.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/node_api/fields.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {
namespace {

using nlohmann::json;
using node_api::CheckName;
using node_api::MaintenanceEvent;
using node_api::MaintenanceKind;

absl::Status Wrong(std::string_view place, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", place, what));
}

absl::StatusOr<std::string> Text(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return "";
  if (!it->is_string()) return Wrong(key, "is not text");
  return it->get<std::string>();
}

std::optional<MaintenanceKind> KindOf(std::string_view name) {
  for (size_t i = 0; i < node_api::kMaintenanceKinds; ++i) {
    const auto kind = static_cast<MaintenanceKind>(i);
    if (absl::EqualsIgnoreCase(std::string(name), std::string(NameOf(kind)))) return kind;
  }
  return std::nullopt;
}

// "Mon, 11 Apr 2022 22:26:58 GMT"; "": it has begun.
absl::Time TimeOf(const std::string& text) {
  absl::Time time;
  if (absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", text, absl::UTCTimeZone(), &time, nullptr)) {
    return time;
  }
  return absl::InfinitePast();
}

// Puts the event's machines but `self` into `event`. Returns whether it is for `self`.
absl::StatusOr<bool> TakeResources(const json& item, std::string_view self,
                                   MaintenanceEvent& event) {
  const auto resources = item.find("Resources");
  if (resources == item.end() || resources->is_null()) return true;
  if (!resources->is_array()) return Wrong("Resources", "is no list");
  bool mine = resources->empty();
  for (const json& resource : *resources) {
    if (!resource.is_string()) return Wrong("Resources", "holds something that is not text");
    const auto& name = resource.get_ref<const std::string&>();
    if (absl::EqualsIgnoreCase(name, std::string(self))) {
      mine = true;
      continue;
    }
    ++event.other_machines;
    if (event.others.size() < node_api::kMaxMaintenanceOthers &&
        CheckName("Resources", name, node_api::kMaxNameBytes).ok()) {
      event.others.push_back(name);
    }
  }
  return mine;
}

// nullopt: it is nothing for this machine.
absl::StatusOr<std::optional<MaintenanceEvent>> EventOf(const json& item, std::string_view self) {
  if (!item.is_object()) return Wrong("Events", "holds something that is no object");
  MaintenanceEvent event;
  ASSIGN_OR_RETURN(event.id, Text(item, "EventId"));
  // The server takes no other, and events are agreed to by their ids.
  RETURN_IF_ERROR(CheckName("EventId", event.id, node_api::kMaxNameBytes));
  ASSIGN_OR_RETURN(const std::string kind, Text(item, "EventType"));
  ASSIGN_OR_RETURN(const bool mine, TakeResources(item, self, event));
  const std::optional<MaintenanceKind> known = KindOf(kind);
  if (!mine || !known) return std::nullopt;
  event.kind = *known;
  ASSIGN_OR_RETURN(const std::string status, Text(item, "EventStatus"));
  event.started = absl::EqualsIgnoreCase(status, "Started");
  ASSIGN_OR_RETURN(const std::string not_before, Text(item, "NotBefore"));
  event.not_before = TimeOf(not_before);
  ASSIGN_OR_RETURN(event.description, Text(item, "Description"));
  ASSIGN_OR_RETURN(event.origin, Text(item, "EventSource"));
  const auto seconds = item.find("DurationInSeconds");
  if (seconds != item.end() && seconds->is_number_integer()) {
    // -1 says that nobody knows, or that it makes no difference.
    event.duration = absl::Seconds(std::clamp<int64_t>(seconds->get<int64_t>(), 0, 86400));
  }
  return event;
}

}  // namespace

absl::StatusOr<node_api::Maintenance> ParseScheduledEvents(std::string_view text,
                                                           std::string_view self) {
  if (text.size() > kMaxScheduledEventsBytes) {
    return absl::InvalidArgumentError(
        fmt::format("is longer than {} bytes", kMaxScheduledEventsBytes));
  }
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return absl::InvalidArgumentError("is no JSON object");
  node_api::Maintenance maintenance;
  const auto events = document.find("Events");
  if (events == document.end() || events->is_null()) return maintenance;
  if (!events->is_array()) return Wrong("Events", "is no list");
  for (const json& item : *events) {
    ASSIGN_OR_RETURN(std::optional<MaintenanceEvent> event, EventOf(item, self));
    if (event) maintenance.events.push_back(*std::move(event));
  }
  const auto order = [](const MaintenanceEvent& event) {
    return std::tuple(!event.started, event.not_before, event.id);
  };
  std::sort(maintenance.events.begin(), maintenance.events.end(),
            [&](const auto& a, const auto& b) { return order(a) < order(b); });
  if (maintenance.events.size() > node_api::kMaxMaintenanceEvents) {
    maintenance.events.resize(node_api::kMaxMaintenanceEvents);
  }
  return maintenance;
}

std::string StartRequestsOf(const std::vector<std::string>& events) {
  json requests = json::array();
  for (const std::string& event : events) requests.push_back({{"EventId", event}});
  return json{{"StartRequests", std::move(requests)}}.dump();
}

}  // namespace spoke::netagent
