// An egress gateway as this node reaches it. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "lib/ip/address.h"
#include "netagent/policy/policy_bundle.h"

namespace spoke::netagent {

// A gateway that policies reach both ways is two: a flow keeps the way that it began with.
struct GatewayEndpoint {
  // The gateway is reached as next hop if no more is said.
  // NOLINTNEXTLINE(google-explicit-constructor)
  GatewayEndpoint(const ip::Address& at,
                  policy::GatewayTransport by = policy::GatewayTransport::kDirect)
      : address(at), transport(by) {}

  ip::Address address;
  policy::GatewayTransport transport;

  bool is_tunnel() const { return transport == policy::GatewayTransport::kVxlan; }
  std::string ToString() const { return address.ToString() + (is_tunnel() ? " by vxlan" : ""); }

  auto operator<=>(const GatewayEndpoint&) const = default;
};

// The port where a gateway's health is asked for, when the policy says nothing else.
inline constexpr uint16_t kGatewayHealthPort = 9467;

// The tunnel's UDP port where a policy says nothing else: VXLAN's own (RFC 7348).
inline constexpr uint16_t kTunnelPort = 4789;

// Returns the bytes that a tunnel to a gateway of the family adds to a packet: IP, UDP, and VXLAN's
// header.
inline constexpr uint32_t TunnelOverhead(ip::Family family) {
  return (family == ip::Family::kV4 ? 20 : 40) + 8 + 8;
}

}  // namespace spoke::netagent
