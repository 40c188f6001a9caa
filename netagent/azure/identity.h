// Tells who this node is to Azure: the metadata service's word, matched with our device. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "netagent/azure/imds_document.h"

namespace spoke::netagent::azure {

struct Identity {
  std::string name;  // The machine's name, such as "pool_0".
  std::string vm_id;
  std::string instance;  // The Resource Manager's id, in lower case.
  std::vector<ip::Prefix> subnets;
  std::vector<ip::Address> addresses;  // The NIC's; the first one is its primary.

  bool operator==(const Identity&) const = default;
};

// Matches the instance with the device. Errors: kFailedPrecondition (no NIC of it has the device's
// MAC: the message names that and those there are), kInvalidArgument (no vmId or no resourceId).
absl::StatusOr<Identity> IdentityOf(const ImdsInstance& instance, const std::string& device,
                                    const ip::MacAddress& mac);

}  // namespace spoke::netagent::azure
