#include "lib/ip/endpoint.h"

#include <charconv>

#include "absl/status/status.h"
#include "fmt/core.h"

namespace spoke::ip {

absl::StatusOr<Endpoint> Endpoint::Parse(std::string_view text) {
  const auto mistake = [&] {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no address with a port: write ADDRESS:PORT or [ADDRESS]:PORT",
                    text.substr(0, 64)));
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return mistake();
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const absl::StatusOr<Address> address = Address::Parse(host);
  if (!address.ok() || address->is_v4() == bracketed) return mistake();
  Endpoint endpoint{.address = *address};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, endpoint.port);
  if (error != std::errc() || stop != end || endpoint.port == 0) return mistake();
  return endpoint;
}

std::string Endpoint::ToString() const {
  const std::string host = address.ToString();
  return address.is_v4() ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

}  // namespace spoke::ip
