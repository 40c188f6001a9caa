// The instances of Uniform scale sets.
#include <algorithm>
#include <charconv>
#include <utility>

#include "fmt/core.h"
#include "tests/azure-sim/resources/compute.h"
#include "tests/azure-sim/resources/request_body.h"

namespace spoke::azure_sim {
namespace {

const Json* Member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// Returns what of "properties" a client may set besides the network; the rest is read-only or
// ignored.
Json OtherProperties(const Json& properties) {
  Json kept = Json::object();
  for (const char* key : {"protectionPolicy", "userData", "securityProfile", "licenseType"}) {
    if (const Json* value = Member(properties, key); value != nullptr) kept[key] = *value;
  }
  return kept;
}

http::Response BadQuery(std::string_view option, std::string_view value) {
  return ErrorResponse(
      400, "InvalidParameter",  // The words are unverified.
      fmt::format("The value '{}' of query parameter '{}' is invalid.", value, option),
      Details::kNone, option);
}

constexpr std::string_view kInstanceView = "instanceView";

std::optional<http::Response> CheckExpand(std::string_view expand) {
  // The last two show what is not simulated, and change nothing.
  if (expand.empty() || expand == kInstanceView || expand == "userData" ||
      expand == "resiliencyView") {
    return std::nullopt;
  }
  return BadQuery("$expand", expand);
}

// The query by which a list of instances is narrowed.
struct InstanceQuery {
  bool with_view = false;
  bool view_alone = false;
  std::optional<bool> latest_model;

  Json Select(Json instance) const {
    if (!view_alone) return instance;
    Json view = std::move(instance["properties"][std::string(kInstanceView)]);
    instance["properties"] = {{kInstanceView, std::move(view)}};
    return instance;
  }
};

// Reads the query of
// https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-vms/list
std::optional<http::Response> ReadQuery(const Target& target, InstanceQuery* query) {
  const std::string expand = target.Query("$expand");
  if (auto error = CheckExpand(expand)) return error;
  query->with_view = expand == kInstanceView;
  const std::string select = target.Query("$select");
  query->view_alone = select == kInstanceView || select == "instanceView/statuses";
  if (!select.empty() && !(query->view_alone && query->with_view)) {
    return BadQuery("$select", select);
  }
  const std::string filter = target.Query("$filter");
  const std::string lower = Lower(filter);
  constexpr std::string_view kLatest = "properties/latestmodelapplied eq ";
  constexpr std::string_view kPower = "startswith(instanceview/statuses/code, 'powerstate";
  if (filter.empty() || lower.substr(0, kPower.size()) == kPower) return std::nullopt;
  const std::string value =
      lower.substr(0, kLatest.size()) == kLatest ? lower.substr(kLatest.size()) : std::string();
  if (value != "true" && value != "false") return BadQuery("$filter", filter);
  query->latest_model = value == "true";
  return std::nullopt;
}

}  // namespace

bool EtagMatches(std::string_view if_match, std::string_view etag) {
  if (if_match.empty() || if_match == "*" || if_match == etag) return true;
  // Some clients strip the quotes.
  return etag.size() > 2 && etag.front() == '"' && if_match == etag.substr(1, etag.size() - 2);
}

Throttle::Scope Compute::ScopeOf(const ScaleSet& set) const {
  return {set.group->subscription, set.spec.location, set.key};
}

Throttle::Scope Compute::ScopeOf(const Instance& instance) const {
  return {instance.set->group->subscription, instance.set->spec.location, instance.id};
}

http::Response Compute::Accept(Call& call, const ScaleSet& set, absl::Time end, std::string* id) {
  Operation& operation =
      backend_.Start(call, Provider::kCompute, set.group->subscription, set.spec.location);
  if (id != nullptr) *id = operation.id;
  backend_.timeline().At(end, [this, id = operation.id](absl::Time when) {
    Operation* running = backend_.Find(id);
    if (running == nullptr || !running->running()) return;
    backend_.End(*running, when, Operation::Status::kSucceeded);
  });
  http::Response response = EmptyResponse(202);
  backend_.AddAsyncHeaders(call, operation, true, &response);
  return response;
}

http::Response Compute::AcceptDeletion(Call& call, const ScaleSet& set, std::string* id) {
  return Accept(call, set, call.now + backend_.knobs().delete_latency.most, id);
}

http::Response Compute::BelowSet(Call& call, ScaleSet& set) {
  if (call.target.Key(8) == "manualupgrade") return UpgradeInstances(call, set);
  return call.target.size() == 9 ? ListInstances(call, set) : OneInstance(call, set);
}

http::Response Compute::ListInstances(Call& call, ScaleSet& set) {
  call.kind = "instance.list";
  const Throttle::Scope scope{set.group->subscription, set.spec.location, {}};
  if (auto refused = backend_.Ask(call, Policy::kHighCostGetScaleSet, scope)) return *refused;
  call.charge.reset();  // The charge of a list counts VMs.
  const std::optional<uint64_t> cursor = Backend::CursorOf(call);
  if (!cursor.has_value()) {
    return ErrorResponse(400, "InvalidParameter", "The skip token is invalid.", Details::kNone,
                         "$skiptoken");
  }
  InstanceQuery query;
  if (auto error = ReadQuery(call.target, &query)) return *error;
  const bool uniform = set.spec.orchestration == Orchestration::kUniform;
  const auto page_size = static_cast<size_t>(std::max(backend_.knobs().page_size, 1));
  Renderer renderer = backend_.RendererFor(call);
  Json value = Json::array();
  std::optional<std::string> next;
  for (auto it = set.instances.lower_bound(static_cast<int64_t>(*cursor));
       it != set.instances.end(); ++it) {
    const Instance& instance = *it->second;
    if (call.now < instance.listed_from) continue;
    if (query.latest_model.has_value() && *query.latest_model != instance.latest_model) continue;
    if (value.size() == page_size) {
      next = Backend::NextLink(call, static_cast<uint64_t>(it->first));
      break;
    }
    if (backend_.random().Chance(backend_.knobs().list_omits)) continue;
    value.push_back(uniform ? query.Select(renderer.Of(instance, query.with_view))
                            : renderer.FlexibleMember(instance));
  }
  // The charge is one unit for each VM that was looked at.
  if (auto refused = backend_.Ask(call, Policy::kScaleSetVmViews, scope,
                                  std::max<double>(1, static_cast<double>(value.size())))) {
    return *refused;
  }
  Json page = {{"value", std::move(value)}};
  if (next.has_value()) page["nextLink"] = *next;
  return JsonResponse(200, page);
}

http::Response Compute::OneInstance(Call& call, ScaleSet& set) {
  const std::string& text = call.target.segments[9];
  int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || number < 0) {
    call.kind = "instance.get";
    if (auto refused = backend_.Ask(call, Policy::kGetScaleSetVms, ScopeOf(set))) return *refused;
    return ErrorResponse(400, "InvalidParameter",
                         "Virtual Machine Scale Set VM instanceId must be a number.",
                         Details::kNone, "instanceId");
  }
  Instance* instance = World::FindInstance(set, number);
  if (instance == nullptr) {
    call.kind = call.request.method == "PUT" ? "instance.put" : "instance.get";
    if (auto refused = backend_.Ask(call, Policy::kGetScaleSetVms, ScopeOf(set))) return *refused;
    if (call.request.method == "DELETE") return EmptyResponse(204);
    return ErrorResponse(
        backend_.knobs().unknown_instance_status, "InvalidParameter",
        fmt::format("The provided instanceId {} is not an active Virtual Machine Scale Set VM "
                    "instanceId.",
                    number),
        Details::kNone, "instanceIds");
  }
  const std::string& method = call.request.method;
  if (method == "GET") {
    return GetInstance(call, *instance, call.target.Key(10) == "instanceview");
  }
  if (method == "PUT") return PutInstance(call, *instance);
  return method == "DELETE" ? DeleteInstanceRequest(call, *instance)
                            : ReimageRequest(call, *instance);
}

http::Response Compute::GetInstance(Call& call, Instance& instance, bool view_only) {
  call.kind = view_only ? "instance.view" : "instance.get";
  if (auto refused = backend_.Ask(call, Policy::kGetScaleSetVms, ScopeOf(instance))) {
    return *refused;
  }
  Renderer renderer = backend_.RendererFor(call);
  if (view_only) return JsonResponse(200, renderer.InstanceView(instance));
  const std::string expand = call.target.Query("$expand");
  if (auto error = CheckExpand(expand)) return *error;
  http::Response response = JsonResponse(200, renderer.Of(instance, expand == kInstanceView));
  if (HasComputeEtags(call.target.api_version())) {
    response.headers.Add("ETag", ComputeEtag(instance.etag));
  }
  // The write comes behind the answer, so that whoever read this writes something stale.
  if (backend_.random().Chance(backend_.knobs().foreign_writes)) WriteAsForeigner(instance);
  return response;
}

void Compute::WriteAsForeigner(Instance& instance) {
  for (NicConfig& nic : instance.profile) {
    if (!nic.primary) continue;
    for (IpConfig& config : nic.ip_configs) {
      if (nic.ip_configs.size() > 1 && !config.primary.value_or(false)) continue;
      ++backend_.counters().foreign_writes;
      instance.foreign_pool = fmt::format(
          "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network/loadBalancers/"
          "kubernetes/"
          "backendAddressPools/pool-{}",
          instance.set->group->subscription, instance.set->group->name,
          backend_.counters().foreign_writes);
      Json extra = config.extra == nullptr ? Json::object() : *config.extra;
      Json& pools = extra["loadBalancerBackendAddressPools"];
      if (!pools.is_array()) pools = Json::array();
      if (pools.size() >= 3) pools.erase(pools.size() - 1);  // It takes its last one away.
      pools.push_back({{"id", instance.foreign_pool}});
      config.extra = MakeExtra(extra);
      ++instance.etag;
      instance.own_model = true;
      instance.latest_model = false;
      return;
    }
  }
}

std::optional<http::Response> Compute::Preempt(Instance& instance, absl::Time now) {
  const bool made_up = backend_.random().Chance(backend_.knobs().conflicts);
  Operation* running = backend_.Find(instance.operation);
  const bool busy = running != nullptr && running->running();
  if (!busy && !made_up) return std::nullopt;
  if (made_up || backend_.knobs().on_concurrent_write == OnConcurrentWrite::kConflict) {
    return ErrorResponse(409, "Conflict",
                         "The request failed due to conflict with a concurrent request.");
  }
  backend_.End(*running, now, Operation::Status::kCanceled, "OperationPreempted",
               "Operation execution has been preempted by a more recent operation.");
  // If the newer one is refused for what it says, nothing runs any more.
  instance.state = State::kCanceled;
  for (Nic* nic : instance.nics) nic->state = State::kSucceeded;
  return std::nullopt;
}

std::optional<http::Response> Compute::RefuseWrite(Call& call, Instance& instance,
                                                   const Json& body) {
  const Knobs& knobs = backend_.knobs();
  const Json* properties = Member(body, "properties");
  const Json* storage = properties == nullptr ? nullptr : Member(*properties, "storageProfile");
  if (storage != nullptr && Member(*storage, "imageReference") != nullptr &&
      !knobs.reads_image_references) {
    return ErrorResponse(
        403, "LinkedAuthorizationFailed",
        fmt::format("The client has permission to perform action "
                    "'Microsoft.Compute/galleries/images/versions/read' on scope '{}', however "
                    "the current tenant is not authorized to access linked subscription.",
                    instance.id));
  }
  if (knobs.deny_join && properties != nullptr &&
      Member(*properties, "networkProfileConfiguration") != nullptr) {
    return ErrorResponse(
        403, "LinkedAuthorizationFailed",
        fmt::format("The client has permission to perform action "
                    "'Microsoft.Compute/virtualMachineScaleSets/virtualMachines/write' on scope "
                    "'{}'; however, it does not have permission to perform action "
                    "'Microsoft.Network/virtualNetworks/subnets/join/action' on the linked scope.",
                    instance.id));
  }
  if (instance.state == State::kDeleting) {
    return ErrorResponse(
        409, "OperationNotAllowed",
        fmt::format("Operation 'Put on Virtual Machine Scale Set VM Instance' is not allowed on "
                    "Virtual Machine Scale Set VM '{}' since it is marked for deletion.",
                    instance.name));
  }
  if (!HasComputeEtags(call.target.api_version())) return std::nullopt;
  const std::string etag = ComputeEtag(instance.etag);
  if (!EtagMatches(call.if_match(), etag)) {
    return ComputePreconditionFailed(call.if_match(), etag);
  }
  if (call.wants_new()) return AlreadyThere(instance.id);
  return std::nullopt;
}

std::optional<http::Response> Compute::TakeProfile(const Json& properties, Instance& instance,
                                                   bool* changed) {
  const Json* network = Member(properties, "networkProfileConfiguration");
  if (network == nullptr) return std::nullopt;
  static const Json none;
  const Json* list = Member(*network, "networkInterfaceConfigurations");
  auto parsed = ParseProfile(list == nullptr ? none : *list,
                             {backend_.world(), backend_.knobs(), instance.set->id});
  if (parsed.error.has_value()) return parsed.error;
  if (auto error = CheckSuccessor(instance.profile, parsed.value)) return error;
  if (backend_.knobs().full_subnet == FullSubnet::kSync) {
    for (const NicConfig& config : parsed.value) {
      Nic* nic = nullptr;
      for (Nic* each : instance.nics) {
        if (each->name == config.name) nic = each;
      }
      if (nic == nullptr) continue;
      Backend::AssignError error;
      const auto planned = backend_.Plan(*nic, config.ip_configs, &error);
      if (!planned.has_value()) {
        return ErrorResponse(400, error.code, error.message, Details::kEmpty);
      }
      Backend::Undo(*nic, *planned);
    }
  }
  if (!instance.foreign_pool.empty()) {
    const std::string sent = network->dump(-1, ' ', false, Json::error_handler_t::replace);
    if (sent.find(instance.foreign_pool) == std::string::npos) {
      ++backend_.counters().foreign_writes_lost;
      instance.foreign_pool.clear();
    }
  }
  if (instance.profile == parsed.value) return std::nullopt;
  instance.profile = std::move(parsed.value);
  instance.own_model = true;
  instance.latest_model = false;
  *changed = true;
  return std::nullopt;
}

http::Response Compute::PutInstance(Call& call, Instance& instance) {
  call.kind = "instance.put";
  if (auto refused = backend_.Ask(call, Policy::kUpdateScaleSetVms, ScopeOf(instance))) {
    return *refused;
  }
  if (backend_.random().Chance(backend_.knobs().foreign_writes_at_put)) WriteAsForeigner(instance);
  Json body;
  if (auto error = ParseBody(call, BodyOf::kInstance, backend_.knobs(), &body)) return *error;
  const Placed place{instance.name, instance.set->group->name, instance.set->spec.location};
  if (auto error = CheckLocation(body, place, Location::kOptional)) return *error;
  if (auto error = RefuseWrite(call, instance, body)) return *error;
  // This is checked before the body is taken: what loses to another write leaves no trace.
  if (auto error = Preempt(instance, call.now)) return *error;
  bool changed = false;
  if (const Json* properties = Member(body, "properties"); properties != nullptr) {
    if (auto error = TakeProfile(*properties, instance, &changed)) return *error;
    if (Json other = OtherProperties(*properties); !other.empty()) {
      Json merged = instance.properties == nullptr ? Json::object() : *instance.properties;
      for (const auto& [key, value] : other.items()) merged[key] = value;
      const Extra extra = MakeExtra(merged);
      changed = changed || instance.properties == nullptr || *extra != *instance.properties;
      instance.properties = extra;
    }
  }
  // This is as recorded: a write that says nothing new neither counts nor moves the etag, but runs.
  if (changed) ++instance.etag;
  if (!changed) call.charge = 0;
  Operation& operation = backend_.Start(call, Provider::kCompute, instance.set->group->subscription,
                                        instance.set->spec.location);
  instance.operation = operation.id;
  instance.state = State::kUpdating;
  for (Nic* nic : instance.nics) nic->state = State::kUpdating;
  Renderer renderer = backend_.RendererFor(call);
  http::Response response = JsonResponse(200, renderer.Of(instance, false));
  if (HasComputeEtags(call.target.api_version())) {
    response.headers.Add("ETag", ComputeEtag(instance.etag));
  }
  backend_.AddAsyncHeaders(call, operation, false, &response);
  if (backend_.knobs().retry_after_on_compute_operations) {
    AddRetryAfter(absl::Seconds(10), backend_.knobs().retry_after, call.now, &response);
  }
  Carry(instance, operation.id, backend_.Draw(backend_.knobs().latency, call.now));
  return response;
}

void Compute::Carry(Instance& instance, const std::string& operation, const Backend::Fate& fate) {
  backend_.timeline().At(fate.when, [this, set = instance.set, number = instance.number, operation,
                                     fate](absl::Time when) {
    Operation* running = backend_.Find(operation);
    Instance* target = World::FindInstance(*set, number);
    if (running == nullptr || !running->running()) return;  // A newer one took over.
    if (target == nullptr) {
      return backend_.End(*running, when, Operation::Status::kFailed, "NotFound",
                          "The instance was deleted.");
    }
    for (Nic* nic : target->nics) nic->state = State::kSucceeded;
    Backend::AssignError error{backend_.knobs().failed_operation_code,
                               "An unexpected error occured while processing the network profile "
                               "of the VM. Please retry later."};
    Operation::Status status = fate.status;
    // Whatever goes wrong, the model keeps what was asked for. The NIC keeps what it had, unless
    // what failed is something else of the VM.
    const bool writes = status == Operation::Status::kSucceeded || fate.nic_written;
    if (writes && !Realize(*target, when, &error)) status = Operation::Status::kFailed;
    if (status == Operation::Status::kSucceeded) {
      target->state = State::kSucceeded;
      return backend_.End(*running, when, status);
    }
    const bool canceled = status == Operation::Status::kCanceled;
    if (canceled) error = {"OperationCanceled", "The operation was canceled."};
    target->state = canceled ? State::kCanceled : State::kFailed;
    backend_.End(*running, when, status, error.code, error.message);
  });
}

bool Compute::Realize(Instance& instance, absl::Time when, Backend::AssignError* error) {
  std::vector<std::pair<Nic*, std::vector<NicEntry>>> plans;
  for (Nic* nic : instance.nics) {
    const auto config =
        std::find_if(instance.profile.begin(), instance.profile.end(),
                     [nic](const NicConfig& each) { return each.name == nic->name; });
    if (config == instance.profile.end()) continue;
    auto planned = backend_.Plan(*nic, config->ip_configs, error);
    if (!planned.has_value()) {
      for (const auto& [other, taken] : plans) Backend::Undo(*other, taken);
      return false;
    }
    plans.emplace_back(nic, *std::move(planned));
    nic->extra = config->extra;
  }
  for (auto& [nic, planned] : plans) backend_.Commit(*nic, std::move(planned), when);
  return true;
}

http::Response Compute::DeleteInstanceRequest(Call& call, Instance& instance) {
  call.kind = "instance.delete";
  if (auto refused = backend_.Ask(call, Policy::kDeleteScaleSetVms, ScopeOf(instance))) {
    return *refused;
  }
  http::Response response = AcceptDeletion(call, *instance.set);
  DeleteInstance(instance, call.now);
  return response;
}

void Compute::DeleteInstance(Instance& instance, absl::Time when) {
  if (instance.state == State::kDeleting) return;
  if (Operation* running = backend_.Find(instance.operation);
      running != nullptr && running->running()) {
    backend_.End(*running, when, Operation::Status::kCanceled, "OperationPreempted",
                 "Operation execution has been preempted by a more recent operation.");
  }
  instance.state = State::kDeleting;
  ++instance.etag;
  const absl::Time end = when + backend_.random().Of(backend_.knobs().delete_latency);
  backend_.timeline().At(end, [this, set = instance.set, number = instance.number](absl::Time at) {
    MarkGone(*set, number, at);
  });
}

void Compute::RemoveInstance(Instance& instance, absl::Time when) {
  MarkGone(*instance.set, instance.number, when);
}

void Compute::MarkGone(ScaleSet& set, int64_t number, absl::Time when) {
  Instance* instance = World::FindInstance(set, number);
  if (instance == nullptr) return;
  for (Nic* nic : instance->nics) backend_.TakeDown(*nic, when);
  instance->gone = true;
  instance->state = State::kDeleting;
  --set.capacity;
  // Lists go on showing it for a while.
  backend_.timeline().At(when + backend_.knobs().list_lag, [this, &set, number](absl::Time) {
    const auto found = set.instances.find(number);
    if (found != set.instances.end()) backend_.world().Forget(*found->second);
  });
}

http::Response Compute::ReimageRequest(Call& call, Instance& instance) {
  call.kind = "instance.reimage";
  if (auto refused = backend_.Ask(call, Policy::kUpdateScaleSetVms, ScopeOf(instance))) {
    return *refused;
  }
  Json body;
  if (auto error = ParseBody(call, BodyOf::kReimage, backend_.knobs(), &body)) return *error;
  if (auto error = Preempt(instance, call.now)) return *error;
  http::Response response = EmptyResponse(202);
  Reimage(instance, call.now);
  if (const Operation* operation = backend_.Find(instance.operation); operation != nullptr) {
    backend_.AddAsyncHeaders(call, *operation, true, &response);
  }
  return response;
}

}  // namespace spoke::azure_sim
