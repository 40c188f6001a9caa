#include "tests/azure-sim/resources/render.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "tests/azure-sim/resources/api_versions.h"
#include "tests/azure-sim/resources/responses.h"
#include "tests/azure-sim/target.h"

namespace spoke::azure_sim {
namespace {

// Returns what instances are made of, besides their network: the client never needs it, and must
// keep it.
Json ImageReference() {
  return {{"publisher", "Canonical"},
          {"offer", "0001-com-ubuntu-server-jammy"},
          {"sku", "22_04-lts-gen2"},
          {"version", "latest"}};
}

Json LinuxConfiguration() {
  return {{"disablePasswordAuthentication", true}, {"provisionVMAgent", true}};
}

Json OsProfile(std::string_view computer_name) {
  return {{"computerName", computer_name},
          {"adminUsername", "azureuser"},
          {"linuxConfiguration", LinuxConfiguration()},
          {"secrets", Json::array()},
          {"allowExtensionOperations", true},
          {"requireGuestProvisionSignal", true}};
}

std::string DiskName(const Instance& instance) {
  return fmt::format("{}_{}_OS__1_{}", instance.set->spec.name, instance.name,
                     instance.vm_id.substr(0, 8));
}

Json StorageProfile(const Instance& instance) {
  Json image = ImageReference();
  image["exactVersion"] = "22.04.202601010";
  const std::string disk_id =
      fmt::format("/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Compute/disks/{}",
                  instance.set->group->subscription, instance.set->group->name, DiskName(instance));
  return {{"imageReference", std::move(image)},
          {"osDisk",
           {{"osType", "Linux"},
            {"name", DiskName(instance)},
            {"createOption", "FromImage"},
            {"caching", "ReadWrite"},
            {"managedDisk", {{"storageAccountType", "Premium_LRS"}, {"id", disk_id}}},
            {"diskSizeGB", 128}}},
          {"dataDisks", Json::array()}};
}

Json Status(std::string_view code, std::string_view shown) {
  return {{"code", code}, {"level", "Info"}, {"displayStatus", shown}};
}

void Merge(const Extra& extra, Json* into) {
  if (extra == nullptr) return;
  for (const auto& [key, value] : extra->items()) (*into)[key] = value;
}

}  // namespace

std::string DashedMac(const ip::MacAddress& mac) {
  const auto& o = mac.octets;
  return fmt::format("{:02X}-{:02X}-{:02X}-{:02X}-{:02X}-{:02X}", o[0], o[1], o[2], o[3], o[4],
                     o[5]);
}

std::string BareMac(const ip::MacAddress& mac) {
  const auto& o = mac.octets;
  return fmt::format("{:02X}{:02X}{:02X}{:02X}{:02X}{:02X}", o[0], o[1], o[2], o[3], o[4], o[5]);
}

std::string Renderer::Id(const std::string& id) {
  if (!knobs_.vary_id_case) return id;
  // The id is spelled as seen from Azure: all lower, group or provider words in another case, the
  // group in capitals.
  switch (random_.Next() % 4) {
    case 0:
      return Lower(id);
    case 1: {
      std::string upper = id;
      const size_t group = upper.find("/resourceGroups/");
      if (group == std::string::npos) return upper;
      const size_t begin = group + 16;
      const size_t end = std::min(upper.find('/', begin), upper.size());
      std::transform(upper.begin() + static_cast<ptrdiff_t>(begin),
                     upper.begin() + static_cast<ptrdiff_t>(end),
                     upper.begin() + static_cast<ptrdiff_t>(begin),
                     [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
      return upper;
    }
    case 2: {
      std::string varied = id;
      if (const size_t at = varied.find("/resourceGroups/"); at != std::string::npos) {
        varied.replace(at, 16, "/resourcegroups/");
      }
      return varied;
    }
    default:
      return id;
  }
}

std::string Renderer::Time(absl::Time time) const { return TimeText(time); }

Json Renderer::Profile(const NetworkProfile& profile) {
  Json nics = Json::array();
  for (const NicConfig& nic : profile) {
    Json properties = {{"primary", nic.primary}};
    Merge(nic.extra, &properties);
    Json ip_configs = Json::array();
    for (const IpConfig& config : nic.ip_configs) {
      Json inner = Json::object();
      if (config.primary.has_value()) inner["primary"] = *config.primary;
      inner["subnet"] = Reference(config.subnet->id);
      inner["privateIPAddressVersion"] = config.family == ip::Family::kV6 ? "IPv6" : "IPv4";
      if (config.block_length != 0 && HasComputeBlocks(api_version_, knobs_)) {
        inner["privateIPAddressPrefixLength"] = config.block_length;
      }
      Merge(config.extra, &inner);
      ip_configs.push_back({{"name", config.name}, {"properties", std::move(inner)}});
    }
    properties["ipConfigurations"] = std::move(ip_configs);
    nics.push_back({{"name", nic.name}, {"properties", std::move(properties)}});
  }
  return {{"networkInterfaceConfigurations", std::move(nics)}};
}

Json Renderer::Of(const ScaleSet& set) {
  const bool uniform = set.spec.orchestration == Orchestration::kUniform;
  const std::string& prefix =
      set.spec.computer_name_prefix.empty() ? set.spec.name : set.spec.computer_name_prefix;
  Json profile = {
      {"osProfile",
       {{"computerNamePrefix", prefix},
        {"adminUsername", "azureuser"},
        {"linuxConfiguration", LinuxConfiguration()},
        {"secrets", Json::array()},
        {"allowExtensionOperations", true},
        {"requireGuestProvisionSignal", true}}},
      {"storageProfile",
       {{"osDisk",
         {{"osType", "Linux"},
          {"createOption", "FromImage"},
          {"caching", "ReadWrite"},
          {"managedDisk", {{"storageAccountType", "Premium_LRS"}}},
          {"diskSizeGB", 128}}},
        {"imageReference", ImageReference()}}},
      {"networkProfile", Profile(set.model)},
      {"timeCreated", Time(set.created)},
  };
  if (!uniform) profile["networkProfile"]["networkApiVersion"] = "2022-11-01";
  Json json = {{"name", set.spec.name},
               {"id", Id(set.id)},
               {"type", "Microsoft.Compute/virtualMachineScaleSets"},
               {"location", set.spec.location},
               {"sku", {{"name", set.sku}, {"tier", "Standard"}, {"capacity", set.capacity}}}};
  if (HasComputeEtags(api_version_)) json["etag"] = ComputeEtag(set.etag);
  if (!set.spec.zones.empty()) json["zones"] = set.spec.zones;
  if (set.tags != nullptr) json["tags"] = *set.tags;
  json["properties"] = {
      {"singlePlacementGroup", set.capacity <= 100 && uniform},
      {"orchestrationMode", uniform ? "Uniform" : "Flexible"},
      {"upgradePolicy",
       {{"mode", set.upgrade_mode},
        {"automaticOSUpgradePolicy",
         {{"enableAutomaticOSUpgrade", false},
          {"useRollingUpgradePolicy", false},
          {"disableAutomaticRollback", false}}}}},
      {"virtualMachineProfile", std::move(profile)},
      {"provisioningState", NameOf(set.state)},
      {"overprovision", set.overprovision},
      {"doNotRunExtensionsOnOverprovisionedVMs", false},
      {"uniqueId", set.unique_id},
      {"platformFaultDomainCount", uniform ? 5 : 1},
      {"timeCreated", Time(set.created)},
  };
  return json;
}

Json Renderer::InstanceView(const Instance& instance) const {
  Json view = {{"placementGroupId",
                GuidOf(instance.set->created == absl::InfinitePast() ? 0 : 7, instance.set->etag)},
               {"platformUpdateDomain", instance.number % 5},
               {"platformFaultDomain", instance.number % 5},
               {"computerName", instance.computer_name},
               {"osName", "ubuntu"},
               {"osVersion", "22.04"}};
  Json ready = Status("ProvisioningState/succeeded", "Ready");
  ready["message"] = "Guest Agent is running";
  ready["time"] = Time(now_);
  view["vmAgent"] = {{"vmAgentVersion", "2.9.1.1"}, {"statuses", Json::array({std::move(ready)})}};
  Json provisioned =
      Status(fmt::format("ProvisioningState/{}", Lower(NameOf(instance.state))),
             instance.state == State::kSucceeded ? "Provisioning succeeded"
                                                 : std::string(NameOf(instance.state)));
  provisioned["time"] = Time(instance.created);
  view["disks"] =
      Json::array({{{"name", DiskName(instance)}, {"statuses", Json::array({provisioned})}}});
  view["hyperVGeneration"] = "V2";
  view["statuses"] =
      Json::array({std::move(provisioned), Status("PowerState/running", "VM running")});
  return view;
}

Json Renderer::Of(const Instance& instance, bool with_view) {
  const ScaleSet& set = *instance.set;
  Json properties = {
      {"latestModelApplied", instance.latest_model},
      {"modelDefinitionApplied", instance.own_model ? "VirtualMachine" : "VirtualMachineScaleSet"},
  };
  const bool hidden =
      instance.state == State::kDeleting && knobs_.null_network_profile_while_deleting;
  properties["networkProfileConfiguration"] = hidden ? Json() : Profile(instance.profile);
  properties["provisioningState"] = NameOf(instance.state);
  properties["hardwareProfile"] = {{"vmSize", set.sku}};
  properties["resilientVMDeletionStatus"] = "Disabled";
  properties["vmId"] = instance.vm_id;
  properties["storageProfile"] = StorageProfile(instance);
  properties["osProfile"] = OsProfile(instance.computer_name);
  Json nics = Json::array();
  for (const Nic* nic : instance.nics) nics.push_back(Reference(nic->id));
  properties["networkProfile"] = {{"networkInterfaces", std::move(nics)}};
  properties["timeCreated"] = Time(instance.created);
  Merge(instance.properties, &properties);
  if (with_view) properties["instanceView"] = InstanceView(instance);
  Json json = {{"name", instance.name},
               {"id", Id(instance.id)},
               {"type", "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"},
               {"location", set.spec.location},
               {"instanceId", fmt::format("{}", instance.number)},
               {"sku", {{"name", set.sku}, {"tier", "Standard"}}}};
  if (!set.spec.zones.empty()) {
    json["zones"] =
        Json::array({set.spec.zones[static_cast<size_t>(instance.number) % set.spec.zones.size()]});
  }
  json["properties"] = std::move(properties);
  if (HasComputeEtags(api_version_)) json["etag"] = ComputeEtag(instance.etag);
  return json;
}

Json Renderer::FlexibleMember(const Instance& instance) {
  return {{"name", instance.name},
          {"id", Id(instance.id)},
          {"type", "Microsoft.Compute/virtualMachines"},
          {"location", instance.set->spec.location},
          {"instanceId", instance.name}};
}

Json Renderer::VirtualMachine(const Instance& instance, bool with_view) {
  const ScaleSet& set = *instance.set;
  Json nics = Json::array();
  for (const Nic* nic : instance.nics) {
    Json reference = Reference(nic->id);
    if (instance.nics.size() > 1) reference["properties"] = {{"primary", nic->primary}};
    nics.push_back(std::move(reference));
  }
  Json storage = StorageProfile(instance);
  storage["osDisk"]["deleteOption"] = "Delete";
  Json os = OsProfile(instance.computer_name);
  os["linuxConfiguration"]["patchSettings"] = {{"patchMode", "ImageDefault"},
                                               {"assessmentMode", "ImageDefault"}};
  os["linuxConfiguration"]["enableVMAgentPlatformUpdates"] = true;
  Json properties = {{"hardwareProfile", {{"vmSize", set.sku}}},
                     {"provisioningState", NameOf(instance.state)},
                     {"vmId", instance.vm_id},
                     {"virtualMachineScaleSet", Reference(set.id)},
                     {"storageProfile", std::move(storage)},
                     {"osProfile", std::move(os)},
                     {"networkProfile", {{"networkInterfaces", std::move(nics)}}},
                     {"timeCreated", Time(instance.created)}};
  Merge(instance.properties, &properties);
  if (with_view) properties["instanceView"] = InstanceView(instance);
  Json json = {{"name", instance.name},
               {"id", Id(instance.id)},
               {"type", "Microsoft.Compute/virtualMachines"},
               {"location", set.spec.location},
               {"properties", std::move(properties)}};
  if (instance.tags != nullptr) json["tags"] = *instance.tags;
  if (HasComputeEtags(api_version_)) json["etag"] = ComputeEtag(instance.etag);
  return json;
}

Json Renderer::RunStatus(const Instance& instance) {
  return {{"name", instance.name},
          {"id", Id(instance.id)},
          {"type", "Microsoft.Compute/virtualMachines"},
          {"location", instance.set->spec.location},
          {"properties",
           {{"vmId", instance.vm_id},
            {"provisioningState", NameOf(instance.state)},
            {"instanceView", InstanceView(instance)}}}};
}

}  // namespace spoke::azure_sim
