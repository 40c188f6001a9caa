#include "netagent/azure/cloud_text.h"

#include <string>

#include "absl/strings/numbers.h"
#include "fmt/core.h"
#include "lib/base/status.h"

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

absl::StatusOr<ip::Prefix> ParseCloudRange(std::string_view text) {
  const size_t slash = text.find('/');
  ASSIGN_OR_RETURN(const ip::Address base, ip::Address::Parse(text.substr(0, slash)));
  if (slash == std::string_view::npos) return ip::Prefix::Host(base);
  int length = 0;
  if (!absl::SimpleAtoi({text.data() + slash + 1, text.size() - slash - 1}, &length)) {
    return absl::InvalidArgumentError(fmt::format("'{}' is no range of addresses", text));
  }
  return ip::Prefix::Of(base, length);
}

}  // namespace spoke::netagent::azure
