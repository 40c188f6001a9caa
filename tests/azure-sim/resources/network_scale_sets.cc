// The NICs of scale sets. They are only read: what is written goes through the instance's model.
#include <algorithm>
#include <charconv>
#include <utility>

#include "fmt/core.h"
#include "tests/azure-sim/resources/network.h"

namespace spoke::azure_sim {

Json Network::NicJson(Renderer& renderer, const Nic& nic) {
  return renderer.Of(nic, backend_.random().Chance(backend_.knobs().nic_list_null));
}

http::Response Network::HandleBelowScaleSet(Call& call, ResourceGroup& group) {
  call.provider = Provider::kNetwork;
  const bool of_set = call.target.Key(8) == "networkinterfaces";
  call.kind = of_set ? "set.nics" : call.target.size() > 11 ? "instance.nic" : "instance.nics";
  const auto found = group.sets.find(call.target.keys[7]);
  if (found == group.sets.end()) {
    return ParentNotFound(call.target.segments[7]);
  }
  ScaleSet& set = *found->second;
  if (auto refused = Ask(call, group.subscription, set.spec.location)) return *refused;
  if (of_set) return ListOfSet(call, set);
  const std::string_view text = call.target.Segment(9);
  int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  Instance* instance = World::FindInstance(set, number);
  if (instance == nullptr) {
    return NestedNotFound(fmt::format("{}/virtualMachines/{}", set.id, text));
  }
  return call.target.size() > 11 ? OneOfInstance(call, *instance) : ListOfInstance(call, *instance);
}

http::Response Network::ListOfSet(Call& call, ScaleSet& set) {
  const Knobs& knobs = backend_.knobs();
  const std::optional<uint64_t> cursor = Backend::CursorOf(call);
  if (!cursor.has_value()) return ErrorResponse(400, "InvalidSkipToken", "Not a skip token.");
  if (set.spec.orchestration == Orchestration::kFlexible ||
      (set.instances.empty() && knobs.empty_set_has_no_nic_list)) {
    return NestedNotFound(fmt::format("{}/networkInterfaces", set.id));
  }
  Json value = Json::array();
  if (backend_.random().Chance(knobs.nic_list_empty)) return JsonResponse(200, {{"value", value}});
  const auto page = static_cast<size_t>(std::max(knobs.page_size, 1));
  Renderer renderer = backend_.RendererFor(call);
  Json body = Json::object();
  for (auto it = set.instances.lower_bound(static_cast<int64_t>(*cursor));
       it != set.instances.end(); ++it) {
    if (call.now < it->second->listed_from || it->second->gone) continue;
    if (value.size() >= page) {
      body["nextLink"] = Backend::NextLink(call, static_cast<uint64_t>(it->first));
      break;
    }
    for (const Nic* nic : it->second->nics) {
      if (!backend_.random().Chance(knobs.list_omits)) value.push_back(NicJson(renderer, *nic));
    }
  }
  body["value"] = std::move(value);
  return JsonResponse(200, body);
}

http::Response Network::ListOfInstance(Call& call, Instance& instance) {
  Json value = Json::array();
  Renderer renderer = backend_.RendererFor(call);
  if (!backend_.random().Chance(backend_.knobs().nic_list_empty)) {
    for (const Nic* nic : instance.nics) value.push_back(NicJson(renderer, *nic));
  }
  return JsonResponse(200, {{"value", std::move(value)}});
}

http::Response Network::OneOfInstance(Call& call, Instance& instance) {
  for (Nic* nic : instance.nics) {
    if (Lower(nic->name) == call.target.Key(11)) return GetNic(call, *nic, 12);
  }
  return NestedNotFound(
      fmt::format("{}/networkInterfaces/{}", instance.id, call.target.Segment(11)));
}

}  // namespace spoke::azure_sim
