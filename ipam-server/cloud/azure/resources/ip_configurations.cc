#include "ipam-server/cloud/azure/resources/ip_configurations.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "lib/base/status.h"
#include "lib/json_text/json_text.h"

namespace spoke::ipam::azure {
namespace {

using nlohmann::json;

int HostLength(ip::Family family) { return family == ip::Family::kV4 ? 32 : 128; }

bool IsPrimary(const json& entry) {
  const json* properties = json_text::FindMember(entry, "properties");
  return properties != nullptr && json_text::BoolMember(*properties, "primary").value_or(false);
}

absl::Status CheckOurs(std::string_view name, std::string_view prefix) {
  if (prefix.empty()) return absl::InvalidArgumentError("no prefix tells our entries from others");
  if (name.size() > prefix.size() && name.substr(0, prefix.size()) == prefix) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("IP configuration \"{}\" is not ours: ours begin with \"{}\"",
                  json_text::Excerpt(name), prefix));
}

absl::Status CheckList(const json& list) {
  if (!list.is_array()) return absl::InvalidArgumentError("ipConfigurations is no list");
  if (list.empty()) {
    return absl::FailedPreconditionError("the NIC has no IP configuration to go by");
  }
  size_t primaries = 0;
  for (const json& entry : list) {
    const json* properties = json_text::FindMember(entry, "properties");
    if (json_text::StringMember(entry, "name").empty() || properties == nullptr ||
        !properties->is_object()) {
      return absl::InvalidArgumentError("an IP configuration has no name or no properties");
    }
    if (IsPrimary(entry)) ++primaries;
  }
  if (primaries > 1) {
    return absl::FailedPreconditionError(
        fmt::format("{} IP configurations of one NIC are primary", primaries));
  }
  return absl::OkStatus();
}

absl::Status CheckNew(const NewConfiguration& wanted) {
  const int host = HostLength(wanted.family);
  if (wanted.prefix_length > 0 && wanted.prefix_length <= host) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("IP configuration \"{}\" cannot have /{}", wanted.name, wanted.prefix_length));
}

// What all entries of a NIC share with the primary one.
json NewEntry(const NewConfiguration& wanted, const json& primary_properties,
              ConfigurationStyle style) {
  json properties = {
      {"primary", false},
      {"privateIPAddressVersion", wanted.family == ip::Family::kV4 ? "IPv4" : "IPv6"},
      // The id alone: what else a NIC shows of its subnet is the subnet's own affair.
      {"subnet",
       {{"id",
         json_text::StringMember(*json_text::FindMember(primary_properties, "subnet"), "id")}}}};
  if (style == ConfigurationStyle::kNetwork) properties["privateIPAllocationMethod"] = "Dynamic";
  if (wanted.prefix_length != HostLength(wanted.family)) {
    properties["privateIPAddressPrefixLength"] = wanted.prefix_length;
  }
  if (const json* groups = json_text::FindMember(primary_properties, "applicationSecurityGroups")) {
    properties["applicationSecurityGroups"] = *groups;
  }
  return {{"name", wanted.name}, {"properties", std::move(properties)}};
}

json::iterator FindEntry(json& list, std::string_view name) {
  return std::find_if(list.begin(), list.end(), [name](const json& entry) {
    return SameName(json_text::StringMember(entry, "name"), name);
  });
}

absl::Status Remove(const NicChange& change, json& list) {
  for (const std::string& name : change.remove) {
    RETURN_IF_ERROR(CheckOurs(name, change.prefix));
    const auto entry = FindEntry(list, name);
    if (entry == list.end()) continue;
    if (static_cast<size_t>(entry - list.begin()) == PrimaryIndexOf(list)) {
      return absl::InvalidArgumentError(fmt::format(
          "IP configuration \"{}\" is the NIC's primary one: Azure would refuse to remove it",
          name));
    }
    list.erase(entry);
  }
  return absl::OkStatus();
}

absl::Status Add(const NicChange& change, ConfigurationStyle style, json& list) {
  const json primary_properties = list[PrimaryIndexOf(list)]["properties"];
  const json* subnet = json_text::FindMember(primary_properties, "subnet");
  if (!change.add.empty() &&
      (subnet == nullptr || json_text::StringMember(*subnet, "id").empty())) {
    return absl::FailedPreconditionError("the primary IP configuration names no subnet");
  }
  for (const NewConfiguration& wanted : change.add) {
    RETURN_IF_ERROR(CheckOurs(wanted.name, change.prefix));
    RETURN_IF_ERROR(CheckNew(wanted));
    if (FindEntry(list, wanted.name) != list.end()) continue;
    list.push_back(NewEntry(wanted, primary_properties, style));
  }
  if (list.size() > kMaxConfigurations) {
    return absl::ResourceExhaustedError(
        fmt::format("the NIC would have {} IP configurations, and Azure allows {}", list.size(),
                    kMaxConfigurations));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyChange(const NicChange& change, ConfigurationStyle style, json& list) {
  RETURN_IF_ERROR(CheckList(list));
  json changed = list;
  RETURN_IF_ERROR(Remove(change, changed));
  RETURN_IF_ERROR(Add(change, style, changed));
  // The only entry need not say that it is primary, and ARM leaves it out; among several it must.
  if (changed.size() > 1) changed[PrimaryIndexOf(changed)]["properties"]["primary"] = true;
  list = std::move(changed);
  return absl::OkStatus();
}

size_t PrimaryIndexOf(const json& list) {
  const auto primary = std::find_if(list.begin(), list.end(), IsPrimary);
  return primary == list.end() ? 0 : static_cast<size_t>(primary - list.begin());
}

bool SameName(std::string_view a, std::string_view b) {
  return absl::EqualsIgnoreCase({a.data(), a.size()}, {b.data(), b.size()});
}

}  // namespace spoke::ipam::azure
