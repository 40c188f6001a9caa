// Queueing disciplines: how a device queues what it sends. All but DumpQdiscs() are pure. Trees of
// classes are in htb.h.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {

// The way in which the kernel counts the time that bytes take at a rate, in queues that keep their
// bursts so.

inline constexpr uint64_t kTickNanoseconds = 64;  // PSCHED_SHIFT in the kernel's net/pkt_sched.h.
inline constexpr uint32_t kMaxTicks = std::numeric_limits<uint32_t>::max();

// Returns the ticks, rounded; kMaxTicks stands for more. Rates are in bytes a second, and not 0.
inline uint32_t TicksOf(uint64_t bytes, uint64_t rate) {
  const double ticks =
      static_cast<double>(bytes) * 1e9 / static_cast<double>(rate) / double{kTickNanoseconds} + 0.5;
  return ticks >= double{kMaxTicks} ? kMaxTicks : static_cast<uint32_t>(ticks);
}

// Returns the bytes, rounded; the largest number of 32 bits stands for more.
inline uint32_t BytesOf(uint32_t ticks, uint64_t rate) {
  const double bytes =
      static_cast<double>(ticks) * double{kTickNanoseconds} * static_cast<double>(rate) / 1e9 + 0.5;
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  return bytes >= double{kMax} ? kMax : static_cast<uint32_t>(bytes);
}

// The parameters of what tc-tbf(8) calls a token bucket filter.
struct TokenBucket {
  uint64_t rate = 0;   // The rate in bytes a second; not 0.
  uint32_t burst = 0;  // The bytes that may go at once; the longest packet must fit.
  uint32_t limit = 0;  // The bytes that may wait; what comes on top is dropped.

  bool operator==(const TokenBucket&) const = default;
};

struct Qdisc {
  int32_t link = 0;     // The device's index.
  uint32_t handle = 0;  // The handle, with the major number in the upper half. 0: the kernel's own.
  uint32_t parent = 0;  // TC_H_ROOT for a device's own queue, a class's id for that class's.
  std::string kind;     // The kind: "tbf", "noqueue", "htb".
  // The parameters of kind "tbf". The kernel keeps the burst as a time, so it comes back a byte or
  // two different.
  std::optional<TokenBucket> token_bucket;
  // The bytes that may wait, for kind "bfifo".
  std::optional<uint32_t> fifo_limit;

  bool operator==(const Qdisc&) const = default;
};

// Reads the payload of an RTM_NEWQDISC message. Errors: kDataLoss (cut short, or a length that
// cannot be).
absl::StatusOr<Qdisc> ParseQdisc(std::span<const uint8_t> payload);

// Adds a token bucket for everything that the device sends. On a device that is down this is cheap;
// on one that is up the kernel waits until no CPU uses the old queue. Refused with kAlreadyExists
// when the device has a root of somebody's.
Request AddTokenBucket(int32_t link, uint32_t handle, const TokenBucket& bucket);

// Makes a queue for the class `parent` of which at most `limit` bytes wait, or sets the limit of
// the one that the class has: what waits there keeps waiting.
Request SetByteFifo(int32_t link, uint32_t parent, uint32_t limit);

// Deletes what somebody has put at a device's root, with its classes, filters and all that waits.
// None is tolerated. With a handle only the queue of that handle is deleted, and another is an
// error of the kernel (kInvalidArgument).
Request DeleteRootQdisc(int32_t link, uint32_t handle = 0);

// Returns all queues of the device, or of all devices with index 0. Errors: as Dump().
absl::StatusOr<std::vector<Qdisc>> DumpQdiscs(Socket& socket, int32_t link);

}  // namespace spoke::netlink
