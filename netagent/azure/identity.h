// Who this node is to Azure: what the metadata service says, matched with the device we use. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "netagent/azure/imds_document.h"

namespace spoke::netagent::azure {

struct Identity {
  std::string vm_id;
  std::string instance;  // The Resource Manager's id, in lower case.
  std::vector<ip::Prefix> subnets;
  std::vector<ip::Address> addresses;  // Of the NIC; the first one is its primary.

  bool operator==(const Identity&) const = default;
};

// Errors: kFailedPrecondition (no NIC of the instance has the device's MAC: the message names that
// and those there are), kInvalidArgument (no vmId or no resourceId in the document).
absl::StatusOr<Identity> IdentityOf(const ImdsInstance& instance, const std::string& device,
                                    const ip::MacAddress& mac);

}  // namespace spoke::netagent::azure
