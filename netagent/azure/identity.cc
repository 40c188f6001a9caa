#include "netagent/azure/identity.h"

#include <algorithm>

#include "fmt/format.h"

namespace spoke::netagent::azure {

absl::StatusOr<Identity> IdentityOf(const ImdsInstance& instance, const std::string& device,
                                    const ip::MacAddress& mac) {
  if (instance.vm_id.empty() || instance.resource_id.empty()) {
    return absl::InvalidArgumentError("the instance document has no vmId or no resourceId");
  }
  const auto nic = std::find_if(instance.nics.begin(), instance.nics.end(),
                                [&](const ImdsNic& candidate) { return candidate.mac == mac; });
  if (nic == instance.nics.end()) {
    std::vector<std::string> macs;
    for (const ImdsNic& other : instance.nics) macs.push_back(other.mac.ToString());
    return absl::FailedPreconditionError(
        fmt::format("device {} has MAC {}, but the NICs of {} have: {}; is `nic` the right device?",
                    device, mac.ToString(), instance.name,
                    macs.empty() ? "none" : fmt::format("{}", fmt::join(macs, ", "))));
  }
  return Identity{.name = instance.name,
                  .vm_id = instance.vm_id,
                  .instance = instance.resource_id,
                  .subnets = nic->subnets,
                  .addresses = nic->addresses};
}

}  // namespace spoke::netagent::azure
