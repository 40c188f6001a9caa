// The subnets of the fabric, each with the address of its router. Pure.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::fabric {

struct Gateway {
  ip::Address address;
  ip::Prefix subnet;

  bool operator==(const Gateway&) const = default;
};

// Reads "ADDRESS/LENGTH", as on the command line: the router's address and the length of its
// subnet. Errors: kInvalidArgument, with the text.
absl::StatusOr<Gateway> ParseGateway(std::string_view text);

// An immutable value; without gateways it is one flat network, without a router. Thread-safe.
class Gateways {
 public:
  Gateways() = default;
  // Builds the gateways. Errors: kInvalidArgument (two subnets overlap: the message names both).
  static absl::StatusOr<Gateways> Build(std::vector<Gateway> all);

  // Returns whether the router itself has `address`.
  bool Has(const ip::Address& address) const;

  // Returns the router of the subnet that has `address`; nullptr when none has. Valid as long as
  // this.
  const Gateway* Of(const ip::Address& address) const;

  // Returns whether a packet from one to the other crosses the router, which takes one from its
  // hops: one of the two is in no subnet, or they are in different ones.
  bool AreApart(const ip::Address& one, const ip::Address& other) const;

 private:
  explicit Gateways(std::vector<Gateway> all) : all_(std::move(all)) {}

  std::vector<Gateway> all_;
};

}  // namespace spoke::fabric
