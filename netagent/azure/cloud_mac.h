// MAC addresses as Azure's node-local services write them. Pure.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"

namespace spoke::netagent::azure {

// "000D3A36DDED", and also with colons. Errors: kInvalidArgument, with the text.
absl::StatusOr<ip::MacAddress> ParseCloudMac(std::string_view text);

}  // namespace spoke::netagent::azure
