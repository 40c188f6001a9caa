// Requests for scale sets, and what changes many instances at once.
#include <algorithm>
#include <charconv>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "tests/azure-sim/resources/compute.h"
#include "tests/azure-sim/resources/request_body.h"

namespace spoke::azure_sim {
namespace {

const Json* Member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const Json* NicList(const Json& body) {
  const Json* at = &body;
  for (const char* key : {"properties", "virtualMachineProfile", "networkProfile",
                          "networkInterfaceConfigurations"}) {
    at = at == nullptr ? nullptr : Member(*at, key);
  }
  return at;
}

constexpr int64_t kMostInstances = 1000;

}  // namespace

http::Response Compute::Handle(Call& call, ResourceGroup* group, size_t rest) {
  const std::string_view type = call.target.Key(rest);
  if (type == "locations") {
    if (call.target.Key(rest + 2) == "operations") return backend_.OperationStatus(call);
    return ListSets(call, nullptr);
  }
  if (type == "virtualmachines") return Machines(call, group, rest);
  return call.target.size() == rest + 1 ? ListSets(call, group) : OneSet(call, *group);
}

http::Response Compute::ListSets(Call& call, ResourceGroup* group) {
  call.kind = "set.list";
  const bool by_location = group == nullptr && call.target.Key(4) == "locations";
  if (auto refused =
          backend_.Ask(call, Policy::kHighCostGetScaleSet, {call.target.Key(1), "", ""})) {
    return *refused;
  }
  call.charge.reset();
  std::vector<const ScaleSet*> all;
  const auto add = [&](const ResourceGroup& each) {
    for (const auto& [key, set] : each.sets) {
      if (by_location && Lower(set->spec.location) != call.target.Key(5)) continue;
      all.push_back(set.get());
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
  Renderer renderer = backend_.RendererFor(call);
  return backend_.Page(call, all.size(), [&](size_t at) { return renderer.Of(*all[at]); });
}

http::Response Compute::OneSet(Call& call, ResourceGroup& group) {
  const auto found = group.sets.find(call.target.keys[7]);
  ScaleSet* const set = found == group.sets.end() ? nullptr : found->second.get();
  const std::string& method = call.request.method;
  const bool below = call.target.size() > 8;
  if (set == nullptr && (method != "PUT" || below)) {
    call.kind = "set.get";
    if (call.target.Key(8) == "virtualmachines") return ParentNotFound(call.target.segments[7]);
    if (method == "DELETE") return EmptyResponse(204);
    return ResourceNotFound("Microsoft.Compute/virtualMachineScaleSets/" + call.target.segments[7],
                            group.name);
  }
  if (below) return BelowSet(call, *set);
  if (method == "GET") return GetSet(call, *set);
  return method == "DELETE" ? DeleteSet(call, *set) : PutSet(call, group, set);
}

http::Response Compute::GetSet(Call& call, ScaleSet& set) {
  call.kind = "set.get";
  if (auto refused = backend_.Ask(call, Policy::kLowCostGetScaleSet, ScopeOf(set))) {
    return *refused;
  }
  call.charge.reset();
  http::Response response = JsonResponse(200, backend_.RendererFor(call).Of(set));
  if (HasComputeEtags(call.target.api_version())) {
    response.headers.Add("ETag", ComputeEtag(set.etag));
  }
  return response;
}

Parsed<ScaleSet*> Compute::CreateSet(const Json& body, const Call& call, ResourceGroup& group) {
  Parsed<ScaleSet*> created;
  ScaleSetSpec spec;
  spec.subscription = group.subscription;
  spec.resource_group = group.name;
  spec.name = call.target.segments[7];
  spec.location = body["location"].get<std::string>();
  const Json* list = NicList(body);
  auto parsed = ParseProfile(list == nullptr ? Json() : *list,
                             {backend_.world(), backend_.knobs(), spec.id()});
  if (parsed.error.has_value()) {
    created.error = std::move(parsed.error);
    return created;
  }
  spec.subnet_id = parsed.value[0].ip_configs[0].subnet->id;
  const absl::StatusOr<ScaleSet*> set = backend_.world().AddSet(spec, call.now);
  if (!set.ok()) {
    created.error = ErrorResponse(400, "InvalidParameter", base::MessageOf(set.status()));
    return created;
  }
  (*set)->model = std::move(parsed.value);
  created.value = *set;
  return created;
}

std::optional<http::Response> Compute::ApplyToSet(const Json& body, ScaleSet& set, bool* changed) {
  if (const Json* list = NicList(body); list != nullptr) {
    auto parsed = ParseProfile(*list, {backend_.world(), backend_.knobs(), set.id});
    if (parsed.error.has_value()) return parsed.error;
    if (!(set.model == parsed.value)) {
      set.model = std::move(parsed.value);
      *changed = true;
      for (const auto& [number, instance] : set.instances) {
        instance->latest_model = false;
        if (backend_.knobs().set_writes_bump_instance_etags) ++instance->etag;
      }
    }
  }
  if (const Json* tags = Member(body, "tags"); tags != nullptr) {
    const Extra made = MakeExtra(*tags);
    *changed = *changed || !SameExtra(set.tags, made);
    set.tags = made;
  }
  const Json* sku = Member(body, "sku");
  const Json* capacity = sku == nullptr ? nullptr : Member(*sku, "capacity");
  if (capacity != nullptr) {
    if (!capacity->is_number_integer() || capacity->get<int64_t>() < 0 ||
        capacity->get<int64_t>() > kMostInstances) {
      return ErrorResponse(400, "InvalidParameter", "The capacity is out of range.", Details::kNone,
                           "sku.capacity");
    }
    *changed = *changed || set.capacity != capacity->get<int64_t>();
    set.capacity = capacity->get<int64_t>();
  }
  return std::nullopt;
}

http::Response Compute::PutSet(Call& call, ResourceGroup& group, ScaleSet* set) {
  call.kind = call.request.method == "PATCH" ? "set.patch" : "set.put";
  const bool creates = set == nullptr;
  const std::string key = Lower(fmt::format("{}/{}", group.name, call.target.segments[7]));
  const Throttle::Scope scope{group.subscription, creates ? group.location : set->spec.location,
                              key};
  if (auto refused =
          backend_.Ask(call, creates ? Policy::kPutScaleSet : Policy::kUpdateScaleSet, scope)) {
    return *refused;
  }
  Json body;
  const bool updates = call.request.method == "PATCH";
  if (auto error = ParseBody(call, updates ? BodyOf::kScaleSetUpdate : BodyOf::kScaleSet,
                             backend_.knobs(), &body)) {
    return *error;
  }
  if (auto error = RefuseSetWrite(call, group, set, body)) return *error;
  bool changed = creates;
  if (creates) {
    auto created = CreateSet(body, call, group);
    if (created.error.has_value()) return *created.error;
    set = created.value;
  } else if (Operation* running = backend_.Find(set->operation);
             running != nullptr && running->running()) {
    return ErrorResponse(409, "Conflict",
                         "The request failed due to conflict with a concurrent request.");
  }
  if (auto error = ApplyToSet(body, *set, &changed)) return *error;
  if (changed && !creates) ++set->etag;
  if (!changed) call.charge = 0;
  set->state = creates ? State::kCreating : State::kUpdating;
  Operation& operation =
      backend_.Start(call, Provider::kCompute, group.subscription, set->spec.location);
  set->operation = operation.id;
  http::Response response = JsonResponse(creates ? 201 : 200, backend_.RendererFor(call).Of(*set));
  if (HasComputeEtags(call.target.api_version())) {
    response.headers.Add("ETag", ComputeEtag(set->etag));
  }
  backend_.AddAsyncHeaders(call, operation, false, &response);
  backend_.timeline().At(call.now + backend_.random().Of(backend_.knobs().latency),
                         [this, key = set->key, id = operation.id](absl::Time when) {
                           ScaleSet* target = backend_.world().FindSet(key);
                           if (target != nullptr) FinishSet(*target, id, when);
                         });
  return response;
}

std::optional<http::Response> Compute::RefuseSetWrite(const Call& call, const ResourceGroup& group,
                                                      const ScaleSet* set, const Json& body) {
  if (call.request.method == "PUT") {
    const Placed place{call.target.segments[7], group.name,
                       set == nullptr ? std::string_view() : set->spec.location};
    if (auto error = CheckLocation(body, place, Location::kRequired)) return error;
  }
  if (!HasComputeEtags(call.target.api_version())) return std::nullopt;
  // What is not there matches no etag (RFC 9110, section 13.1.1).
  const std::string etag = set == nullptr ? "" : ComputeEtag(set->etag);
  if (set == nullptr ? !call.if_match().empty() : !EtagMatches(call.if_match(), etag)) {
    return ComputePreconditionFailed(call.if_match(), etag);
  }
  if (set != nullptr && call.wants_new()) return AlreadyThere(set->id);
  return std::nullopt;
}

void Compute::FinishSet(ScaleSet& set, const std::string& operation, absl::Time when) {
  Operation* running = backend_.Find(operation);
  if (running == nullptr || !running->running()) return;
  const auto living = static_cast<int64_t>(set.Living());
  bool fits = true;
  if (set.capacity > living) {
    fits = AddInstances(set, static_cast<int>(set.capacity - living), when);
  }
  // The newest go first.
  int64_t surplus = living - set.capacity;
  for (auto it = set.instances.rbegin(); it != set.instances.rend() && surplus > 0; ++it) {
    if (it->second->gone || it->second->state == State::kDeleting) continue;
    DeleteInstance(*it->second, when);
    ++set.capacity;  // MarkGone() takes it off.
    --surplus;
  }
  set.state = fits ? State::kSucceeded : State::kFailed;
  if (fits) return backend_.End(*running, when, Operation::Status::kSucceeded);
  backend_.End(*running, when, Operation::Status::kFailed, "SubnetIsFull",
               "The subnet does not have enough capacity.");
}

bool Compute::AddInstances(ScaleSet& set, int count, absl::Time when) {
  for (int i = 0; i < count; ++i) {
    const absl::StatusOr<Instance*> added = backend_.world().AddInstance(set, when);
    if (!added.ok()) return false;
    (*added)->listed_from = when + backend_.knobs().list_lag;
  }
  set.capacity = static_cast<int64_t>(set.Living());
  return true;
}

http::Response Compute::DeleteSet(Call& call, ScaleSet& set) {
  call.kind = "set.delete";
  if (auto refused = backend_.Ask(call, Policy::kDeleteScaleSet, ScopeOf(set))) return *refused;
  // The set itself stays as an empty one: nothing of ours ever deletes sets, and what refers to it
  // need not be found.
  set.state = State::kDeleting;
  http::Response response = AcceptDeletion(call, set, &set.operation);
  for (const auto& [number, instance] : set.instances) DeleteInstance(*instance, call.now);
  return response;
}

http::Response Compute::UpgradeInstances(Call& call, ScaleSet& set) {
  call.kind = "set.upgrade";
  if (auto refused = backend_.Ask(call, Policy::kUpdateScaleSetVms, ScopeOf(set))) {
    return *refused;
  }
  Json body;
  if (auto error = ParseBody(call, BodyOf::kInstanceIds, backend_.knobs(), &body)) return *error;
  const Json* ids = Member(body, "instanceIds");
  std::vector<Instance*> instances;
  for (const Json& id : ids == nullptr || !ids->is_array() ? Json::array() : *ids) {
    const std::string text = id.is_string() ? id.get<std::string>() : "";
    if (text == "*") {
      for (const auto& [number, each] : set.instances) {
        if (!each->gone) instances.push_back(each.get());
      }
      continue;
    }
    int64_t number = -1;
    std::from_chars(text.data(), text.data() + text.size(), number);
    Instance* instance = World::FindInstance(set, number);
    if (instance == nullptr) {
      return ErrorResponse(400, "InvalidParameter",
                           fmt::format("The provided instanceId {} is not an active Virtual "
                                       "Machine Scale Set VM instanceId.",
                                       text),
                           Details::kNone, "instanceIds");
    }
    instances.push_back(instance);
  }
  Upgrade(instances, call.now);
  return Accept(call, set, call.now + backend_.knobs().latency.most);
}

void Compute::Upgrade(const std::vector<Instance*>& instances, absl::Time when) {
  static const http::Request no_request;
  static const Target no_target;
  for (Instance* instance : instances) {
    if (instance->state == State::kDeleting) continue;
    if (Operation* running = backend_.Find(instance->operation);
        running != nullptr && running->running()) {
      backend_.End(*running, when, Operation::Status::kCanceled, "OperationPreempted",
                   "Operation execution has been preempted by a more recent operation.");
    }
    // The instance gets the whole network profile of the set: what was written for this instance
    // alone is lost.
    instance->profile = instance->set->model;
    instance->own_model = false;
    instance->latest_model = true;
    instance->foreign_pool.clear();
    ++instance->etag;
    instance->state = State::kUpdating;
    const Call call{no_request, no_target, when};
    const Operation& operation = backend_.Start(
        call, Provider::kCompute, instance->set->group->subscription, instance->set->spec.location);
    instance->operation = operation.id;
    Carry(*instance, operation.id,
          {Operation::Status::kSucceeded, when + backend_.random().Of(backend_.knobs().latency)});
  }
}

void Compute::Reimage(Instance& instance, absl::Time when) {
  if (!backend_.knobs().reimage_keeps_addresses) return Upgrade({&instance}, when);
  static const http::Request no_request;
  static const Target no_target;
  const Call call{no_request, no_target, when};
  const Operation& operation = backend_.Start(
      call, Provider::kCompute, instance.set->group->subscription, instance.set->spec.location);
  instance.operation = operation.id;
  instance.state = State::kUpdating;
  ++instance.etag;
  Carry(instance, operation.id,
        {Operation::Status::kSucceeded, when + backend_.random().Of(backend_.knobs().latency)});
}

}  // namespace spoke::azure_sim
