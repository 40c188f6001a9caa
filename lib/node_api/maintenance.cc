#include "lib/node_api/maintenance.h"

#include <algorithm>
#include <array>
#include <optional>

#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/node_api/fields.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {
namespace {

using base::CutText;

constexpr std::array<std::string_view, kMaintenanceKinds> kNames = {"Freeze", "Reboot", "Redeploy",
                                                                    "Preempt", "Terminate"};
// Times and durations beyond these are nobody's maintenance.
constexpr int64_t kLastUnixMs = 253'402'300'799'000;  // The end of the year 9999.
constexpr int64_t kMostMs = 30LL * 24 * 3600 * 1000;

std::optional<MaintenanceKind> KindOf(std::string_view name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<MaintenanceKind>(found - kNames.begin());
}

}  // namespace

std::string_view NameOf(MaintenanceKind kind) { return kNames.at(static_cast<size_t>(kind)); }

void ToWire(const MaintenanceEvent& in, v1::MaintenanceEvent& out) {
  out.set_id(in.id);
  out.set_kind(std::string(NameOf(in.kind)));
  out.set_started(in.started);
  if (in.not_before != absl::InfinitePast()) {
    out.set_not_before_unix_ms(absl::ToUnixMillis(in.not_before));
  }
  out.set_duration_ms(absl::ToInt64Milliseconds(in.duration));
  out.set_description(CutText(in.description, kMaxReasonBytes));
  out.set_origin(CutText(in.origin, kMaxNameBytes));
  out.set_other_machines(in.other_machines);
  const size_t named = std::min(in.others.size(), static_cast<size_t>(kMaxMaintenanceOthers));
  for (size_t i = 0; i < named; ++i) out.add_others(in.others[i]);
}

void ToWire(const Maintenance& in, v1::Maintenance& out) {
  const size_t count = std::min(in.events.size(), static_cast<size_t>(kMaxMaintenanceEvents));
  for (size_t i = 0; i < count; ++i) ToWire(in.events[i], *out.add_events());
}

absl::StatusOr<Maintenance> FromWire(const v1::Maintenance& in) {
  Maintenance maintenance;
  for (int i = 0; i < std::min(in.events_size(), kMaxMaintenanceEvents); ++i) {
    const v1::MaintenanceEvent& said = in.events(i);
    if (absl::Status named = CheckName("id", said.id(), kMaxNameBytes); !named.ok()) {
      return At("events", i, named);
    }
    const std::optional<MaintenanceKind> kind = KindOf(said.kind());
    if (!kind) continue;
    MaintenanceEvent& event = maintenance.events.emplace_back();
    event.id = said.id();
    event.kind = *kind;
    event.started = said.started();
    if (said.not_before_unix_ms() > 0) {
      event.not_before = absl::FromUnixMillis(std::min(said.not_before_unix_ms(), kLastUnixMs));
    }
    event.duration = absl::Milliseconds(std::clamp(said.duration_ms(), int64_t{0}, kMostMs));
    event.description = CutText(said.description(), kMaxReasonBytes);
    event.origin = CutText(said.origin(), kMaxNameBytes);
    event.other_machines = said.other_machines();
    for (int n = 0; n < std::min(said.others_size(), kMaxMaintenanceOthers); ++n) {
      if (absl::Status named = CheckName("others", said.others(n), kMaxNameBytes); !named.ok()) {
        return At("events", i, named);
      }
      event.others.push_back(said.others(n));
    }
  }
  return maintenance;
}

void ToWire(const MaintenanceStart& in, v1::MaintenanceStart& out) {
  out.set_id(in.id);
  for (const std::string& event : in.events) out.add_events(event);
}

absl::StatusOr<MaintenanceStart> FromWire(const v1::MaintenanceStart& in) {
  RETURN_IF_ERROR(CheckCount("events", in.events_size(), kMaxMaintenanceEvents));
  MaintenanceStart start{.id = in.id()};
  for (int i = 0; i < in.events_size(); ++i) {
    if (absl::Status named = CheckName("id", in.events(i), kMaxNameBytes); !named.ok()) {
      return At("events", i, named);
    }
    start.events.push_back(in.events(i));
  }
  return start;
}

}  // namespace spoke::node_api
