// How many addresses a node should hold. Pure.
#pragma once

#include <cstdint>
#include <limits>

namespace spoke::ipam {

// All values are addresses a node and family, except `spare`.
struct TargetPolicy {
  uint32_t min = 16;  // Addresses of an empty node, so that its first pods wait for nothing.
  uint32_t batch =
      16;              // Targets are multiples of it, so that one more pod is seldom one more call.
  double spare = 0.5;  // Batches kept free beyond what is used.
  uint32_t max = 250;  // A NIC of Azure takes 256 configurations in all.

  bool operator==(const TargetPolicy&) const = default;
};

inline constexpr uint32_t kNoCap = std::numeric_limits<uint32_t>::max();

// clamp(min, batch * ceil(spare + used / batch), max) + reserved, but no more than `nic_cap`: one
// step to the final target, however many pods came at once. `used` counts in use and in cooldown
// addresses; `reserved` is what reservations promise the node on top; `nic_cap` is what its NIC can
// hold at all.
uint32_t TargetAddresses(const TargetPolicy& policy, uint32_t used, uint32_t reserved = 0,
                         uint32_t nic_cap = kNoCap);

}  // namespace spoke::ipam
