// What a requested bandwidth becomes in the kernel. Pure.
#pragma once

#include <cstdint>
#include <optional>

namespace spoke::netagent {

// A token bucket: as much as `burst_bytes` goes at once, `limit_bytes` wait, the rest is dropped.
struct LinkShaping {
  uint64_t bytes_per_second = 0;
  uint32_t burst_bytes = 0;
  uint32_t limit_bytes = 0;

  bool operator==(const LinkShaping&) const = default;
};

// Plans one direction of a link with `mtu`. `rate` is in bits a second (0: nothing is returned),
// `burst` in bits (0: none was asked for). Runtimes pass bursts on that stand for "whatever"
// (gigabits), with which nothing would be limited for seconds, so:
//   - the burst is what the rate gives in a millisecond, or 16 KiB where that is more, so that
//     segmentation offload still pays; less when less is requested; but never less than one packet,
//     since then none would pass;
//   - the queue is what the rate gives in 50 ms, so that the last packet of it is not late by more;
//     but never less than the burst, or than 8 packets.
std::optional<LinkShaping> PlanLinkShaping(uint64_t rate, uint64_t burst, uint32_t mtu);

}  // namespace spoke::netagent
