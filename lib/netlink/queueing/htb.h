// Hierarchical token buckets (tc-htb(8)): a queue whose packets wait in a tree of classes. All but
// DumpHtbClasses() are pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {

struct HtbClass {
  int32_t link = 0;  // The device's index.
  // The id: the major of the tree's handle in the upper half, the class's own below.
  uint32_t id = 0;
  uint32_t parent = 0;  // The other class's id; the tree's handle: none.
  uint64_t rate = 0;    // The class's own rate, bytes a second; not 0.
  uint64_t ceil = 0;    // The rate together with what others leave.
  uint32_t burst = 0;   // The bytes that may go at once, at either rate.
  // The bytes in turn with its siblings; the kernel knows it of leaves alone.
  uint32_t quantum = 0;

  bool operator==(const HtbClass&) const = default;
};

struct HtbClassReading {
  HtbClass htb;
  // The handle of the queue that somebody has put there; 0: the kernel's own, or none.
  uint32_t queue = 0;
  uint64_t sent_bytes = 0;
  uint64_t sent_packets = 0;
  uint64_t dropped_packets = 0;
  uint64_t overlimits = 0;
  uint32_t backlog_bytes = 0;

  bool operator==(const HtbClassReading&) const = default;
};

// Reads the payload of an RTM_NEWTCLASS message; the id is 0 for a class of another kind. The
// parent of a class at the top is its tree's handle. Errors: kDataLoss (cut short, or a length that
// cannot be).
absl::StatusOr<HtbClassReading> ParseHtbClass(std::span<const uint8_t> payload);

// Returns what the kernel makes of a class: it keeps the burst as a time, so that comes back a
// little different.
HtbClass AsKept(const HtbClass& htb);

// Adds the queue at the root of a device. What is in no class goes at once. Refused with
// kAlreadyExists when the device has a root of somebody's.
Request AddHtb(int32_t link, uint32_t handle);

// Adds the class, or changes the one with this id: its rates, its burst and, if it is a leaf, its
// quantum. Packets that wait keep waiting. A parent cannot be changed, and must be there: a class
// whose parent is not is put at the top.
Request SetHtbClass(const HtbClass& htb);

// Deletes the class with its queue and what waits there. One that is not there is tolerated; one
// with children is refused (kUnavailable).
Request DeleteHtbClass(int32_t link, uint32_t id);

// Returns the classes of one device, with what they have counted. Errors: as Dump().
absl::StatusOr<std::vector<HtbClassReading>> DumpHtbClasses(Socket& socket, int32_t link);

}  // namespace spoke::netlink
