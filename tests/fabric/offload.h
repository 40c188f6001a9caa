// The words of the kernel before a frame about how it was offloaded. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spoke::fabric {

// The offload of the frame it goes with: struct virtio_net_hdr of linux/virtio_net.h, which C++
// cannot read. Its numbers are in the machine's order. It is all zero for a plain frame.
using Offload = std::array<uint8_t, 10>;

// Returns the size of the largest IP packet that hardware would make of the untagged `frame`:
// nothing larger reaches a wire. Zero when it is not to be cut, or when the two contradict each
// other.
size_t SegmentBytes(const Offload& offload, std::span<const uint8_t> frame);

// Returns `offload` for its frame with `bytes` more in front of the IP header.
Offload ShiftedBy(Offload offload, uint16_t bytes);

}  // namespace spoke::fabric
