// Packet sockets (packet(7)): whole frames, sent and heard at one network device.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/os/unique_fd.h"

namespace spoke::netagent {

// Opens a socket, not blocking, that hears what arrives at `device` with that ethertype and passes
// `filter`, if there is one; what this node itself sends it does not hear. It is in the network
// namespace of the calling thread. Needs CAP_NET_RAW. Errors: those of PacketError(); kUnavailable
// also when there is no such device.
absl::StatusOr<os::UniqueFd> OpenPacketSocket(const std::string& device, uint16_t ethertype,
                                              std::span<sock_filter> filter);

// Sends one whole frame. `what` says what it is for. Errors: those of PacketError().
absl::Status SendFrame(const os::UniqueFd& socket, const std::vector<uint8_t>& frame,
                       const std::string& what);

// Returns what a failed call on a packet socket comes to: kUnavailable (the device is down or gone,
// or a queue is full: try again), kPermissionDenied, or kInternal.
absl::Status PacketError(int error, const std::string& what);

}  // namespace spoke::netagent
