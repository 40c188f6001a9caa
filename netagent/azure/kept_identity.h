// The node's Azure identity, read from the metadata service once a boot and kept beside the
// journal, so that an agent that restarts needs no metadata service.
//
// A VM's vmId, its place in a scale set and its NICs' MACs and subnets do not change while it runs:
// to change any of them Azure stops the VM, and the file, on tmpfs, is gone with that. A file whose
// NICs do not have the device's MAC is not believed, and the service is asked again.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/telemetry/log.h"
#include "netagent/azure/identity.h"
#include "netagent/azure/imds.h"

namespace spoke::netagent::azure {

// Reads the file, or else asks `imds`, and blocks for as long as that does. A file that cannot be
// read or written is logged and no error. Errors: those of Imds::ReadInstance() and IdentityOf().
absl::StatusOr<Identity> LearnIdentity(Imds& imds, const std::string& file,
                                       const std::string& device, const ip::MacAddress& mac,
                                       telemetry::Log& log);

}  // namespace spoke::netagent::azure
