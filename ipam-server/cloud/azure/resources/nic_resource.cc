#include "ipam-server/cloud/azure/resources/nic_resource.h"

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
  return absl::InvalidArgumentError(fmt::format("a NIC: {}", what));
}

// "10.0.0.4"; a block is "10.0.0.16" with a length beside it, "10.0.0.16/28", or both.
absl::StatusOr<ip::Prefix> ParseRange(std::string_view text, std::optional<int> length) {
  const size_t slash = text.find('/');
  ASSIGN_OR_RETURN(const ip::Address address, ip::Address::Parse(text.substr(0, slash)));
  ip::Prefix range = ip::Prefix::Host(address);
  if (slash != std::string_view::npos) {
    ASSIGN_OR_RETURN(range, ip::Prefix::Parse(text));
  }
  if (!length) return range;
  if (slash != std::string_view::npos && range.length() != *length) {
    return absl::InvalidArgumentError(fmt::format("{} is said to be a /{}", text, *length));
  }
  if (*length < 1) return absl::InvalidArgumentError(fmt::format("no block has /{}", *length));
  ASSIGN_OR_RETURN(range, ip::Prefix::Of(address, *length));
  if (range.base() != address) {
    return absl::InvalidArgumentError(fmt::format("no /{} begins at {}", *length, text));
  }
  return range;
}

absl::StatusOr<NicConfiguration> DecodeConfiguration(const json& entry) {
  NicConfiguration configuration;
  configuration.name = json_text::StringMember(entry, "name");
  const json* properties = json_text::FindMember(entry, "properties");
  if (configuration.name.empty() || properties == nullptr || !properties->is_object()) {
    return Malformed("an IP configuration has no name or no properties");
  }
  configuration.primary = json_text::BoolMember(*properties, "primary").value_or(false);
  configuration.provisioning_state = json_text::StringMember(*properties, "provisioningState");
  if (const json* subnet = json_text::FindMember(*properties, "subnet")) {
    configuration.subnet = absl::AsciiStrToLower(json_text::StringMember(*subnet, "id"));
  }
  const std::string address = json_text::StringMember(*properties, "privateIPAddress");
  if (address.empty()) return configuration;
  auto range =
      ParseRange(address, json_text::IntMember(*properties, "privateIPAddressPrefixLength"));
  if (!range.ok()) {
    return Malformed(fmt::format("IP configuration \"{}\": {}",
                                 json_text::Excerpt(configuration.name),
                                 base::MessageOf(range.status())));
  }
  configuration.range = *range;
  return configuration;
}

absl::StatusOr<std::vector<NicConfiguration>> DecodeConfigurations(const json& list) {
  std::vector<NicConfiguration> configurations;
  configurations.reserve(list.size());
  for (const json& item : list) {
    ASSIGN_OR_RETURN(NicConfiguration configuration, DecodeConfiguration(item));
    configurations.push_back(std::move(configuration));
  }
  std::sort(configurations.begin(), configurations.end());
  const auto twin = std::adjacent_find(
      configurations.begin(), configurations.end(),
      [](const NicConfiguration& a, const NicConfiguration& b) { return a.name == b.name; });
  if (twin != configurations.end()) {
    return Malformed(fmt::format("two IP configurations \"{}\"", json_text::Excerpt(twin->name)));
  }
  return configurations;
}

}  // namespace

absl::StatusOr<NicResource> DecodeNic(const json& body) {
  ASSIGN_OR_RETURN(ResourceId id, ResourceId::Parse(json_text::StringMember(body, "id")));
  if (id.kind() != ResourceKind::kInstanceNic && id.kind() != ResourceKind::kNic) {
    return Malformed(fmt::format("the id is of something else: {}", id.text()));
  }
  const json* properties = json_text::FindMember(body, "properties");
  if (properties == nullptr || !properties->is_object()) return Malformed("no properties");
  NicResource nic{.id = std::move(id)};
  nic.name = json_text::StringMember(body, "name");
  if (nic.name.empty()) nic.name = std::string(nic.id.name());
  nic.etag = json_text::StringMember(body, "etag");
  nic.primary = json_text::BoolMember(*properties, "primary").value_or(false);
  nic.provisioning_state = json_text::StringMember(*properties, "provisioningState");
  const std::string mac = json_text::StringMember(*properties, "macAddress");
  if (!mac.empty()) {
    ASSIGN_OR_RETURN(nic.mac, ParseMac(mac));
  }
  if (const json* machine = json_text::FindMember(*properties, "virtualMachine")) {
    ASSIGN_OR_RETURN(nic.machine, ResourceId::Parse(json_text::StringMember(*machine, "id")));
  }
  const json* list = json_text::FindMember(*properties, "ipConfigurations");
  if (list == nullptr) {
    return absl::FailedPreconditionError(
        fmt::format("Azure does not say which IP configurations NIC {} has", nic.id.text()));
  }
  if (!list->is_array()) return Malformed("ipConfigurations is no list");
  ASSIGN_OR_RETURN(nic.configurations, DecodeConfigurations(*list));
  return nic;
}

absl::StatusOr<NicResource> DecodeNic(const http::Response& response) {
  ASSIGN_OR_RETURN(const json body, json_text::ParseJsonObject(response.body));
  ASSIGN_OR_RETURN(NicResource nic, DecodeNic(body));
  const auto etag = response.headers.Find("ETag");
  if (nic.etag.empty() && etag) nic.etag = std::string(*etag);
  return nic;
}

absl::StatusOr<ip::MacAddress> ParseMac(std::string_view text) {
  constexpr size_t kBareLength = 12;
  constexpr size_t kSeparatedLength = 17;
  std::string with_colons;
  if (text.size() == kBareLength) {
    for (size_t i = 0; i < kBareLength; ++i) {
      if (i > 0 && i % 2 == 0) with_colons += ':';
      with_colons += text[i];
    }
  } else if (text.size() == kSeparatedLength) {
    with_colons = std::string(text);
    std::replace(with_colons.begin(), with_colons.end(), '-', ':');
  }
  auto mac = ip::MacAddress::Parse(with_colons);
  if (!mac.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("no MAC address: \"{}\"", json_text::Excerpt(text)));
  }
  return mac;
}

absl::StatusOr<std::string> BuildNicPut(const json& nic, const NicChange& change) {
  // DecodeNic() also refuses a NIC whose list is not known: to send it back would empty the NIC.
  ASSIGN_OR_RETURN(const NicResource decoded, DecodeNic(nic));
  if (!SameName(decoded.name, change.nic_name)) {
    return absl::NotFoundError(
        fmt::format("NIC {} is not \"{}\"", decoded.id.text(), change.nic_name));
  }
  json body = nic;
  const absl::Status status =
      ApplyChange(change, ConfigurationStyle::kNetwork, body["properties"]["ipConfigurations"]);
  if (!status.ok()) return base::Annotate(status, fmt::format("NIC {}", decoded.id.text()));
  return json_text::PrintJson(body);
}

}  // namespace spoke::ipam::azure
