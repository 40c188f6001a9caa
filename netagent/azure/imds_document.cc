#include "netagent/azure/imds_document.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/azure/cloud_text.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent::azure {
namespace {

using nlohmann::json;

absl::Status Wrong(std::string_view place, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", place, what));
}

// Returns the member's text; "" where it is absent.
absl::StatusOr<std::string> Text(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return "";
  if (!it->is_string()) return Wrong(key, "is not text");
  return it->get<std::string>();
}

// Returns the member, or nullptr where it is absent or null.
absl::StatusOr<const json*> Member(const json& object, const char* key, json::value_t type) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return nullptr;
  if (it->type() != type) return Wrong(key, fmt::format("is of type {}", it->type_name()));
  return &*it;
}

// Calls `take` with each object of the list behind `key`, if there is one.
template <typename Take>
absl::Status EachObject(const json& object, const char* key, size_t limit, const Take& take) {
  ASSIGN_OR_RETURN(const json* list, Member(object, key, json::value_t::array));
  if (list == nullptr) return absl::OkStatus();
  if (list->size() > limit) return Wrong(key, fmt::format("has more than {} items", limit));
  for (const json& item : *list) {
    if (!item.is_object()) return Wrong(key, "holds something that is no object");
    RETURN_IF_ERROR(base::Annotate(take(item), key));
  }
  return absl::OkStatus();
}

absl::Status TakeAddress(const json& item, ImdsNic& nic) {
  ASSIGN_OR_RETURN(const std::string text, Text(item, "privateIpAddress"));
  if (text.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ip::Prefix range, ParseCloudRange(text));
  if (range.size() > kMaxImdsAddresses - std::min(nic.addresses.size(), kMaxImdsAddresses)) {
    return Wrong("privateIpAddress", fmt::format("more than {} addresses", kMaxImdsAddresses));
  }
  for (uint64_t i = 0; i < range.size(); ++i) {
    nic.addresses.push_back(ip::Advance(range.base(), i));
  }
  return absl::OkStatus();
}

absl::Status TakeSubnet(const json& item, ImdsNic& nic) {
  ASSIGN_OR_RETURN(const std::string address, Text(item, "address"));
  ASSIGN_OR_RETURN(const std::string length, Text(item, "prefix"));
  if (address.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ip::Address base, ip::Address::Parse(address));
  int bits = 0;
  if (!absl::SimpleAtoi(length, &bits) || bits < 0) {
    return Wrong("prefix", fmt::format("'{}' is no prefix length", length));
  }
  ASSIGN_OR_RETURN(const ip::Prefix subnet, ip::Prefix::Of(base, bits));
  nic.subnets.push_back(subnet);
  return absl::OkStatus();
}

absl::Status TakeNic(const json& item, ImdsInstance& instance) {
  ImdsNic nic;
  ASSIGN_OR_RETURN(const std::string mac, Text(item, "macAddress"));
  ASSIGN_OR_RETURN(nic.mac, ParseCloudMac(mac));
  for (const char* family : {"ipv4", "ipv6"}) {
    ASSIGN_OR_RETURN(const json* part, Member(item, family, json::value_t::object));
    if (part == nullptr) continue;
    RETURN_IF_ERROR(EachObject(*part, "ipAddress", kMaxImdsAddresses,
                               [&](const json& address) { return TakeAddress(address, nic); }));
    RETURN_IF_ERROR(EachObject(*part, "subnet", kMaxImdsAddresses,
                               [&](const json& subnet) { return TakeSubnet(subnet, nic); }));
  }
  instance.nics.push_back(std::move(nic));
  return absl::OkStatus();
}

absl::Status TakeCompute(const json& compute, ImdsInstance& instance) {
  ASSIGN_OR_RETURN(instance.name, Text(compute, "name"));
  ASSIGN_OR_RETURN(instance.vm_id, Text(compute, "vmId"));
  ASSIGN_OR_RETURN(instance.resource_id, Text(compute, "resourceId"));
  ASSIGN_OR_RETURN(instance.scale_set, Text(compute, "vmScaleSetName"));
  ASSIGN_OR_RETURN(instance.location, Text(compute, "location"));
  ASSIGN_OR_RETURN(instance.subscription, Text(compute, "subscriptionId"));
  absl::AsciiStrToLower(&instance.vm_id);
  absl::AsciiStrToLower(&instance.resource_id);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImdsInstance> ParseImdsInstance(std::string_view text) {
  if (text.size() > kMaxImdsBytes) {
    return Wrong("instance document", fmt::format("has more than {} bytes", kMaxImdsBytes));
  }
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return Wrong("instance document", "is no JSON object");
  ImdsInstance instance;
  ASSIGN_OR_RETURN(const json* compute, Member(document, "compute", json::value_t::object));
  if (compute != nullptr) {
    RETURN_IF_ERROR(base::Annotate(TakeCompute(*compute, instance), "compute"));
  }
  ASSIGN_OR_RETURN(const json* network, Member(document, "network", json::value_t::object));
  if (network != nullptr) {
    RETURN_IF_ERROR(
        base::Annotate(EachObject(*network, "interface", kMaxImdsNics,
                                  [&](const json& nic) { return TakeNic(nic, instance); }),
                       "network"));
  }
  return instance;
}

}  // namespace spoke::netagent::azure
