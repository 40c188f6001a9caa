#include "tests/fabric/offload.h"

#include <cstring>

#include "tests/fabric/frame.h"

namespace spoke::fabric {
namespace {

// The places of the fields of struct virtio_net_hdr.
constexpr size_t kFlagsAt = 0;
constexpr size_t kTypeAt = 1;
constexpr size_t kSegmentSizeAt = 4;
constexpr size_t kChecksumStartAt = 6;
constexpr uint8_t kNeedsChecksum = 1;  // The flag VIRTIO_NET_HDR_F_NEEDS_CSUM.
// The types VIRTIO_NET_HDR_GSO_*.
constexpr uint8_t kNone = 0;
constexpr uint8_t kTcpV4 = 1;
constexpr uint8_t kTcpV6 = 4;
constexpr uint8_t kEcn = 0x80;
constexpr size_t kUdpHeaderBytes = 8;

uint16_t Read(const Offload& offload, size_t at) {
  uint16_t value = 0;
  std::memcpy(&value, offload.data() + at, sizeof(value));
  return value;
}

}  // namespace

size_t SegmentBytes(const Offload& offload, std::span<const uint8_t> frame) {
  const uint8_t type = offload[kTypeAt] & static_cast<uint8_t>(~kEcn);
  if (type == kNone) return 0;
  // The header's own hint of its length is longer than it, so the transport's header is read.
  const size_t transport = Read(offload, kChecksumStartAt);
  size_t header_bytes = kUdpHeaderBytes;
  if (type == kTcpV4 || type == kTcpV6) {
    if (transport + 13 > frame.size()) return 0;
    header_bytes = (frame[transport + 12] >> 4U) * size_t{4};
  }
  if (transport < kEthernetHeaderBytes) return 0;
  return transport - kEthernetHeaderBytes + header_bytes + Read(offload, kSegmentSizeAt);
}

Offload ShiftedBy(Offload offload, uint16_t bytes) {
  if ((offload[kFlagsAt] & kNeedsChecksum) == 0) return offload;
  const auto start = static_cast<uint16_t>(Read(offload, kChecksumStartAt) + bytes);
  std::memcpy(offload.data() + kChecksumStartAt, &start, sizeof(start));
  return offload;
}

}  // namespace spoke::fabric
