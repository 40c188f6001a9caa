// The fabric's end of one link: whole Ethernet frames in and out of a network device.
//
// A frame from a veth is not what a wire would carry: its checksum may be left for the hardware,
// and it may be a 64 KiB segment that hardware would cut up. The kernel says so in a header before
// each frame (PACKET_VNET_HDR); handed back unchanged with the frame, it makes the receiving end of
// the other link see what a veth would have given it, at no cost per byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/os/unique_fd.h"
#include "tests/fabric/offload.h"

namespace spoke::fabric {

// The port. Not thread-safe.
class PacketPort {
 public:
  // Takes all frames that arrive at `device` of the current network namespace from now on.
  // Errors: kNotFound (no such device); kPermissionDenied; as errno says.
  static absl::StatusOr<PacketPort> Open(const std::string& device);

  // Returns a descriptor that is readable when a frame waits.
  int fd() const { return fd_.get(); }

  struct Received {
    Offload offload;
    std::span<const uint8_t> frame;  // The frame, valid until the next call.
  };

  // Returns the next frame, with its VLAN tags; nothing when none waits, or when the one that did
  // is not for the fabric (one that we sent ourselves, one longer than any that a device can make).
  // Errors: kUnavailable (the device is down: later frames may still come); kInternal.
  absl::StatusOr<std::optional<Received>> Receive();

  // Sends a frame. Errors: kResourceExhausted (the device's queue is full); kUnavailable (it is
  // down); kInternal.
  absl::Status Send(const Offload& offload, std::span<const uint8_t> frame);

  // Returns the frames lost because they came faster than Receive() was called, since the last
  // call.
  uint64_t TakeOverflowed();

 private:
  PacketPort(std::string device, os::UniqueFd fd);

  std::string device_;
  os::UniqueFd fd_;
  std::vector<uint8_t> buffer_;  // The buffer has room in front for a tag.
};

}  // namespace spoke::fabric
