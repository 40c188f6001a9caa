#include "netagent/links/link_shaping.h"

#include <algorithm>

namespace spoke::netagent {
namespace {

constexpr uint64_t kBitsAByte = 8;
constexpr uint64_t kBurstsASecond = 1000;
constexpr uint64_t kMinBurst = 16UL << 10;
constexpr uint64_t kQueuesASecond = 20;
constexpr uint64_t kMinQueuedPackets = 8;
// Ethernet header and one VLAN tag, which the kernel counts.
constexpr uint64_t kHeaderBytes = 18;
// Above some 2 Gbit/s a queue is shorter in time than 50 ms, and long enough.
constexpr uint64_t kMaxQueue = 16UL << 20;
constexpr uint64_t kMaxBurst = 16UL << 20;

}  // namespace

std::optional<LinkShaping> PlanLinkShaping(uint64_t rate, uint64_t burst, uint32_t mtu) {
  if (rate == 0) return std::nullopt;
  const uint64_t bytes_per_second = std::max<uint64_t>(rate / kBitsAByte, 1);
  const uint64_t packet = mtu + kHeaderBytes;
  uint64_t bytes = std::clamp(bytes_per_second / kBurstsASecond, kMinBurst, kMaxBurst);
  if (burst != 0) bytes = std::min(bytes, burst / kBitsAByte);
  bytes = std::max(bytes, packet);
  const uint64_t queue = std::min(bytes_per_second / kQueuesASecond, kMaxQueue);
  const uint64_t limit = std::max({queue, bytes, kMinQueuedPackets * packet});
  return LinkShaping{.bytes_per_second = bytes_per_second,
                     .burst_bytes = static_cast<uint32_t>(bytes),
                     .limit_bytes = static_cast<uint32_t>(limit)};
}

}  // namespace spoke::netagent
