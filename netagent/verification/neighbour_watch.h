// The edge to the other machines in the networks of this node's NICs: asks whether one of them has
// an address, and hears what they say of who has which. Implemented by PacketNeighbourWatch and, in
// tests, FakeNeighbourWatch; neighbour_watch_contract.h holds both to it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "netagent/packets/neighbour_frame.h"
#include "netagent/verification/address_questions.h"

namespace spoke::netagent {

// Not thread-safe; never blocks.
class NeighbourWatch {
 public:
  // The most frames looked at in one call of Take(). More wait; when their queue is full, are lost.
  static constexpr size_t kMaxFramesACall = 256;

  virtual ~NeighbourWatch() = default;

  // Hears from now on what is said in the NIC's network: ARP, and for an IPv6 address Neighbour
  // Discovery as well; nothing else. A repeat changes nothing. Errors: kNotFound (the node has no
  // such NIC, and it is not listened for); kUnavailable (it is down or gone, and is heard as soon
  // as it can be); kPermissionDenied; kInternal.
  virtual absl::Status Listen(const Question& question) = 0;

  // Sends one frame that asks about the address, and changes nobody's tables; listens first.
  // Errors: those of Listen(); kUnavailable also when the NIC's queue is full: try again.
  virtual absl::Status Ask(const Question& question) = 0;

  // Tells the machine at `asker` alone that this node has the address. Errors: those of Ask();
  // kInvalidArgument (not IPv4).
  virtual absl::Status Answer(const Question& question, const ip::MacAddress& asker) = 0;

  // Returns what other machines have claimed since the last call, in the order in which it was
  // heard on each NIC; nothing of this node's own frames. After an error it goes on, and hears
  // again as soon as that works. Errors: kUnavailable, kPermissionDenied, kInternal.
  virtual absl::StatusOr<std::vector<NeighbourClaim>> Take() = 0;
};

}  // namespace spoke::netagent
