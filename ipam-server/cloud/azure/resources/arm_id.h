// Resource ids of Azure Resource Manager, and the URLs of the calls we make. Pure.
//
// ARM compares ids without regard to case and answers with whatever case it likes that day: here
// they are always lower-case, so that equal ids are equal strings.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace spoke::ipam::azure {

// The versions of the APIs we call.
inline constexpr std::string_view kComputeVersion = "2025-04-01";
// The first that knows /28 blocks in the model of a scale set's VM.
inline constexpr std::string_view kComputeBlocksVersion = "2026-07-02";
// NICs of scale sets are served by an old version only; newer clients of Microsoft use it too.
inline constexpr std::string_view kScaleSetNicVersion = "2018-10-01";
inline constexpr std::string_view kNetworkVersion = "2025-05-01";

enum class ResourceKind {
  kScaleSet,        // .../Microsoft.Compute/virtualMachineScaleSets/{set}
  kInstance,        // .../{set}/virtualMachines/{number}: of a Uniform scale set.
  kInstanceNic,     // .../{set}/virtualMachines/{number}/networkInterfaces/{nic}
  kVirtualMachine,  // .../Microsoft.Compute/virtualMachines/{vm}: alone or of a Flexible scale set.
  kNic,             // .../Microsoft.Network/networkInterfaces/{nic}
  kSubnet,          // .../Microsoft.Network/virtualNetworks/{net}/subnets/{subnet}
  kOther,
};

// "/subscriptions/{s}/resourceGroups/{rg}/providers/{namespace}/{type}/{name}..."
class ResourceId {
 public:
  // Errors: kInvalidArgument (not of the shape above, a part that could change the meaning of a
  // URL, or too long), with the text.
  static absl::StatusOr<ResourceId> Parse(std::string_view text);

  // Lower-case, from the first slash on, none at the end.
  const std::string& text() const { return text_; }
  ResourceKind kind() const { return kind_; }
  std::string_view subscription() const;
  std::string_view resource_group() const;
  // The last part: of an instance its number.
  std::string_view name() const;

  // What this is a part of: the instance of a NIC, the scale set of an instance, the network of a
  // subnet. nullopt for what is directly in a resource group.
  std::optional<ResourceId> Parent() const;

  auto operator<=>(const ResourceId& other) const { return text_ <=> other.text_; }
  bool operator==(const ResourceId& other) const { return text_ == other.text_; }

 private:
  ResourceId() = default;

  std::string text_;
  ResourceKind kind_ = ResourceKind::kOther;
};

// The scale set an instance or a NIC of one belongs to, itself for a scale set; nullopt otherwise.
std::optional<ResourceId> ScaleSetOf(const ResourceId& id);

// The calls. `resource_manager` is as in Endpoints: "https://management.azure.com".
// Any resource by its id: GET or PUT of an instance, a VM, a NIC, a subnet, a scale set.
std::string ResourceUrl(std::string_view resource_manager, const ResourceId& id,
                        std::string_view version);
// A NIC of an instance is read with kScaleSetNicVersion, compute with kComputeVersion, everything
// else with kNetworkVersion.
std::string ResourceUrl(std::string_view resource_manager, const ResourceId& id);
// The NICs of a scale set or of one instance.
std::string NicsUrl(std::string_view resource_manager, const ResourceId& set_or_instance);
// All NICs of their own in the resource group of `id`.
std::string GroupNicsUrl(std::string_view resource_manager, const ResourceId& id);
// The VMs of a Flexible scale set.
std::string FlexibleMachinesUrl(std::string_view resource_manager, const ResourceId& scale_set);

// A URL that ARM gave us (nextLink, Azure-AsyncOperation, Location), to be called as it is: such
// URLs are signed. It goes out with our token, so it must lead to ARM: same scheme, host and port.
// Errors: kPermissionDenied (it leads elsewhere); kInvalidArgument (no absolute URL, characters
// that have no place in one, longer than kMaxUrlLength).
absl::StatusOr<std::string> FollowUrl(std::string_view resource_manager, std::string_view url);

// The longest URL: signed operation URLs have some 4 KB.
inline constexpr size_t kMaxUrlLength = 16384;

}  // namespace spoke::ipam::azure
