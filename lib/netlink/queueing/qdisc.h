// Queueing disciplines: how a device queues what it sends. All but DumpQdiscs() are pure. Trees of
// classes are in htb.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/netlink/request.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {

// What tc-tbf(8) calls a token bucket filter.
struct TokenBucket {
  uint64_t rate = 0;   // Bytes a second; not 0.
  uint32_t burst = 0;  // Bytes that may go at once; the longest packet must fit.
  uint32_t limit = 0;  // Bytes that may wait; what comes on top is dropped.

  bool operator==(const TokenBucket&) const = default;
};

struct Qdisc {
  int32_t link = 0;     // Index.
  uint32_t handle = 0;  // Major number in the upper half. 0: the kernel's own.
  uint32_t parent = 0;  // TC_H_ROOT for a device's own, a class's id for that class's.
  std::string kind;     // "tbf", "noqueue", "htb".
  // Of kind "tbf". The kernel keeps the burst as a time, so it comes back a byte or two different.
  std::optional<TokenBucket> token_bucket;
  // Of kind "bfifo": bytes that may wait.
  std::optional<uint32_t> fifo_limit;

  bool operator==(const Qdisc&) const = default;
};

// From the payload of an RTM_NEWQDISC message. Errors: kDataLoss (cut short, or a length that
// cannot be).
absl::StatusOr<Qdisc> ParseQdisc(std::span<const uint8_t> payload);

// For everything that the device sends. On a device that is down this is cheap; on one that is up
// the kernel waits until no CPU uses the old queue. Refused with kAlreadyExists when the device has
// a root of somebody's.
Request AddTokenBucket(int32_t link, uint32_t handle, const TokenBucket& bucket);

// A queue for the class `parent` of which at most `limit` bytes wait, or the new limit of the one
// that the class has: what waits there keeps waiting.
Request SetByteFifo(int32_t link, uint32_t parent, uint32_t limit);

// What somebody has put at a device's root, with its classes, filters and all that waits. None is
// tolerated.
Request DeleteRootQdisc(int32_t link);

// All of the device's, or of all devices with index 0. Errors: as Dump().
absl::StatusOr<std::vector<Qdisc>> DumpQdiscs(Socket& socket, int32_t link);

}  // namespace spoke::netlink
