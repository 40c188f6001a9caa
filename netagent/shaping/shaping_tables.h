// What the kernel has to know to shape: values that shaping/shaper.h puts there. Pure.
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

#include "netagent/classes/traffic_class.h"

namespace spoke::netagent {

// As the pod sees it.
enum class TrafficDirection : uint8_t { kIngress, kEgress };
inline constexpr std::array kBothDirections = {TrafficDirection::kIngress,
                                               TrafficDirection::kEgress};

// The minor number of a class, at most kMaxShapeClassId; 0: none.
using ShapeClassId = uint16_t;
// 0xffff means the root elsewhere (tc-htb(8)).
inline constexpr ShapeClassId kMaxShapeClassId = 0xFFFE;

// As a flow's scope: all that the pod sends, wherever to, is of the flow. Egress only. What the
// pod sends into one of its other scopes is of that flow too, and waits in both queues.
inline constexpr ClassNumber kWholeLink = 0xFFFF'FFFF;

// Rates in bytes a second of what the queue charges: whole frames (tc-htb(8)).
struct ShapeClass {
  ShapeClassId id = 0;
  ShapeClassId parent = 0;  // 0: the root of the tree.
  uint64_t rate = 0;        // Its own,
  uint64_t ceil = 0;        // and with what others leave; >= rate.
  uint32_t burst = 0;       // Bytes.
  uint32_t quantum = 0;     // Bytes it may send in turn with its siblings.
  uint32_t queue = 0;       // Bytes that may wait; 0: it has children, and no queue.

  bool operator==(const ShapeClass&) const = default;
};

// Of one pod, with one destination, in one direction.
struct ShapedFlow {
  uint32_t host_index = 0;        // Of the node's end of the pod's link.
  ClassNumber scope = kInternet;  // kInternet, a group's number, or kWholeLink.
  TrafficDirection direction = TrafficDirection::kIngress;
  ShapeClassId class_id = 0;  // 0: it is only counted, and not led by way of any queue.
  uint16_t bucket = 0;        // Of new connections; 0: none. Egress only.

  bool operator==(const ShapedFlow&) const = default;
};

// As many new TCP connections pass in a second, all flows that name it together; as many at once.
// The first packets of more are dropped, and so come later.
struct ConnectionBucket {
  uint16_t id = 0;  // From 1.
  uint32_t per_second = 0;

  bool operator==(const ConnectionBucket&) const = default;
};

struct ShapingTables {
  // The far end's scope; addresses in no range are in none. Of both families; no two overlap.
  std::vector<ClassRange> scopes;
  // Single addresses that were learned: they win over the ranges.
  std::vector<ClassRange> learned;
  // By direction; parents before their children.
  std::array<std::vector<ShapeClass>, 2> trees;
  std::vector<ShapedFlow> flows;
  std::vector<ConnectionBucket> buckets;

  bool operator==(const ShapingTables&) const = default;
};

inline constexpr size_t kMaxShapedFlows = 16'384;
inline constexpr size_t kMaxConnectionBuckets = 1'024;
inline constexpr size_t kMaxShapedPrefixes = 65'536;

// Totals since the class was made.
struct ShapeClassReading {
  TrafficDirection direction = TrafficDirection::kIngress;
  ShapeClassId id = 0;
  uint64_t sent_bytes = 0;  // Frames.
  uint64_t dropped_packets = 0;
  uint64_t overlimits = 0;     // How often it had to wait.
  uint32_t backlog_bytes = 0;  // Now.

  bool operator==(const ShapeClassReading&) const = default;
};

// What was offered, whatever became of it: totals since the flow was first put there.
struct ShapedFlowReading {
  uint32_t host_index = 0;
  ClassNumber scope = kInternet;
  TrafficDirection direction = TrafficDirection::kIngress;
  uint64_t bytes = 0;  // Frames, those that offloads will still cut counted as they will be.
  uint64_t packets = 0;
  uint64_t connections = 0;          // New TCP connections that passed,
  uint64_t refused_connections = 0;  // or did not.

  bool operator==(const ShapedFlowReading&) const = default;
};

struct ShapingReading {
  std::vector<ShapeClassReading> classes;
  std::vector<ShapedFlowReading> flows;
};

}  // namespace spoke::netagent
