// The values that the kernel has to know to shape, and that shaping/shaper.h puts there. Pure.
//
// Packets between a pod and the Internet, or a destination group, are led by way of one of two
// devices of the node, one a direction, whose queues are a tree of classes (tc-htb(8)), and so is
// all that a pod sends whose whole link is limited; everything else never sees a queue of ours.
// Which scope a packet is of is said by the address that it has outside of the node, also where the
// pod knows a Service's address instead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/units/quantity.h"
#include "netagent/classes/traffic_class.h"

namespace spoke::netagent {

// The direction, as the pod sees it.
enum class TrafficDirection : uint8_t { kIngress, kEgress };
inline constexpr std::array kBothDirections = {TrafficDirection::kIngress,
                                               TrafficDirection::kEgress};

// The minor number of a class, at most kMaxShapeClassId; 0: none.
using ShapeClassId = uint16_t;
// The greatest number of a class: 0xffff means the root elsewhere (tc-htb(8)).
inline constexpr ShapeClassId kMaxShapeClassId = 0xFFFE;

// The scope of a flow that all that the pod sends, wherever to, is of; for egress only. What the
// pod sends into one of its other scopes is of that flow too, and waits in both queues.
inline constexpr ClassNumber kWholeLink = 0xFFFF'FFFF;

// A class. Rates are of what the queue charges: whole frames (tc-htb(8)). Its sizes fit 32 bits,
// which is what the kernel has for them.
struct ShapeClass {
  ShapeClassId id = 0;
  ShapeClassId parent = 0;        // The class above; 0: the root of the tree.
  units::ByteRate rate = {};      // The rate of its own.
  units::ByteRate ceil = {};      // The rate with what others leave; at least `rate`.
  units::ByteCount burst = {};    // What may go at once.
  units::ByteCount quantum = {};  // What it may send in turn with its siblings.
  units::ByteCount queue = {};    // What may wait; zero: it has children, and no queue.

  bool operator==(const ShapeClass&) const = default;
};

// The traffic of one pod, with one destination, in one direction.
struct ShapedFlow {
  uint32_t host_index = 0;        // The index of the node's end of the pod's link.
  ClassNumber scope = kInternet;  // kInternet, a group's number, or kWholeLink.
  TrafficDirection direction = TrafficDirection::kIngress;
  ShapeClassId class_id = 0;  // 0: it is only counted, and not led by way of any queue.
  uint16_t bucket = 0;        // The bucket of new connections; 0: none. Egress only.

  bool operator==(const ShapedFlow&) const = default;
};

// A limit of new TCP connections: as many pass in a second, of all flows that name it together, and
// as many at once. The first packets of more are dropped, and so come later.
struct ConnectionBucket {
  uint16_t id = 0;  // The bucket's number, from 1.
  uint32_t per_second = 0;

  bool operator==(const ConnectionBucket&) const = default;
};

struct ShapingTables {
  // The far end's scope; addresses in no range are in no scope. The ranges are of both families; no
  // two overlap.
  std::vector<ClassRange> scopes;
  // The single addresses that were learned, which win over the ranges.
  std::vector<ClassRange> learned;
  // The trees, by direction; parents come before their children.
  std::array<std::vector<ShapeClass>, 2> trees;
  std::vector<ShapedFlow> flows;
  std::vector<ConnectionBucket> buckets;
  // The queues are there even without flows, for the next ones that come. With flows they are
  // anyway.
  bool ready = false;

  bool operator==(const ShapingTables&) const = default;
};

inline constexpr size_t kMaxShapedFlows = 16'384;
inline constexpr size_t kMaxConnectionBuckets = 1'024;
inline constexpr size_t kMaxShapedPrefixes = 65'536;

// The totals of a class since it was made.
struct ShapeClassReading {
  TrafficDirection direction = TrafficDirection::kIngress;
  ShapeClassId id = 0;
  units::ByteCount sent = {};  // The size of the frames.
  uint64_t dropped_packets = 0;
  uint64_t overlimits = 0;        // The number of times that it had to wait.
  units::ByteCount backlog = {};  // What waits now.

  bool operator==(const ShapeClassReading&) const = default;
};

// The traffic that was offered, whatever became of it: totals since the flow was first put there.
struct ShapedFlowReading {
  uint32_t host_index = 0;
  ClassNumber scope = kInternet;
  TrafficDirection direction = TrafficDirection::kIngress;
  // The size of the frames; those that offloads will still cut are counted as they will be.
  units::ByteCount offered = {};
  uint64_t packets = 0;
  uint64_t connections = 0;          // The new TCP connections that passed.
  uint64_t refused_connections = 0;  // The new TCP connections that did not pass.

  bool operator==(const ShapedFlowReading&) const = default;
};

struct ShapingReading {
  std::vector<ShapeClassReading> classes;
  std::vector<ShapedFlowReading> flows;
};

}  // namespace spoke::netagent
