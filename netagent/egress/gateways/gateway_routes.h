// The kernel's ways to egress gateways: for each a table with a default route, and a rule that
// leads marked packets into it; and the device of the tunnel that some of the routes go by.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "netagent/egress/gateways/gateway_endpoint.h"

namespace spoke::netagent {

// Implementations are not thread-safe.
class GatewayRoutes {
 public:
  virtual ~GatewayRoutes() = default;

  // Returns the ways that are whole, by mark, whoever made them: those by the tunnel only where
  // their MTU is as the NIC's says. Errors: kUnavailable (try again); kInternal.
  virtual absl::StatusOr<std::map<uint32_t, GatewayEndpoint>> Read() = 0;

  // Leads packets with `mark`, under claims::kFlowMarkMask, by way of `gateway`: out of the node's
  // NIC, or by the tunnel; one that the mark led to before is replaced. A packet that would be too
  // long with what the tunnel adds is refused to its sender (ICMP). OK when that is so already.
  // Errors: kNotFound (no NIC), kFailedPrecondition (the kernel refuses: the NIC is down; there is
  // no tunnel; the NIC's MTU has no room for one), kUnavailable, kInternal.
  virtual absl::Status Lead(uint32_t mark, const GatewayEndpoint& gateway) = 0;
  // Takes the way for the mark away. OK when there is none. Errors: kUnavailable, kInternal.
  virtual absl::Status Forget(uint32_t mark) = 0;

  // Returns the UDP port at which the device of the tunnel (claims::kTunnelLink) listens; nothing:
  // there is none. Errors: kUnavailable, kInternal.
  virtual absl::StatusOr<std::optional<uint16_t>> TunnelPort() = 0;
  // Makes the device, or puts right what is not as it was made; one with another port is made anew,
  // without the ways that led to it. It stays until somebody deletes it. OK when that is so
  // already. Errors: kFailedPrecondition (somebody else listens at the port; the NIC's MTU is too
  // small), kUnimplemented (the kernel knows no such device), kNotFound (no NIC), kUnavailable,
  // kInternal.
  virtual absl::Status PutTunnel(uint16_t port) = 0;
};

}  // namespace spoke::netagent
