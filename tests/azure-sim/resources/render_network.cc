// Shows the resources of Microsoft.Network.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "tests/azure-sim/resources/render.h"
#include "tests/azure-sim/resources/responses.h"

namespace spoke::azure_sim {

Json Renderer::Of(const Nic& nic, const NicEntry& entry) {
  Json properties = {
      {"provisioningState", "Succeeded"},
      {"privateIPAddress", entry.range.base().ToString()},
  };
  if (entry.block_length != 0) properties["privateIPAddressPrefixLength"] = entry.block_length;
  properties["privateIPAllocationMethod"] = entry.is_static ? "Static" : "Dynamic";
  properties["subnet"] = Reference(entry.subnet->id);
  properties["primary"] = entry.primary;
  properties["privateIPAddressVersion"] = entry.range.base().is_v4() ? "IPv4" : "IPv6";
  if (entry.extra != nullptr) {
    for (const auto& [key, value] : entry.extra->items()) properties[key] = value;
  }
  Json json = {{"name", entry.name},
               {"id", Id(fmt::format("{}/ipConfigurations/{}", nic.id, entry.name))},
               {"etag", NetworkEtag(nic.serial, nic.VersionAt(now_))}};
  if (nic.standalone) json["type"] = "Microsoft.Network/networkInterfaces/ipConfigurations";
  json["properties"] = std::move(properties);
  return json;
}

Json Renderer::Of(const Nic& nic, bool null_entries) {
  Json entries = Json::array();
  for (const NicEntry& entry : nic.EntriesAt(now_)) entries.push_back(Of(nic, entry));
  if (knobs_.shuffle_ip_configurations && entries.size() > 1) {
    for (size_t i = entries.size() - 1; i > 0; --i) {
      std::swap(entries[i], entries[random_.Next() % (i + 1)]);
    }
  }
  if (null_entries) entries = Json();
  Json properties = {{"provisioningState", NameOf(nic.state)},
                     {"resourceGuid", GuidOf(nic.serial, 0)},
                     {"ipConfigurations", std::move(entries)}};
  properties["dnsSettings"] = {
      {"dnsServers", Json::array()},
      {"appliedDnsServers", Json::array()},
      {"internalDomainNameSuffix", "ddt4dufrjkwe5jziofpp4obvua.bx.internal.cloudapp.net"}};
  // A NIC has its MAC from when it is first attached.
  if (!nic.standalone || nic.vm != nullptr) properties["macAddress"] = DashedMac(nic.mac);
  properties["enableAcceleratedNetworking"] = false;
  if (nic.standalone) properties["vnetEncryptionSupported"] = false;
  properties["enableIPForwarding"] = false;
  if (nic.standalone) properties["disableTcpStateTracking"] = false;
  if (nic.extra != nullptr) {
    for (const auto& [key, value] : nic.extra->items()) {
      if (key == "dnsSettings" || (key == "disableTcpStateTracking" && !nic.standalone)) continue;
      properties[key] = value;
    }
  }
  if (nic.vm != nullptr) {
    properties["primary"] = nic.primary;
    properties["virtualMachine"] = Reference(nic.vm->id);
  }
  properties["hostedWorkloads"] = Json::array();
  properties["tapConfigurations"] = Json::array();
  Json json = {{"name", nic.name},
               {"id", Id(nic.id)},
               {"etag", NetworkEtag(nic.serial, nic.VersionAt(now_))}};
  if (nic.standalone) {
    properties["nicType"] = "Standard";
    properties["allowPort25Out"] = true;
    properties["defaultOutboundConnectivityEnabled"] = false;
    properties["auxiliaryMode"] = "None";
    properties["auxiliarySku"] = "None";
  }
  json["properties"] = std::move(properties);
  if (nic.standalone) {
    json["type"] = "Microsoft.Network/networkInterfaces";
    json["location"] = nic.location;
    if (nic.tags != nullptr) json["tags"] = *nic.tags;
    json["kind"] = "Regular";
  }
  return json;
}

Json Renderer::Of(const Subnet& subnet, const std::vector<std::string>* ip_configuration_ids) {
  Json properties = {{"provisioningState", "Succeeded"},
                     {"addressPrefix", subnet.v4.prefix().ToString()}};
  if (subnet.v6.has_value()) {
    properties.erase("addressPrefix");
    properties["addressPrefixes"] = {subnet.v4.prefix().ToString(), subnet.v6->prefix().ToString()};
  }
  if (ip_configuration_ids != nullptr) {
    Json list = Json::array();
    for (const std::string& id : *ip_configuration_ids) list.push_back(Reference(id));
    properties["ipConfigurations"] = std::move(list);
  }
  properties["delegations"] = Json::array();
  properties["privateEndpointNetworkPolicies"] = "Disabled";
  properties["privateLinkServiceNetworkPolicies"] = "Enabled";
  return {{"name", subnet.name},
          {"id", Id(subnet.id)},
          {"etag", NetworkEtag(subnet.serial, subnet.version)},
          {"properties", std::move(properties)},
          {"type", "Microsoft.Network/virtualNetworks/subnets"}};
}

Json Renderer::Of(const VirtualNetwork& network) {
  Json subnets = Json::array();
  for (const auto& [name, subnet] : network.subnets) subnets.push_back(Of(*subnet, nullptr));
  Json json = {{"name", network.name},
               {"id", Id(network.id)},
               {"etag", NetworkEtag(network.serial, network.version)},
               {"type", "Microsoft.Network/virtualNetworks"},
               {"location", network.location},
               {"properties",
                {{"provisioningState", "Succeeded"},
                 {"resourceGuid", GuidOf(network.serial, 0)},
                 {"addressSpace", {{"addressPrefixes", network.prefixes}}},
                 {"privateEndpointVNetPolicies", "Disabled"},
                 {"subnets", std::move(subnets)},
                 {"virtualNetworkPeerings", Json::array()},
                 {"enableDdosProtection", false}}}};
  if (network.tags != nullptr) json["tags"] = *network.tags;
  return json;
}

}  // namespace spoke::azure_sim
