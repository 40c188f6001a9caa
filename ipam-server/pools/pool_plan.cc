#include "ipam-server/pools/pool_plan.h"

#include <algorithm>
#include <cmath>

#include "lib/base/check.h"

namespace spoke::ipam {

uint32_t TargetAddresses(const TargetPolicy& policy, uint32_t used, uint32_t reserved,
                         uint32_t nic_cap) {
  CHECK(policy.batch > 0 && policy.min <= policy.max && policy.spare >= 0,
        "the configuration was validated");
  // batch * ceil(spare + used / batch), in whole addresses: a quotient that is a hair above a whole
  // number would cost a batch too many. The millionth takes away what spare * batch gets wrong.
  const auto spare =
      static_cast<uint64_t>(std::ceil(std::max(0.0, policy.spare * policy.batch - 1e-6)));
  const uint64_t batches = (spare + used + policy.batch - 1) / policy.batch;
  const uint64_t own = std::clamp<uint64_t>(batches * policy.batch, policy.min, policy.max);
  return static_cast<uint32_t>(std::min<uint64_t>(own + reserved, nic_cap));
}

}  // namespace spoke::ipam
