// Hears the DNS answers that pass by this node, and changes nothing about them. Implemented by
// PacketDnsListener and, in tests, FakeDnsListener.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::netagent {

struct DnsMessage {
  ip::Address resolver;        // The resolver whose port 53 it comes from.
  std::vector<uint8_t> bytes;  // The bytes as in the datagram, whatever it is.
};

struct HeardDns {
  std::vector<DnsMessage> messages;  // The messages, in the order in which they came.
  size_t looked_at = 0;              // The number of packets it took, those for nobody included.
  uint64_t lost = 0;  // The number of packets that found no room since the last call.
};

// Implementations are not thread-safe and never block.
class DnsListener {
 public:
  static constexpr size_t kMaxResolvers = 64;
  // The greatest size of a packet, its headers included: a longer one is passed over.
  static constexpr size_t kMaxPacket = 1500;

  virtual ~DnsListener() = default;

  // Hears from now on what comes by UDP from port 53 of an address in `resolvers`: what arrives for
  // the node by any device but pods' links, as its own lookups do, and what it passes on to pods,
  // once it is on their links and so has the source that the pod knows. What comes from a pod is
  // never heard: whoever may send whole packets could write any source. Fragments are not heard
  // either. A repeat forgets what waits; with an error all stays as it is. Errors: kInvalidArgument
  // (more than kMaxResolvers); kPermissionDenied, kResourceExhausted, kInternal.
  virtual absl::Status Open(const std::vector<ip::Prefix>& resolvers) = 0;

  // Hears nothing any more, and costs nothing. A repeat does nothing.
  virtual void Close() = 0;

  // Returns the descriptor, readable while something waits; -1: closed. It is another one after
  // each Open(), which with Close() closes it.
  virtual int fd() const = 0;

  // Looks at `most` packets at most. The same message may come more than once: on its way in, and
  // to the pod. Finds nothing when closed. Errors: kInternal.
  virtual absl::StatusOr<HeardDns> Take(size_t most) = 0;
};

}  // namespace spoke::netagent
