// Virtual networks and their subnets.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "tests/azure-sim/resources/compute.h"
#include "tests/azure-sim/resources/network.h"
#include "tests/azure-sim/resources/profile.h"
#include "tests/azure-sim/resources/request_body.h"

namespace spoke::azure_sim {

http::Response Network::Networks(Call& call, ResourceGroup* group, size_t rest) {
  if (call.target.size() == rest + 1) {
    call.kind = "vnet.list";
    if (auto refused = Ask(call, call.target.Key(1), group == nullptr ? "" : group->location)) {
      return *refused;
    }
    std::vector<const VirtualNetwork*> all;
    const auto found = backend_.world().groups().find(std::string(call.target.Key(1)));
    if (found != backend_.world().groups().end()) {
      for (const auto& [key, each] : found->second) {
        if (group != nullptr && each.get() != group) continue;
        for (const auto& [name, network] : each->networks) all.push_back(network.get());
      }
    }
    Renderer renderer = backend_.RendererFor(call);
    return backend_.Page(call, all.size(), [&](size_t at) { return renderer.Of(*all[at]); });
  }
  call.kind = "vnet.get";
  const std::string name(call.target.Segment(rest + 1));
  const auto found = group->networks.find(Lower(name));
  if (found == group->networks.end()) {
    if (call.target.size() > rest + 2) return ParentNotFound(name);
    if (call.request.method == "PUT") {
      return NotSimulated(*call.operation, "virtual networks come with the specification");
    }
    return ResourceNotFound("Microsoft.Network/virtualNetworks/" + name, group->name);
  }
  if (auto refused = Ask(call, group->subscription, found->second->location)) return *refused;
  return OneNetwork(call, *group, *found->second);
}

http::Response Network::OneNetwork(Call& call, ResourceGroup& group, VirtualNetwork& network) {
  if (call.target.Key(8) == "subnets") return Subnets(call, group, network);
  if (call.target.Key(8) == "usages") return Usages(call, network);
  if (call.request.method != "GET") return WriteNetwork(call, group, network);
  http::Response response = JsonResponse(200, backend_.RendererFor(call).Of(network));
  response.headers.Add("ETag", NetworkEtag(network.serial, network.version));
  return response;
}

http::Response Network::WriteNetwork(Call& call, const ResourceGroup& group,
                                     VirtualNetwork& network) {
  const bool whole = call.request.method == "PUT";
  call.kind = whole ? "vnet.put" : "vnet.patch";
  Json body;
  if (auto error =
          ParseBody(call, whole ? BodyOf::kNetwork : BodyOf::kTags, backend_.knobs(), &body)) {
    return *error;
  }
  const Placed place{network.name, group.name, network.location};
  if (whole) {
    if (auto error = CheckLocation(body, place, Location::kRequired)) return *error;
  }
  const std::string etag = NetworkEtag(network.serial, network.version);
  if (!EtagMatches(call.if_match(), etag)) {
    return NetworkPreconditionFailed(call.if_match(), etag, network.id);
  }
  if (call.wants_new()) return AlreadyThere(network.id);
  if (whole) return NotSimulated(*call.operation, "address spaces do not change");
  if (body.contains("tags") && body["tags"].is_object()) {
    network.tags = MakeExtra(body["tags"]);
    ++network.version;
  }
  http::Response response = JsonResponse(200, backend_.RendererFor(call).Of(network));
  response.headers.Add("ETag", NetworkEtag(network.serial, network.version));
  return response;
}

http::Response Network::Subnets(Call& call, ResourceGroup& group, VirtualNetwork& network) {
  call.kind = "subnet.get";
  Renderer renderer = backend_.RendererFor(call);
  const Knobs& knobs = backend_.knobs();
  const auto show = [&](const Subnet& subnet) {
    if (!knobs.subnet_lists_ip_configurations) return renderer.Of(subnet, nullptr);
    const auto most = static_cast<size_t>(std::max(knobs.subnet_ip_configurations_most, 0));
    const std::vector<std::string> ids = IpConfigurationsOf(subnet, most + 1);
    // Azure shows none at all for a subnet with very many.
    return renderer.Of(subnet, ids.empty() || ids.size() > most ? nullptr : &ids);
  };
  if (call.target.size() == 9) {
    call.kind = "subnet.list";
    std::vector<const Subnet*> all;
    for (const auto& [key, subnet] : network.subnets) all.push_back(subnet.get());
    return backend_.Page(call, all.size(), [&](size_t at) { return show(*all[at]); });
  }
  if (call.request.method == "PUT") return PutSubnet(call, group, network);
  const auto found = network.subnets.find(call.target.keys[9]);
  if (found == network.subnets.end()) {
    return NestedNotFound(fmt::format("{}/subnets/{}", network.id, call.target.segments[9]));
  }
  http::Response response = JsonResponse(200, show(*found->second));
  response.headers.Add("ETag", NetworkEtag(found->second->serial, found->second->version));
  return response;
}

http::Response Network::PutSubnet(Call& call, ResourceGroup& group, VirtualNetwork& network) {
  call.kind = "subnet.put";
  Json body;
  if (auto error = ParseBody(call, BodyOf::kSubnet, backend_.knobs(), &body)) return *error;
  const Json* prefix = nullptr;
  if (body.contains("properties") && body["properties"].is_object() &&
      body["properties"].contains("addressPrefix")) {
    prefix = &body["properties"]["addressPrefix"];
  }
  const auto parsed =
      ip::Prefix::Parse(prefix != nullptr && prefix->is_string() ? prefix->get<std::string>() : "");
  if (!parsed.ok() || !parsed->base().is_v4() || parsed->length() > 29) {
    return ErrorResponse(400, "InvalidAddressPrefixFormat", "Not the prefix of a subnet.",
                         Details::kEmpty);
  }
  const auto found = network.subnets.find(call.target.keys[9]);
  const bool created = found == network.subnets.end();
  Subnet* subnet = created ? nullptr : found->second.get();
  if (created) {
    const std::string id = fmt::format("{}/subnets/{}", network.id, call.target.segments[9]);
    const auto added = backend_.world().AddSubnet({id, *parsed, std::nullopt, network.location});
    if (!added.ok()) {
      return ErrorResponse(400, "InvalidParameter", base::MessageOf(added.status()));
    }
    subnet = *added;
  } else if (call.wants_new()) {
    return AlreadyThere(subnet->id);
  } else if (const std::string etag = NetworkEtag(subnet->serial, subnet->version);
             !EtagMatches(call.if_match(), etag)) {
    return NetworkPreconditionFailed(call.if_match(), etag, subnet->id);
  } else if (subnet->v4.prefix() != *parsed) {
    return ErrorResponse(400, "InUsePrefixCannotBeDeleted", "The subnet is in use.",
                         Details::kEmpty);
  }
  Operation& operation =
      backend_.Start(call, Provider::kNetwork, group.subscription, network.location);
  Json shown = backend_.RendererFor(call).Of(*subnet, nullptr);
  if (created) shown["properties"]["provisioningState"] = "Updating";
  http::Response response = JsonResponse(created ? 201 : 200, shown);
  backend_.AddAsyncHeaders(call, operation, false, &response);
  backend_.End(operation, call.now, Operation::Status::kSucceeded);
  return response;
}

http::Response Network::Usages(Call& call, VirtualNetwork& network) {
  call.kind = "vnet.usages";
  std::vector<const Subnet*> all;
  for (const auto& [key, subnet] : network.subnets) all.push_back(subnet.get());
  return backend_.Page(call, all.size(), [&](size_t at) {
    const Subnet& subnet = *all[at];
    const auto usable = static_cast<int64_t>(subnet.v4.prefix().size()) - 5;
    return Json{{"currentValue", usable - static_cast<int64_t>(subnet.v4.free())},
                {"id", subnet.id},
                {"limit", usable},
                {"name", {{"localizedValue", "Subnet size and usage"}, {"value", "SubnetSpace"}}},
                {"unit", "Count"}};
  });
}

std::vector<std::string> Network::IpConfigurationsOf(const Subnet& subnet, size_t most) {
  std::vector<std::string> ids;
  const auto add = [&](const Nic& nic) {
    for (const NicEntry& entry : nic.entries) {
      if (entry.subnet == &subnet && ids.size() < most) {
        ids.push_back(fmt::format("{}/ipConfigurations/{}", nic.id, entry.name));
      }
    }
  };
  for (const auto& [name, groups] : backend_.world().groups()) {
    for (const auto& [key, group] : groups) {
      for (const auto& [set_name, set] : group->sets) {
        for (const auto& [number, instance] : set->instances) {
          if (ids.size() >= most) return ids;
          for (const Nic* nic : instance->nics) {
            if (!nic->standalone) add(*nic);
          }
        }
      }
      for (const auto& [nic_name, nic] : group->nics) add(*nic);
    }
  }
  return ids;
}

}  // namespace spoke::azure_sim
