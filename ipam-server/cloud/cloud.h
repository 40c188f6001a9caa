// The fabric as the server sees it: which addresses are on which NIC. Implementations: StaticCloud,
// and FakeCloud in tests; cloud_contract.h holds the promises below as tests for both.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/core/node_record.h"

namespace spoke::ipam {

// One named entry on a NIC.
struct IpConfiguration {
  std::string name;
  ip::Prefix range;  // One address, or a block.

  auto operator<=>(const IpConfiguration&) const = default;
};

// Everything of ours on one node's NIC.
struct NicAddresses {
  NodeKey node;
  ip::MacAddress nic_mac;
  std::vector<IpConfiguration> configurations;  // Sorted.

  bool operator==(const NicAddresses&) const = default;
};

// Thread-safe. Calls may take seconds: never from the thread that answers agents.
class Cloud {
 public:
  virtual ~Cloud() = default;

  // Makes the NIC hold exactly `desired`, and returns what it holds afterwards: a cloud may choose
  // other addresses than asked, or grant only some. Idempotent.
  // Errors: kUnavailable (same call, later); kResourceExhausted (back off, tell an operator);
  // kPermissionDenied and kFailedPrecondition (do not retry before an operator has acted).
  virtual absl::StatusOr<NicAddresses> Apply(const NicAddresses& desired) = 0;

  // The NICs of all nodes that exist, by node, with or without addresses of ours: a node that is
  // not in it is gone. Errors: kUnavailable (also for a listing that is not complete).
  virtual absl::StatusOr<std::vector<NicAddresses>> List() = 0;

  // For people: "static".
  virtual std::string Describe() const = 0;
};

}  // namespace spoke::ipam
