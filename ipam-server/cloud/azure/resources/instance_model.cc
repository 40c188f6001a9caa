#include "ipam-server/cloud/azure/resources/instance_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "lib/base/status.h"
#include "lib/json_text/json_text.h"

namespace spoke::ipam::azure {
namespace {

using nlohmann::json;

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("a scale set's VM: {}", what));
}

absl::StatusOr<ModelConfiguration> DecodeConfiguration(const json& entry) {
  ModelConfiguration configuration;
  configuration.name = json_text::StringMember(entry, "name");
  const json* properties = json_text::FindMember(entry, "properties");
  if (configuration.name.empty() || properties == nullptr || !properties->is_object()) {
    return Malformed("an IP configuration has no name or no properties");
  }
  configuration.primary = json_text::BoolMember(*properties, "primary").value_or(false);
  if (SameName(json_text::StringMember(*properties, "privateIPAddressVersion"), "IPv6")) {
    configuration.family = ip::Family::kV6;
    configuration.prefix_length = 128;
  }
  if (const auto length = json_text::IntMember(*properties, "privateIPAddressPrefixLength")) {
    if (*length < 1 || *length > configuration.prefix_length) {
      return Malformed(fmt::format("IP configuration \"{}\" has /{}",
                                   json_text::Excerpt(configuration.name), *length));
    }
    configuration.prefix_length = *length;
  }
  if (const json* subnet = json_text::FindMember(*properties, "subnet")) {
    configuration.subnet = absl::AsciiStrToLower(json_text::StringMember(*subnet, "id"));
  }
  return configuration;
}

absl::StatusOr<ModelNic> DecodeNicConfiguration(const json& entry) {
  ModelNic nic;
  nic.name = json_text::StringMember(entry, "name");
  const json* properties = json_text::FindMember(entry, "properties");
  const json* list =
      properties == nullptr ? nullptr : json_text::FindMember(*properties, "ipConfigurations");
  if (nic.name.empty() || list == nullptr || !list->is_array()) {
    return Malformed("a NIC has no name or no list of IP configurations");
  }
  nic.primary = json_text::BoolMember(*properties, "primary").value_or(false);
  for (const json& item : *list) {
    ASSIGN_OR_RETURN(ModelConfiguration configuration, DecodeConfiguration(item));
    nic.configurations.push_back(std::move(configuration));
  }
  if (!nic.configurations.empty()) nic.configurations[PrimaryIndexOf(*list)].primary = true;
  return nic;
}

absl::StatusOr<std::vector<ModelNic>> DecodeNetworkProfile(const json& profile) {
  const json* list = json_text::FindMember(profile, "networkInterfaceConfigurations");
  if (list == nullptr || !list->is_array()) return Malformed("its network profile lists no NICs");
  std::vector<ModelNic> nics;
  for (const json& item : *list) {
    ASSIGN_OR_RETURN(ModelNic nic, DecodeNicConfiguration(item));
    nics.push_back(std::move(nic));
  }
  // The only NIC need not say that it is the primary one.
  if (nics.size() == 1) nics.front().primary = true;
  return nics;
}

}  // namespace

absl::StatusOr<InstanceModel> DecodeInstance(const json& body) {
  ASSIGN_OR_RETURN(ResourceId id, ResourceId::Parse(json_text::StringMember(body, "id")));
  if (id.kind() != ResourceKind::kInstance) {
    return Malformed(fmt::format("the id is of something else: {}", id.text()));
  }
  const json* properties = json_text::FindMember(body, "properties");
  if (properties == nullptr || !properties->is_object()) return Malformed("no properties");
  InstanceModel model{.id = std::move(id)};
  model.instance_id = json_text::StringMember(body, "instanceId");
  if (model.instance_id.empty()) model.instance_id = std::string(model.id.name());
  model.location = json_text::StringMember(body, "location");
  model.etag = json_text::StringMember(body, "etag");
  model.provisioning_state = json_text::StringMember(*properties, "provisioningState");
  model.latest_model_applied =
      json_text::BoolMember(*properties, "latestModelApplied").value_or(false);
  model.vm_id = absl::AsciiStrToLower(json_text::StringMember(*properties, "vmId"));
  if (const json* profile = json_text::FindMember(*properties, "networkProfileConfiguration")) {
    ASSIGN_OR_RETURN(model.nics, DecodeNetworkProfile(*profile));
    model.network_profile = *profile;
  }
  return model;
}

absl::StatusOr<InstanceModel> DecodeInstance(const http::Response& response) {
  ASSIGN_OR_RETURN(const json body, json_text::ParseJsonObject(response.body));
  ASSIGN_OR_RETURN(InstanceModel model, DecodeInstance(body));
  const auto etag = response.headers.Find("ETag");
  if (model.etag.empty() && etag) model.etag = std::string(*etag);
  return model;
}

absl::StatusOr<std::string> BuildInstancePut(const InstanceModel& model, const NicChange& change) {
  if (!model.nics) {
    return absl::FailedPreconditionError(fmt::format(
        "instance {} has no network profile: it is being deleted, or not of a Uniform scale set",
        model.id.text()));
  }
  json profile = model.network_profile;
  json* changed = nullptr;
  for (json& nic : profile["networkInterfaceConfigurations"]) {
    if (SameName(json_text::StringMember(nic, "name"), change.nic_name)) changed = &nic;
  }
  if (changed == nullptr) {
    return absl::NotFoundError(
        fmt::format("instance {} has no NIC \"{}\"", model.id.text(), change.nic_name));
  }
  const absl::Status status = ApplyChange(change, ConfigurationStyle::kCompute,
                                          (*changed)["properties"]["ipConfigurations"]);
  if (!status.ok()) return base::Annotate(status, fmt::format("instance {}", model.id.text()));
  size_t total = 0;
  for (const json& nic : profile["networkInterfaceConfigurations"]) {
    total += nic["properties"]["ipConfigurations"].size();
  }
  if (total > kMaxConfigurations) {
    return absl::ResourceExhaustedError(
        fmt::format("instance {} would have {} IP configurations, and Azure allows {}",
                    model.id.text(), total, kMaxConfigurations));
  }
  json body = {{"properties", {{"networkProfileConfiguration", std::move(profile)}}}};
  if (!model.location.empty()) body["location"] = model.location;
  return json_text::PrintJson(body);
}

std::string_view InstancePutVersion(const InstanceModel& model, const NicChange& change) {
  const auto is_block = [](const auto& configuration) {
    return configuration.prefix_length != (configuration.family == ip::Family::kV4 ? 32 : 128);
  };
  bool blocks = std::any_of(change.add.begin(), change.add.end(), is_block);
  for (const ModelNic& nic : model.nics.value_or(std::vector<ModelNic>())) {
    blocks = blocks || std::any_of(nic.configurations.begin(), nic.configurations.end(), is_block);
  }
  return blocks ? kComputeBlocksVersion : kComputeVersion;
}

}  // namespace spoke::ipam::azure
