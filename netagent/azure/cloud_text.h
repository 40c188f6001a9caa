// MAC addresses and ranges as Azure's node-local services write them. Pure.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::netagent::azure {

// Reads "000D3A36DDED", also with colons. Errors: kInvalidArgument, with the text.
absl::StatusOr<ip::MacAddress> ParseCloudMac(std::string_view text);

// Reads "10.0.0.16", or a block, "10.0.0.16/28"; drops bits behind its length, since nobody
// promises that they are clear. Errors: kInvalidArgument, with the text.
absl::StatusOr<ip::Prefix> ParseCloudRange(std::string_view text);

}  // namespace spoke::netagent::azure
