#include "ipam-server/cloud/azure/scale_set.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "lib/base/status.h"
#include "lib/json_text/json_text.h"

namespace spoke::ipam::azure {
namespace {

using nlohmann::json;

}  // namespace

absl::StatusOr<ScaleSet> DecodeScaleSet(std::string_view body) {
  ASSIGN_OR_RETURN(const json decoded, json_text::ParseJsonObject(body));
  ScaleSet set;
  set.region = absl::AsciiStrToLower(json_text::StringMember(decoded, "location"));
  const json* properties = json_text::FindMember(decoded, "properties");
  if (set.region.empty() || properties == nullptr) {
    return absl::InvalidArgumentError("a scale set has no location or no properties");
  }
  set.flexible =
      absl::EqualsIgnoreCase(json_text::StringMember(*properties, "orchestrationMode"), "Flexible");
  if (const json* sku = json_text::FindMember(decoded, "sku"))
    set.capacity = json_text::IntMember(*sku, "capacity");
  return set;
}

absl::StatusOr<FlexibleVm> DecodeFlexibleVm(const json& body) {
  ASSIGN_OR_RETURN(ResourceId id, ResourceId::Parse(json_text::StringMember(body, "id")));
  const json* properties = json_text::FindMember(body, "properties");
  if (id.kind() != ResourceKind::kVirtualMachine || properties == nullptr) {
    return absl::InvalidArgumentError("a VM has another id or no properties: " + id.text());
  }
  FlexibleVm vm{.id = std::move(id), .scale_set = std::nullopt, .nics = {}};
  if (const json* set = json_text::FindMember(*properties, "virtualMachineScaleSet")) {
    ASSIGN_OR_RETURN(vm.scale_set, ResourceId::Parse(json_text::StringMember(*set, "id")));
  }
  const json* profile = json_text::FindMember(*properties, "networkProfile");
  const json* nics =
      profile == nullptr ? nullptr : json_text::FindMember(*profile, "networkInterfaces");
  if (nics == nullptr || !nics->is_array()) {
    return absl::InvalidArgumentError("VM " + vm.id.text() + " lists no NICs");
  }
  for (const json& nic : *nics) {
    ASSIGN_OR_RETURN(ResourceId nic_id, ResourceId::Parse(json_text::StringMember(nic, "id")));
    vm.nics.push_back(std::move(nic_id));
  }
  return vm;
}

}  // namespace spoke::ipam::azure
