// The NICs of their own: those of Flexible scale sets' machines, and ones that are on no machine.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "tests/azure-sim/resources/compute.h"
#include "tests/azure-sim/resources/network.h"
#include "tests/azure-sim/resources/profile.h"
#include "tests/azure-sim/resources/request_body.h"

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
    return call.target.Key(rest + 2) == "operations" ? backend_.OperationStatus(call)
                                                     : backend_.OperationResult(call);
  }
  if (type == "virtualnetworks") return Networks(call, group, rest);
  return call.target.size() == rest + 1 ? ListNics(call, group) : OneNic(call, *group);
}

http::Response Network::ListNics(Call& call, ResourceGroup* group) {
  call.kind = "nic.list";
  if (auto refused = Ask(call, call.target.Key(1), group == nullptr ? "" : group->location)) {
    return *refused;
  }
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
  Renderer renderer = backend_.RendererFor(call);
  return backend_.Page(call, all.size(), [&](size_t at) { return NicJson(renderer, *all[at]); });
}

http::Response Network::OneNic(Call& call, ResourceGroup& group) {
  const std::string& method = call.request.method;
  call.kind = method == "GET"      ? "nic.get"
              : method == "DELETE" ? "nic.delete"
              : method == "PATCH"  ? "nic.patch"
                                   : "nic.put";
  const auto found = group.nics.find(call.target.keys[7]);
  Nic* nic = found == group.nics.end() ? nullptr : found->second.get();
  if (nic != nullptr && nic->vm != nullptr && nic->vm->gone) nic = nullptr;
  if (nic == nullptr && method == "DELETE") return EmptyResponse(204);
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
  return method == "DELETE" ? DeleteNic(call, group, *nic) : PatchNic(call, *nic);
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
  // What is not there matches no etag (RFC 9110, section 13.1.1).
  const std::string etag = nic == nullptr ? "" : NetworkEtag(nic->serial, nic->version);
  if (nic == nullptr ? !call.if_match().empty() : !EtagMatches(call.if_match(), etag)) {
    return NetworkPreconditionFailed(call.if_match(), etag,
                                     nic == nullptr ? call.target.path : nic->id);
  }
  if (nic != nullptr && call.wants_new()) return AlreadyThere(nic->id);
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
  nic.state = State::kSucceeded;  // If the newer one is refused, nothing runs any more.
  return std::nullopt;
}

http::Response Network::PutNic(Call& call, ResourceGroup& group, Nic* nic) {
  if (nic != nullptr && backend_.random().Chance(backend_.knobs().foreign_writes_at_put)) {
    WriteAsForeigner(*nic);
  }
  Json body;
  if (auto error = ParseBody(call, BodyOf::kNic, backend_.knobs(), &body)) return *error;
  const Placed place{call.target.segments[7], group.name,
                     nic == nullptr ? std::string_view() : nic->location};
  if (auto error = CheckLocation(body, place, Location::kRequired)) return *error;
  if (auto error = RefuseWrite(call, nic)) return *error;
  const Json properties =
      body.contains("properties") && body["properties"].is_object() ? body["properties"] : Json();
  const Json list = properties.is_object() && properties.contains("ipConfigurations")
                        ? properties["ipConfigurations"]
                        : Json();
  const std::string& name = nic == nullptr ? call.target.segments[7] : nic->name;
  auto parsed = ParseNicEntries(list, name, {backend_.world(), backend_.knobs(), call.target.path});
  if (parsed.error.has_value()) return *parsed.error;
  const bool created = nic == nullptr;
  if (created) {
    nic = &backend_.world().AddNic(group, name, body["location"].get<std::string>());
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
  // The whole NIC is put: tags that are left out are gone.
  nic->tags = body.contains("tags") && body["tags"].is_object() ? MakeExtra(body["tags"]) : nullptr;
  return Write(call, *nic, std::move(parsed.value), created);
}

http::Response Network::PatchNic(Call& call, Nic& nic) {
  Json body;
  if (auto error = ParseBody(call, BodyOf::kTags, backend_.knobs(), &body)) return *error;
  if (auto error = RefuseWrite(call, &nic)) return *error;
  if (body.contains("tags") && body["tags"].is_object()) {
    nic.tags = MakeExtra(body["tags"]);
    ++nic.version;
  }
  http::Response response = JsonResponse(200, backend_.RendererFor(call).Of(nic));
  response.headers.Add("ETag", NetworkEtag(nic.serial, nic.version));
  return response;
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
  backend_.timeline().At(
      fate.when, [this, id, operation, fate, wanted = std::move(wanted)](absl::Time when) {
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
        const bool succeeds = fate.status == Operation::Status::kSucceeded;
        Backend::AssignError error{backend_.knobs().failed_operation_code,
                                   "An unexpected error occured."};
        std::optional<std::vector<NicEntry>> planned;
        if (succeeds || fate.nic_written) planned = backend_.Plan(written, wanted, &error);
        const bool done = succeeds && planned.has_value();
        if (planned.has_value()) backend_.Commit(written, *std::move(planned), when);
        written.state = done ? State::kSucceeded : State::kFailed;
        if (done) return backend_.End(*running, when, Operation::Status::kSucceeded);
        backend_.End(*running, when, succeeds ? Operation::Status::kFailed : fate.status,
                     error.code, error.message);
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
