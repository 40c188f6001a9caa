// How many addresses a node should hold. Pure.
#pragma once

#include <cstdint>

namespace spoke::ipam {

// All in addresses a node and family, except `spare`.
struct TargetPolicy {
  uint32_t min = 16;  // Held by an empty node, so that its first pods wait for nothing.
  uint32_t batch =
      16;              // Targets are multiples of it, so that one more pod is seldom one more call.
  double spare = 0.5;  // Batches kept free beyond what is used.
  uint32_t max = 250;  // A NIC of Azure takes 256 configurations in all.

  bool operator==(const TargetPolicy&) const = default;
};

// clamp(min, batch * ceil(spare + used / batch), max): one step to the final target, however many
// pods came at once. `used` counts lent and cooling addresses.
uint32_t TargetAddresses(const TargetPolicy& policy, uint32_t used);

}  // namespace spoke::ipam
