// A VM of a Uniform scale set as the Compute API describes it, and the PUT that changes which IP
// configurations its NICs have. Pure.
//
// https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-vms/update
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/cloud/azure/resources/arm_id.h"
#include "ipam-server/cloud/azure/resources/ip_configurations.h"
#include "lib/http/message.h"

namespace spoke::ipam::azure {

// One entry of a NIC in the model. It has no address: that is in the NIC alone.
struct ModelConfiguration {
  std::string name;
  bool primary = false;  // True too when it is the only one and does not say so.
  ip::Family family = ip::Family::kV4;
  int prefix_length = 32;  // 128 for one address of IPv6.
  std::string subnet;      // Lower-case; empty: none.

  bool operator==(const ModelConfiguration&) const = default;
};

struct ModelNic {
  std::string name;
  bool primary = false;
  std::vector<ModelConfiguration> configurations;  // The model's order.

  bool operator==(const ModelNic&) const = default;
};

struct InstanceModel {
  ResourceId id;
  std::string instance_id;  // "36"
  std::string location;
  std::string etag;                // The ETag as it stands, with quotes; empty: none was given.
  std::string provisioning_state;  // "Succeeded", "Updating", "Failed", "Deleting"...
  bool latest_model_applied = false;
  std::string vm_id;  // What the VM itself reads from its metadata; lower-case.
  // The NICs; nullopt: it has no network profile, as an instance that is being deleted, or one of a
  // Flexible scale set.
  std::optional<std::vector<ModelNic>> nics;
  // networkProfileConfiguration as it was: a PUT must send back every field of it.
  nlohmann::json network_profile;
};

// Errors: kInvalidArgument (not the documented shape, with what is wrong).
absl::StatusOr<InstanceModel> DecodeInstance(const nlohmann::json& body);
// Decodes the response to a GET or a PUT; the header's ETag counts when the body has none.
absl::StatusOr<InstanceModel> DecodeInstance(const http::Response& response);

// The body of the PUT that makes `change`, nothing else. It never holds the storage profile: to
// send back a gallery image needs rights on the gallery (LinkedAuthorizationFailed).
// Errors: as ApplyChange(); kFailedPrecondition also without a network profile, kNotFound when it
// has no NIC of that name, kResourceExhausted also for more than kMaxConfigurations on all NICs.
absl::StatusOr<std::string> BuildInstancePut(const InstanceModel& model, const NicChange& change);

// The version whose PUT can carry the change: kComputeVersion, or the first that knows blocks when
// the model holds one or is to get one. An older version does not show blocks either: where there
// may be any, the model must be read with kComputeBlocksVersion.
std::string_view InstancePutVersion(const InstanceModel& model, const NicChange& change);

}  // namespace spoke::ipam::azure
