// The virtual machines of Flexible scale sets: ordinary ones, whose NICs are ordinary, too.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "tests/azure-sim/resources/compute.h"
#include "tests/azure-sim/resources/request_body.h"

namespace spoke::azure_sim {
namespace {

// Reads "'virtualMachineScaleSet/id' eq '/subscriptions/...'": the id in lower case; empty: no
// filter; nullopt: another one.
std::optional<std::string> FilteredSet(const std::string& filter) {
  if (filter.empty()) return "";
  constexpr std::string_view kBegin = "'virtualmachinescaleset/id' eq '";
  const std::string lower = Lower(filter);
  if (lower.substr(0, kBegin.size()) != kBegin || lower.back() != '\'') return std::nullopt;
  return lower.substr(kBegin.size(), lower.size() - kBegin.size() - 1);
}

}  // namespace

http::Response Compute::Machines(Call& call, ResourceGroup* group, size_t rest) {
  return call.target.size() == rest + 1 ? ListMachines(call, group) : OneMachine(call, *group);
}

http::Response Compute::ListMachines(Call& call, ResourceGroup* group) {
  call.kind = "vm.list";
  if (auto refused = backend_.Ask(call, Policy::kHighCostGetVm, {call.target.Key(1), "", ""})) {
    return *refused;
  }
  call.charge.reset();
  const std::optional<std::string> wanted = FilteredSet(call.target.Query("$filter"));
  if (!wanted.has_value()) return ErrorResponse(400, "BadRequest", "The filter is invalid.");
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
  // Only the list of a whole subscription takes it.
  const bool status_only = group == nullptr && Lower(call.target.Query("statusonly")) == "true";
  Renderer renderer = backend_.RendererFor(call);
  return backend_.Page(call, all.size(), [&](size_t at) {
    return status_only ? renderer.RunStatus(*all[at])
                       : renderer.VirtualMachine(*all[at], with_view);
  });
}

http::Response Compute::OneMachine(Call& call, ResourceGroup& group) {
  const std::string& method = call.request.method;
  call.kind = method == "GET" ? "vm.get" : method == "DELETE" ? "vm.delete" : "vm.put";
  const auto found = group.vms.find(call.target.keys[7]);
  if (found == group.vms.end() || found->second->gone) {
    if (method == "DELETE") return EmptyResponse(204);
    if (method == "PUT") return NotSimulated(*call.operation, "machines come with their scale set");
    return ResourceNotFound("Microsoft.Compute/virtualMachines/" + call.target.segments[7],
                            group.name);
  }
  Instance& instance = *found->second;
  if (method == "GET") return GetMachine(call, instance);
  const bool deletes = method == "DELETE";
  if (auto refused =
          backend_.Ask(call, deletes ? Policy::kDeleteVm : Policy::kUpdateVm, ScopeOf(instance))) {
    return *refused;
  }
  if (!deletes) return WriteMachine(call, instance);
  if (auto error = RefuseStale(call, instance)) return *error;
  http::Response response = AcceptDeletion(call, *instance.set);
  DeleteInstance(instance, call.now);
  return response;
}

http::Response Compute::GetMachine(Call& call, Instance& instance) {
  if (auto refused = backend_.Ask(call, Policy::kLowCostGetVm, ScopeOf(instance))) {
    return *refused;
  }
  Renderer renderer = backend_.RendererFor(call);
  if (call.target.Key(8) == "instanceview") {
    return JsonResponse(200, renderer.InstanceView(instance));
  }
  http::Response response = JsonResponse(
      200, renderer.VirtualMachine(instance, call.target.Query("$expand") == "instanceView"));
  if (HasComputeEtags(call.target.api_version())) {
    response.headers.Add("ETag", ComputeEtag(instance.etag));
  }
  return response;
}

std::optional<http::Response> Compute::RefuseStale(const Call& call, const Instance& instance) {
  if (!HasComputeEtags(call.target.api_version())) return std::nullopt;
  const std::string etag = ComputeEtag(instance.etag);
  if (!EtagMatches(call.if_match(), etag)) {
    return ComputePreconditionFailed(call.if_match(), etag);
  }
  if (call.wants_new()) return AlreadyThere(instance.id);
  return std::nullopt;
}

// Takes only the tags of what a write can change on a machine: its NICs are
// resources of their own. It runs all the same.
http::Response Compute::WriteMachine(Call& call, Instance& instance) {
  Json body;
  const bool whole = call.request.method == "PUT";
  if (auto error = ParseBody(call, whole ? BodyOf::kMachine : BodyOf::kMachineUpdate,
                             backend_.knobs(), &body)) {
    return *error;
  }
  const ResourceGroup& group = *instance.set->group;
  const Placed place{instance.name, group.name, instance.set->spec.location};
  if (whole) {
    if (auto error = CheckLocation(body, place, Location::kRequired)) return *error;
  }
  if (auto error = RefuseStale(call, instance)) return *error;
  if (auto error = Preempt(instance, call.now)) return *error;
  if (const auto tags = body.find("tags"); tags != body.end() && tags->is_object()) {
    const Extra made = MakeExtra(*tags);
    if (!SameExtra(instance.tags, made)) ++instance.etag;
    instance.tags = made;
  }
  Operation& operation =
      backend_.Start(call, Provider::kCompute, group.subscription, instance.set->spec.location);
  instance.operation = operation.id;
  instance.state = State::kUpdating;
  http::Response response =
      JsonResponse(200, backend_.RendererFor(call).VirtualMachine(instance, false));
  if (HasComputeEtags(call.target.api_version())) {
    response.headers.Add("ETag", ComputeEtag(instance.etag));
  }
  backend_.AddAsyncHeaders(call, operation, false, &response);
  Carry(instance, operation.id, backend_.Draw(backend_.knobs().latency, call.now));
  return response;
}

}  // namespace spoke::azure_sim
