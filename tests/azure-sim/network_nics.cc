// NICs of their own: those of Flexible scale sets' machines, and ones that are on no machine.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "tests/azure-sim/compute.h"
#include "tests/azure-sim/network.h"
#include "tests/azure-sim/profile.h"

namespace spoke::azure_sim {

std::optional<http::Response> Network::Ask(Call& call, std::string_view subscription,
                                           std::string_view region) {
  const Policy policy =
      call.direction() == Direction::kRead ? Policy::kNetworkRead : Policy::kNetworkWrite;
  return backend_.Ask(call, policy, {subscription, region, {}});
}

http::Response Network::Handle(Call& call, ResourceGroup* group, size_t rest) {
  call.provider = Provider::kNetwork;
  const std::string_view type = call.target.Key(rest);
  if (type == "locations") {
    if (call.target.Key(rest + 2) == "operations") return backend_.OperationStatus(call);
    if (call.target.Key(rest + 2) == "operationresults") return backend_.OperationResult(call);
  }
  if (type == "networkinterfaces") {
    if (call.target.size() == rest + 1) return ListNics(call, group);
    if (group != nullptr) return OneNic(call, *group);
  }
  if (type == "virtualnetworks") return Networks(call, group, rest);
  return UnknownResourceType(type, "Microsoft.Network", call.target.api_version());
}

http::Response Network::ListNics(Call& call, ResourceGroup* group) {
  call.kind = "nic.list";
  if (auto refused = Ask(call, call.target.Key(1), group == nullptr ? "" : group->location)) {
    return *refused;
  }
  const std::optional<uint64_t> cursor = Backend::CursorOf(call);
  if (!cursor.has_value()) return ErrorResponse(400, "InvalidSkipToken", "Not a skip token.");
  if (backend_.random().Chance(backend_.knobs().nic_list_empty)) {
    return JsonResponse(200, {{"value", Json::array()}});
  }
  std::vector<const Nic*> all;
  const auto add = [&](const ResourceGroup& each) {
    for (const auto& [key, nic] : each.nics) {
      if (nic->vm == nullptr || (call.now >= nic->vm->listed_from && !nic->vm->gone)) {
        all.push_back(nic.get());
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
  const auto page = static_cast<uint64_t>(std::max(backend_.knobs().page_size, 1));
  Renderer renderer = backend_.RendererFor(call);
  Json value = Json::array();
  uint64_t at = *cursor;
  for (; at < all.size() && at < *cursor + page; ++at) {
    if (backend_.random().Chance(backend_.knobs().list_omits)) continue;
    value.push_back(NicJson(renderer, *all[at]));
  }
  Json body = {{"value", std::move(value)}};
  if (at < all.size()) body["nextLink"] = Backend::NextLink(call, at);
  return JsonResponse(200, body);
}

http::Response Network::OneNic(Call& call, ResourceGroup& group) {
  const std::string& method = call.request.method;
  call.kind = method == "GET" ? "nic.get" : method == "DELETE" ? "nic.delete" : "nic.put";
  const auto found = group.nics.find(call.target.keys[7]);
  Nic* nic = found == group.nics.end() ? nullptr : found->second.get();
  if (nic != nullptr && nic->vm != nullptr && nic->vm->gone) nic = nullptr;
  if (nic == nullptr && method != "PUT") {
    return ResourceNotFound("Microsoft.Network/networkInterfaces/" + call.target.segments[7],
                            group.name);
  }
  if (auto refused =
          Ask(call, group.subscription, nic == nullptr ? group.location : nic->location)) {
    return *refused;
  }
  if (method == "GET") return GetNic(call, *nic, 8);
  if (method == "PUT") return PutNic(call, group, nic);
  if (method == "DELETE") return DeleteNic(call, group, *nic);
  return ErrorResponse(405, "HttpMethodNotAllowed", "The method is not allowed here.");
}

http::Response Network::GetNic(Call& call, Nic& nic, size_t below) {
  Renderer renderer = backend_.RendererFor(call);
  if (call.target.Key(below) == "ipconfigurations") {
    if (call.target.size() == below + 1) {
      Json value = Json::array();
      for (const NicEntry& entry : nic.EntriesAt(call.now)) {
        value.push_back(renderer.Of(nic, entry));
      }
      return JsonResponse(200, {{"value", std::move(value)}});
    }
    for (const NicEntry& entry : nic.EntriesAt(call.now)) {
      if (Lower(entry.name) == call.target.Key(below + 1)) {
        return JsonResponse(200, renderer.Of(nic, entry));
      }
    }
    return NestedNotFound(
        fmt::format("{}/ipConfigurations/{}", nic.id, call.target.Segment(below + 1)));
  }
  http::Response response = JsonResponse(200, renderer.Of(nic));
  response.headers.Add("ETag", NetworkEtag(nic.serial, nic.VersionAt(call.now)));
  if (nic.standalone && backend_.random().Chance(backend_.knobs().foreign_writes)) {
    WriteAsForeigner(nic);
  }
  return response;
}

void Network::WriteAsForeigner(Nic& nic) {
  for (NicEntry& entry : nic.entries) {
    if (!entry.primary) continue;
    ++backend_.counters().foreign_writes;
    Json extra = entry.extra == nullptr ? Json::object() : *entry.extra;
    Json& pools = extra["loadBalancerBackendAddressPools"];
    if (!pools.is_array()) pools = Json::array();
    if (pools.size() >= 3) pools.erase(pools.size() - 1);
    pools.push_back({{"id", fmt::format("{}/foreign/pool-{}", nic.id.substr(0, nic.id.rfind('/')),
                                        backend_.counters().foreign_writes)}});
    entry.extra = MakeExtra(extra);
    ++nic.version;
    return;
  }
}

std::optional<http::Response> Network::RefuseWrite(Call& call, const Nic* nic) {
  const Knobs& knobs = backend_.knobs();
  if (knobs.deny_join) {
    return ErrorResponse(
        403, "LinkedAuthorizationFailed",
        "The client has permission to perform action 'Microsoft.Network/networkInterfaces/write'; "
        "however, it does not have permission to perform action "
        "'Microsoft.Network/virtualNetworks/subnets/join/action' on the linked scope.");
  }
  if (backend_.random().Chance(knobs.network_busy)) {
    // One of the two reasons that are known for it.
    const bool locked = backend_.random().Chance(0.5);
    const std::string reason =
        locked ? fmt::format(
                     "Operation PutSubnetOperation ({}) is updating resource {}. The call "
                     "can be retried in 11 seconds.",
                     backend_.random().Guid(), call.target.path)
               : fmt::format(
                     "Cannot proceed with operation because a subnet used by resource {} is "
                     "not in Succeeded state. Resource is in Updating state and the last "
                     "operation that updated/is updating the resource is "
                     "PutSubnetOperation.",
                     call.target.path);
    Json error = {{"code", "RetryableError"}, {"message", "A retryable error occurred."}};
    error["details"] = Json::array({{{"code", locked ? "RetryableErrorDueToAnotherOperation"
                                                     : "ReferencedResourceNotProvisioned"},
                                     {"message", reason}}});
    http::Response response = JsonResponse(429, {{"error", std::move(error)}});
    AddRetryAfter(absl::Seconds(10), knobs.retry_after, call.now, &response);
    return response;
  }
  if (nic == nullptr) return std::nullopt;
  const std::string etag = NetworkEtag(nic->serial, nic->version);
  if (!EtagMatches(call.if_match(), etag)) {
    return NetworkPreconditionFailed(call.if_match(), etag, nic->id);
  }
  return std::nullopt;
}

std::optional<http::Response> Network::Preempt(Nic& nic, absl::Time now) {
  const bool made_up = backend_.random().Chance(backend_.knobs().conflicts);
  Operation* running = backend_.Find(nic.operation);
  const bool busy = running != nullptr && running->running();
  if (!busy && !made_up) return std::nullopt;
  if (made_up || backend_.knobs().on_concurrent_write == OnConcurrentWrite::kConflict) {
    return ErrorResponse(409, "AnotherOperationInProgress",  // The code is unverified.
                         fmt::format("Another operation on this or dependent resource {} is in "
                                     "progress.",
                                     nic.id),
                         Details::kEmpty);
  }
  backend_.End(*running, now, Operation::Status::kCanceled,
               "CanceledAndSupersededDueToAnotherOperation",
               "Operation was canceled and superseded by another operation.");
  nic.state = State::kSucceeded;  // Should the newer one be refused, nothing runs any more.
  return std::nullopt;
}

http::Response Network::PutNic(Call& call, ResourceGroup& group, Nic* nic) {
  if (nic != nullptr && backend_.random().Chance(backend_.knobs().foreign_writes_at_put)) {
    WriteAsForeigner(*nic);
  }
  Json body;
  if (auto error = ParseBody(call, &body)) return *error;
  if (auto error = RefuseWrite(call, nic)) return *error;
  const Json properties =
      body.contains("properties") && body["properties"].is_object() ? body["properties"] : Json();
  const Json list = properties.is_object() && properties.contains("ipConfigurations")
                        ? properties["ipConfigurations"]
                        : Json();
  const std::string version = call.target.api_version();
  const std::string& name = nic == nullptr ? call.target.segments[7] : nic->name;
  auto parsed =
      ParseNicEntries(list, name, {backend_.world(), backend_.knobs(), version, call.target.path});
  if (parsed.error.has_value()) return *parsed.error;
  const bool created = nic == nullptr;
  if (created) {
    std::string location = group.location;
    if (body.contains("location") && body["location"].is_string()) {
      location = body["location"].get<std::string>();
    }
    nic = &backend_.world().AddNic(group, name, location);
  } else {
    for (const NicEntry& entry : nic->entries) {
      if (!entry.primary || nic->vm == nullptr) continue;
      if (auto error = CheckPrimaryStays(entry.name, parsed.value)) return *error;
    }
    if (auto error = Preempt(*nic, call.now)) return *error;
  }
  Json extra = Json::object();
  for (const char* key : {"enableAcceleratedNetworking", "enableIPForwarding",
                          "networkSecurityGroup", "dnsSettings", "disableTcpStateTracking"}) {
    if (properties.is_object() && properties.contains(key)) extra[key] = properties[key];
  }
  nic->extra = MakeExtra(extra);
  return Write(call, *nic, std::move(parsed.value), created);
}

http::Response Network::Write(Call& call, Nic& nic, std::vector<IpConfig> wanted, bool created) {
  const bool attached = nic.vm != nullptr;
  if (!attached || backend_.knobs().full_subnet == FullSubnet::kSync) {
    Backend::AssignError error;
    auto planned = backend_.Plan(nic, wanted, &error);
    if (!planned.has_value()) {
      if (created) {
        ResourceGroup* group = backend_.world().FindGroup(call.target.Key(1), call.target.Key(3));
        if (group != nullptr) group->nics.erase(call.target.keys[7]);
      }
      return ErrorResponse(400, error.code, error.message, Details::kEmpty);
    }
    if (attached) {
      Backend::Undo(nic, *planned);
    } else {
      backend_.Commit(nic, *std::move(planned), call.now);
    }
  }
  if (!attached) {
    Renderer renderer = backend_.RendererFor(call);
    return JsonResponse(created ? 201 : 200, renderer.Of(nic));
  }
  Operation& operation =
      backend_.Start(call, Provider::kNetwork, call.target.segments[1], nic.location);
  nic.operation = operation.id;
  nic.state = State::kUpdating;
  Renderer renderer = backend_.RendererFor(call);
  http::Response response = JsonResponse(200, renderer.Of(nic));
  backend_.AddAsyncHeaders(call, operation, false, &response);
  AddRetryAfter(absl::Seconds(10), backend_.knobs().retry_after, call.now, &response);
  Carry(nic, std::move(wanted), operation.id, backend_.Draw(backend_.knobs().latency, call.now));
  return response;
}

void Network::Carry(Nic& nic, std::vector<IpConfig> wanted, const std::string& operation,
                    const Backend::Fate& fate) {
  const std::string id = nic.id;
  backend_.timeline().At(fate.when, [this, id, operation, fate,
                                     wanted = std::move(wanted)](absl::Time when) {
    Operation* running = backend_.Find(operation);
    if (running == nullptr || !running->running()) return;
    const Target target = ParseTarget(id);
    ResourceGroup* group = backend_.world().FindGroup(target.Key(1), target.Key(3));
    const auto found = group->nics.find(target.keys[7]);
    if (found == group->nics.end() || found->second->vm == nullptr || found->second->vm->gone) {
      return backend_.End(*running, when, Operation::Status::kFailed, "NotFound",
                          "The network interface was deleted.");
    }
    Nic& written = *found->second;
    if (fate.status != Operation::Status::kSucceeded) {
      written.state = State::kFailed;
      return backend_.End(*running, when, fate.status, backend_.knobs().failed_operation_code,
                          "An unexpected error occured.");
    }
    Backend::AssignError error;
    auto planned = backend_.Plan(written, wanted, &error);
    if (!planned.has_value()) {
      written.state = State::kFailed;
      return backend_.End(*running, when, Operation::Status::kFailed, error.code, error.message);
    }
    written.state = State::kSucceeded;
    backend_.Commit(written, *std::move(planned), when);
    backend_.End(*running, when, Operation::Status::kSucceeded);
  });
}

http::Response Network::DeleteNic(Call& call, ResourceGroup& group, Nic& nic) {
  if (nic.vm != nullptr) {
    return ErrorResponse(
        400, "NicInUse",
        fmt::format("Network Interface {} is used by existing resource {}.", nic.id, nic.vm->id),
        Details::kEmpty);
  }
  const std::string location = nic.location;
  backend_.TakeDown(nic, call.now);
  group.nics.erase(call.target.keys[7]);
  Operation& operation = backend_.Start(call, Provider::kNetwork, group.subscription, location);
  http::Response response = EmptyResponse(200);
  backend_.AddAsyncHeaders(call, operation, true, &response);
  backend_.End(operation, call.now, Operation::Status::kSucceeded);
  return response;
}

}  // namespace spoke::azure_sim
