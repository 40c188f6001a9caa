// The kernel's ways to egress gateways: for each a table with a default route, and a rule that
// leads marked packets into it.
#pragma once

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/ip/address.h"

namespace spoke::netagent {

// Not thread-safe.
class GatewayRoutes {
 public:
  virtual ~GatewayRoutes() = default;

  // The ways that are whole, by mark, whoever made them. Errors: kUnavailable (try again);
  // kInternal.
  virtual absl::StatusOr<std::map<uint32_t, ip::Address>> Read() = 0;

  // Packets with `mark`, under claims::kFlowMarkMask, go by way of `gateway`, out of the node's
  // NIC; one that the mark led to before is replaced. OK when that is so already. Errors: kNotFound
  // (no NIC), kFailedPrecondition (the kernel refuses: the NIC is down), kUnavailable, kInternal.
  virtual absl::Status Lead(uint32_t mark, const ip::Address& gateway) = 0;
  // No way for the mark any more. OK when there is none. Errors: kUnavailable, kInternal.
  virtual absl::Status Forget(uint32_t mark) = 0;
};

}  // namespace spoke::netagent
