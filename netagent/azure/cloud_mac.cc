#include "netagent/azure/cloud_mac.h"

#include <string>

namespace spoke::netagent::azure {

absl::StatusOr<ip::MacAddress> ParseCloudMac(std::string_view text) {
  constexpr size_t kDigits = 12;
  if (text.size() != kDigits) return ip::MacAddress::Parse(text);
  std::string colons;
  for (size_t i = 0; i < kDigits; i += 2) {
    if (i > 0) colons += ':';
    colons += text.substr(i, 2);
  }
  return ip::MacAddress::Parse(colons);
}

}  // namespace spoke::netagent::azure
