#include "ipam-server/core/pool_plan.h"

#include <algorithm>
#include <cmath>

#include "lib/base/check.h"

namespace spoke::ipam {

uint32_t TargetAddresses(const TargetPolicy& policy, uint32_t used) {
  CHECK(policy.batch > 0 && policy.min <= policy.max && policy.spare >= 0,
        "the configuration was validated");
  const double batches = std::ceil(policy.spare + static_cast<double>(used) / policy.batch);
  const double wanted = batches * policy.batch;
  return static_cast<uint32_t>(std::clamp<double>(wanted, policy.min, policy.max));
}

}  // namespace spoke::ipam
