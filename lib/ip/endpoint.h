// An address with a port: where a program listens. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"

namespace spoke::ip {

// Ordered by address, then by port.
struct Endpoint {
  Address address;
  uint16_t port = 0;

  // Reads "10.0.0.1:443" or "[fd00::1]:443". Errors: kInvalidArgument (anything else, the port 0
  // included; the message shows the text).
  static absl::StatusOr<Endpoint> Parse(std::string_view text);

  // Returns what Parse() reads as the same value.
  std::string ToString() const;

  auto operator<=>(const Endpoint&) const = default;
};

}  // namespace spoke::ip
