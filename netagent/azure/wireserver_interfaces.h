// Reads what Azure's wire server says the host has programmed for this VM's NICs from XML. Pure.
//
// The answer to /machine/plugins?comp=nmagent&type=getinterfaceinfov1, as the Azure CNI's services
// read it (github.com/Azure/azure-container-networking, cns/nodesubnet and ipam): one Interface
// element a NIC, with IPSubnet elements that hold IPAddress elements.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::netagent::azure {

struct HostAddress {
  ip::Prefix range;  // A single address, as a rule.
  bool is_primary = false;

  bool operator==(const HostAddress&) const = default;
};

struct HostSubnet {
  ip::Prefix prefix;
  std::vector<HostAddress> addresses;

  bool operator==(const HostSubnet&) const = default;
};

struct HostInterface {
  ip::MacAddress mac;
  bool is_primary = false;
  std::vector<HostSubnet> subnets;

  bool operator==(const HostInterface&) const = default;
};

inline constexpr size_t kMaxWireserverBytes = 1UL << 20;
inline constexpr size_t kMaxWireserverElements = 16'384;  // 8 NICs of 256 addresses have 2,100.

// Reads the answer. Errors: kInvalidArgument with the line (not well-formed, a document type
// declaration, an element out of its place, an attribute that is missing or cannot be read, more
// than the limits). Passes over unknown elements and attributes; entities are never resolved.
absl::StatusOr<std::vector<HostInterface>> ParseWireserverInterfaces(std::string_view text);

}  // namespace spoke::netagent::azure
