// Puts queues between pods and the Internet, or everything. Two devices of kind ifb, one a
// direction, have a tree of HTB classes each; programs at the ingress and egress of the links of
// pods that have flows tell by the far end's address which packets go by way of them, and into
// which class (tc-htb(8), tc-mirred(8), tc-bpf(8)). What is sent to a Service has its far end's
// address only outside, so programs at the links of default routes tell what those at pods' links
// could not. No other packet meets a queue or a lock of ours, and links of pods without flows have
// nothing of it.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "netagent/shaping/shaping_tables.h"

namespace spoke::netagent {

// Not thread-safe. What it has put into the kernel stays there, and works, without the agent; the
// next agent takes it over.
class Shaper {
 public:
  virtual ~Shaper() = default;

  // Makes the kernel as `tables` says, by the fewest changes: no class, queue or program that is
  // right is touched, packets that wait in a class that stays keep waiting, and of one that goes
  // they are dropped. The order is such that no flow ever names a class that is not there. A flow
  // whose link is gone is passed over. Errors: kInvalidArgument (a class whose parent does not come
  // before it, one id twice, a flow of no class, a leaf without a queue, too many of something:
  // nothing has changed); kUnimplemented (the kernel lacks something, which is named: nothing has
  // changed); kPermissionDenied; kInternal (the same again, or Remove(), may help).
  virtual absl::Status Apply(const ShapingTables& tables) = 0;

  // Returns what the kernel has counted. It is empty before the first Apply() when no agent was
  // there. Errors: kInternal.
  virtual absl::StatusOr<ShapingReading> Read() = 0;

  // Puts back what somebody has deleted or changed: devices, classes, queues, programs. Returns how
  // many things there were. Call every few seconds; nothing to do before the first Apply().
  virtual absl::StatusOr<size_t> Repair() = 0;

  // Takes everything off again, also what an earlier agent has left. Errors: kPermissionDenied,
  // kInternal.
  virtual absl::Status Remove() = 0;
};

}  // namespace spoke::netagent
