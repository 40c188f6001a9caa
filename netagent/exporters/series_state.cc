#include "netagent/exporters/series_state.h"

#include <utility>

#include "lib/base/status.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {
namespace {

using nlohmann::json;
using Level = SeriesState::Level;

// The version of the text: one that says another is not read.
constexpr int kVersion = 1;
constexpr size_t kMaxSlots = 10'000;

absl::Status Wrong() { return absl::InvalidArgumentError("not the state of traffic series"); }

json ToJson(const Flows& flows) {
  json out = json::object();
  for (const auto& [name, flow] : flows) out[name] = {flow.sent, flow.received};
  return out;
}

json ToJson(const Level& level) {
  json slots = json::array();
  for (const auto& [key, slot] : level.slots) {
    slots.push_back({{"namespace", key.pod_namespace},
                     {"pod", key.pod},
                     {"uid", key.uid},
                     {"base", ToJson(slot.base)},
                     {"shown", ToJson(slot.shown)}});
  }
  return {{"slots", std::move(slots)},
          {"departed", ToJson(level.departed)},
          {"other", ToJson(level.other)}};
}

// Returns the member of an object, or null.
const json& Member(const json& object, const char* key) {
  static const json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

absl::StatusOr<Flows> FlowsOf(const json& value) {
  if (!value.is_object()) return Wrong();
  Flows flows;
  for (const auto& [name, flow] : value.items()) {
    if (!flow.is_array() || flow.size() != 2 || !flow[0].is_number_unsigned() ||
        !flow[1].is_number_unsigned()) {
      return Wrong();
    }
    flows[name] = {.sent = flow[0].get<uint64_t>(), .received = flow[1].get<uint64_t>()};
  }
  return flows;
}

absl::StatusOr<Level> LevelOf(const json& value) {
  Level level;
  const json& slots = Member(value, "slots");
  if (!slots.is_array() || slots.size() > kMaxSlots) return Wrong();
  for (const json& slot : slots) {
    for (const char* name : {"namespace", "pod", "uid"}) {
      if (!Member(slot, name).is_string()) return Wrong();
    }
    ASSIGN_OR_RETURN(Flows base, FlowsOf(Member(slot, "base")));
    ASSIGN_OR_RETURN(Flows shown, FlowsOf(Member(slot, "shown")));
    level.slots.insert_or_assign(
        {.pod_namespace = Member(slot, "namespace").get<std::string>(),
         .pod = Member(slot, "pod").get<std::string>(),
         .uid = Member(slot, "uid").get<std::string>()},
        SeriesState::Slot{.base = std::move(base), .shown = std::move(shown)});
  }
  ASSIGN_OR_RETURN(level.departed, FlowsOf(Member(value, "departed")));
  ASSIGN_OR_RETURN(level.other, FlowsOf(Member(value, "other")));
  return level;
}

}  // namespace

std::string EncodeSeriesState(const SeriesState& state) {
  const json document = {{"version", kVersion},
                         {"epoch", absl::ToUnixNanos(state.epoch)},
                         {"namespaces", ToJson(state.namespaces)},
                         {"pods", ToJson(state.pods)}};
  // A uid may be any bytes.
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<SeriesState> DecodeSeriesState(std::string_view text) {
  if (text.size() > kMaxSeriesStateBytes) return Wrong();
  const json document = json::parse(text, nullptr, false);
  const json& version = Member(document, "version");
  const json& epoch = Member(document, "epoch");
  if (!version.is_number_integer() || version.get<int64_t>() != kVersion ||
      !epoch.is_number_integer()) {
    return Wrong();
  }
  SeriesState state;
  const auto nanos = epoch.get<int64_t>();
  // This is what ToUnixNanos() makes of times beyond its range.
  state.epoch = nanos == absl::ToUnixNanos(absl::InfinitePast()) ? absl::InfinitePast()
                                                                 : absl::FromUnixNanos(nanos);
  ASSIGN_OR_RETURN(state.namespaces, LevelOf(Member(document, "namespaces")));
  ASSIGN_OR_RETURN(state.pods, LevelOf(Member(document, "pods")));
  return state;
}

}  // namespace spoke::netagent
