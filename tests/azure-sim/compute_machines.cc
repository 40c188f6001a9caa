// Virtual machines of Flexible scale sets: ordinary ones, whose NICs are ordinary, too.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "tests/azure-sim/compute.h"

namespace spoke::azure_sim {
namespace {

// "'virtualMachineScaleSet/id' eq '/subscriptions/...'": the id in lower case; empty: no filter;
// nullopt: another one.
std::optional<std::string> FilteredSet(const std::string& filter) {
  if (filter.empty()) return "";
  constexpr std::string_view kBegin = "'virtualmachinescaleset/id' eq '";
  const std::string lower = Lower(filter);
  if (lower.substr(0, kBegin.size()) != kBegin || lower.back() != '\'') return std::nullopt;
  return lower.substr(kBegin.size(), lower.size() - kBegin.size() - 1);
}

}  // namespace

http::Response Compute::Machines(Call& call, ResourceGroup* group, size_t rest) {
  if (call.target.size() == rest + 1) return ListMachines(call, group);
  if (group != nullptr) return OneMachine(call, *group);
  return ErrorResponse(404, "InvalidResourceType", "Virtual machines are in groups.");
}

http::Response Compute::ListMachines(Call& call, ResourceGroup* group) {
  call.kind = "vm.list";
  if (auto refused = backend_.Ask(call, Policy::kHighCostGetVm, {call.target.Key(1), "", ""})) {
    return *refused;
  }
  call.charge.reset();
  const std::optional<std::string> wanted = FilteredSet(call.target.Query("$filter"));
  const std::optional<uint64_t> cursor = Backend::CursorOf(call);
  if (!wanted.has_value() || !cursor.has_value()) {
    return ErrorResponse(400, "BadRequest", "The filter or skip token is invalid.");
  }
  std::vector<const Instance*> all;
  const auto add = [&](const ResourceGroup& each) {
    for (const auto& [key, set] : each.sets) {
      if (set->spec.orchestration != Orchestration::kFlexible) continue;
      if (!wanted->empty() && set->key != *wanted) continue;
      for (const auto& [number, instance] : set->instances) {
        if (call.now >= instance->listed_from) all.push_back(instance.get());
      }
    }
  };
  if (group != nullptr) {
    add(*group);
  } else {
    const auto found = backend_.world().groups().find(std::string(call.target.Key(1)));
    if (found != backend_.world().groups().end()) {
      for (const auto& [key, each] : found->second) add(*each);
    }
  }
  const bool with_view = call.target.Query("$expand") == "instanceView";
  const auto page = static_cast<uint64_t>(std::max(backend_.knobs().page_size, 1));
  Renderer renderer = backend_.RendererFor(call);
  Json value = Json::array();
  uint64_t at = *cursor;
  for (; at < all.size() && at < *cursor + page; ++at) {
    if (backend_.random().Chance(backend_.knobs().list_omits)) continue;
    value.push_back(renderer.VirtualMachine(*all[at], with_view));
  }
  const std::optional<uint64_t> next = at < all.size() ? std::optional<uint64_t>(at) : std::nullopt;
  return JsonResponse(200, ListPage(call, std::move(value), next));
}

http::Response Compute::OneMachine(Call& call, ResourceGroup& group) {
  const std::string& method = call.request.method;
  call.kind = method == "GET" ? "vm.get" : method == "DELETE" ? "vm.delete" : "vm.put";
  const auto found = group.vms.find(call.target.keys[7]);
  if (found == group.vms.end() || found->second->gone) {
    return ResourceNotFound("Microsoft.Compute/virtualMachines/" + call.target.segments[7],
                            group.name);
  }
  Instance& instance = *found->second;
  Renderer renderer = backend_.RendererFor(call);
  const bool etags = Renderer::HasComputeEtags(call.target.api_version());
  if (method == "GET") {
    if (auto refused = backend_.Ask(call, Policy::kLowCostGetVm, ScopeOf(instance))) {
      return *refused;
    }
    if (call.target.Key(8) == "instanceview") {
      return JsonResponse(200, renderer.InstanceView(instance));
    }
    http::Response response = JsonResponse(
        200, renderer.VirtualMachine(instance, call.target.Query("$expand") == "instanceView"));
    if (etags) response.headers.Add("ETag", ComputeEtag(instance.etag));
    return response;
  }
  const bool deletes = method == "DELETE";
  if (!deletes && method != "PUT" && method != "PATCH") {
    return ErrorResponse(405, "HttpMethodNotAllowed", "The method is not allowed here.");
  }
  if (auto refused =
          backend_.Ask(call, deletes ? Policy::kDeleteVm : Policy::kUpdateVm, ScopeOf(instance))) {
    return *refused;
  }
  if (etags && !EtagMatches(call.if_match(), ComputeEtag(instance.etag))) {
    call.charge.reset();
    return ComputePreconditionFailed(call.if_match(), ComputeEtag(instance.etag));
  }
  if (deletes) {
    http::Response response = AcceptDeletion(call, *instance.set);
    DeleteInstance(instance, call.now);
    return response;
  }
  // What a write changes on a machine besides its NICs, which are resources of their own, is of no
  // interest here: it runs and changes nothing.
  if (auto error = Preempt(instance, call.now)) return *error;
  Operation& operation =
      backend_.Start(call, Provider::kCompute, group.subscription, instance.set->spec.location);
  instance.operation = operation.id;
  instance.state = State::kUpdating;
  http::Response response = JsonResponse(200, renderer.VirtualMachine(instance, false));
  if (etags) response.headers.Add("ETag", ComputeEtag(instance.etag));
  backend_.AddAsyncHeaders(call, operation, false, &response);
  Carry(instance, operation.id, backend_.Draw(backend_.knobs().latency, call.now));
  return response;
}

}  // namespace spoke::azure_sim
