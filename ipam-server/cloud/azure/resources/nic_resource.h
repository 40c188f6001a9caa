// A NIC as Azure shows it: which addresses it holds. Pure.
//
// The shape is the same for NICs of scale sets' VMs, which can only be read here, and NICs of their
// own (Flexible scale sets), which are changed by a PUT of the whole NIC.
// https://learn.microsoft.com/rest/api/virtualnetwork/network-interfaces
#pragma once

#include <compare>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/cloud/azure/resources/arm_id.h"
#include "ipam-server/cloud/azure/resources/ip_configurations.h"
#include "lib/http/message.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::ipam::azure {

struct NicConfiguration {
  std::string name;
  bool primary = false;
  // "Succeeded" or "Updating", "Creating", "Deleting", "Failed", "Canceled".
  std::string provisioning_state;
  std::optional<ip::Prefix> range;  // An address or a block; nullopt: none yet.
  std::string subnet;               // Lower-case; empty: not said.

  // Whether the fabric delivers to it: an address that is still coming may not be assigned.
  bool IsUsable() const { return range.has_value() && provisioning_state == "Succeeded"; }
  auto operator<=>(const NicConfiguration&) const = default;
};

struct NicResource {
  ResourceId id;  // kInstanceNic or kNic.
  std::string name;
  std::string etag;                   // The ETag as it stands, W/ and quotes included.
  std::optional<ip::MacAddress> mac;  // nullopt: it has none before it is first attached.
  bool primary = false;               // It is its VM's primary NIC.
  std::string provisioning_state;
  std::optional<ResourceId> machine;             // The instance or VM that has it; nullopt: none.
  std::vector<NicConfiguration> configurations;  // Sorted: Azure promises no order.
};

// One NIC, of a list or by itself.
// Errors: kInvalidArgument (not the documented shape, an address that is none, two entries of one
// name); kFailedPrecondition (ipConfigurations is missing or null, as Azure answers for a moment
// while a NIC comes or goes: what it holds is unknown, which is not the same as nothing).
absl::StatusOr<NicResource> DecodeNic(const nlohmann::json& body);
// Decodes the response to a GET or a PUT; the header's ETag counts when the body has none.
absl::StatusOr<NicResource> DecodeNic(const http::Response& response);

// "00-0D-3A-31-45-48", with colons, or bare as the metadata service writes it; any case.
// Errors: kInvalidArgument.
absl::StatusOr<ip::MacAddress> ParseMac(std::string_view text);

// The body of the PUT that makes `change` on a NIC of its own; `nic` is the NIC as it was read,
// every field of which is sent back.
// Errors: as ApplyChange(); kNotFound when `nic` is another NIC than the change's.
absl::StatusOr<std::string> BuildNicPut(const nlohmann::json& nic, const NicChange& change);

}  // namespace spoke::ipam::azure
