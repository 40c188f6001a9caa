// Proves on the wire that the fabric delivers for an address: an ICMP echo from it to a host that
// answers, sent and heard at the NIC. Implemented by PacketWireProbe and, in tests, FakeWireProbe.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/ip/address.h"

namespace spoke::netagent {

// Not thread-safe; never blocks.
class WireProbe {
 public:
  virtual ~WireProbe() = default;

  // Sends one probe from `address`, or, while the next hop's MAC is unknown, asks for that and
  // sends when it is told. A repeat is one more probe. Errors: kInvalidArgument (not IPv4);
  // kUnavailable (the device is down or gone, or its queue is full: try again);
  // kPermissionDenied; kInternal.
  virtual absl::Status Send(const ip::Address& address) = 0;

  // The addresses from which a probe has been answered since the last call, each once, in no order.
  // Errors: kUnavailable, kInternal.
  virtual absl::StatusOr<std::vector<ip::Address>> TakeAnswered() = 0;

  // Lets go of what costs something while nothing is waited for. Send() begins anew.
  virtual void Rest() = 0;
};

}  // namespace spoke::netagent
