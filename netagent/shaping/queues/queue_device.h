// One of the devices by way of which shaped packets go: an ifb with a tree of classes at its root,
// and the program there that knows the class.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"
#include "netagent/bpf/programs.h"
#include "netagent/shaping/class_changes.h"
#include "netagent/shaping/shaping_tables.h"

namespace spoke::netagent {

// The state of a device in the kernel.
struct QueueDevice {
  std::string name;
  int32_t index = 0;     // The device's index; 0: it is not there.
  bool is_ours = false;  // Whether it is of the right kind.
  bool is_up = false;
  bool has_tree = false;
  uint32_t classifier = 0;  // The id of the program at the root; 0: there is none.
  std::vector<ShapeClass> classes;
};

std::string NameOfQueues(TrafficDirection direction);

// Returns the class as the kernel keeps it: its burst is a little different.
ShapeClass AsKept(const ShapeClass& wanted);

// Reads the device. Errors: those of netlink::Dump().
absl::StatusOr<QueueDevice> ReadQueueDevice(netlink::Socket& socket, TrafficDirection direction);

// Makes what is missing of the device except the classes, and returns how many things these were.
// Errors: kUnimplemented (the kernel lacks something, which is named), and as the kernel says.
absl::StatusOr<size_t> MendQueueDevice(netlink::Socket& socket, const Programs& programs,
                                       QueueDevice& device);

// Checks whether links can lead packets to the device. To try it, it puts filters onto the device
// itself for a moment. Errors: kUnimplemented (the kernel lacks something, which is named), and as
// the kernel says.
absl::Status ProbeDiverting(netlink::Socket& socket, const Programs& programs,
                            const QueueDevice& device);

absl::Status SetClasses(netlink::Socket& socket, const QueueDevice& device,
                        const std::vector<ClassChange>& changes);
absl::Status RemoveClasses(netlink::Socket& socket, const QueueDevice& device,
                           const std::vector<ShapeClassId>& ids);

// Returns the readings of its classes.
absl::StatusOr<std::vector<ShapeClassReading>> ReadClasses(netlink::Socket& socket,
                                                           TrafficDirection direction,
                                                           const QueueDevice& device);

// Sends as many batches as it takes, up to the first refusal.
absl::Status SendAll(netlink::Socket& socket, const std::vector<netlink::Request>& requests);

}  // namespace spoke::netagent
