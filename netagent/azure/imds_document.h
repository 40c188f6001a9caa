// Reads what Azure's Instance Metadata Service says of the VM it is asked from: from JSON. Pure.
//
// Microsoft's "Azure Instance Metadata Service" page: all primitives are strings, and what has no
// value is "" and not left out. Here both read as "".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::netagent::azure {

struct ImdsNic {
  ip::MacAddress mac;
  // Addresses, blocks taken apart: IPv4 first, each family in the service's order. The first one is
  // the primary address.
  std::vector<ip::Address> addresses;
  std::vector<ip::Prefix> subnets;

  bool operator==(const ImdsNic&) const = default;
};

struct ImdsInstance {
  std::string name;         // The name, such as "pool_0".
  std::string vm_id;        // In lower case.
  std::string resource_id;  // The Azure Resource Manager's, in lower case.
  std::string scale_set;    // Empty: not in one.
  std::string location;
  std::string subscription;
  std::vector<ImdsNic> nics;  // The primary one first.

  bool operator==(const ImdsInstance&) const = default;
};

// The limits are far above what a VM can have: 8 NICs and 256 addresses a NIC.
inline constexpr size_t kMaxImdsBytes = 1UL << 20;
inline constexpr size_t kMaxImdsNics = 64;
inline constexpr size_t kMaxImdsAddresses = 1024;

// Reads the answer to GET /metadata/instance. Errors: kInvalidArgument (no JSON object, a value of
// another type than it has to be, or an address that is none; the message names the place), also
// for what is above the limits.
absl::StatusOr<ImdsInstance> ParseImdsInstance(std::string_view text);

}  // namespace spoke::netagent::azure
