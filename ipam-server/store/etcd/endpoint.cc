#include "ipam-server/store/etcd/endpoint.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "fmt/core.h"
#include "lib/base/dns_name.h"
#include "lib/base/status.h"
#include "lib/ip/address.h"

namespace spoke::ipam::etcd {
namespace {

constexpr std::string_view kSecure = "https://";
constexpr std::string_view kPlain = "http://";

absl::Status Refuse(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" is no endpoint of etcd: {}; write https://HOST:PORT or http://HOST:PORT",
                  absl::CHexEscape(std::string(text)), why));
}

// Removes ":PORT" from the end of `rest`, if it is there.
bool TakePort(std::string_view& rest, uint16_t& port) {
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || rest.ends_with(']')) return true;
  const std::string_view digits = rest.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) return false;
  rest = rest.substr(0, colon);
  return true;
}

}  // namespace

std::string Endpoint::HostAndPort() const {
  if (host.find(':') != std::string::npos) return fmt::format("[{}]:{}", host, port);
  return fmt::format("{}:{}", host, port);
}

std::string Endpoint::ToString() const {
  return fmt::format("{}{}", secure ? kSecure : kPlain, HostAndPort());
}

absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text) {
  Endpoint endpoint;
  std::string_view rest = text;
  endpoint.secure = rest.starts_with(kSecure);
  if (!endpoint.secure && !rest.starts_with(kPlain)) return Refuse(text, "it has no scheme");
  rest.remove_prefix(endpoint.secure ? kSecure.size() : kPlain.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (!TakePort(rest, endpoint.port)) return Refuse(text, "its port is not one of 1 to 65535");
  if (rest.starts_with('[') && rest.ends_with(']')) {
    const auto address = ip::Address::Parse(rest.substr(1, rest.size() - 2));
    if (!address.ok() || address->is_v4()) return Refuse(text, "no IPv6 address is in brackets");
    endpoint.host = address->ToString();
    return endpoint;
  }
  endpoint.host = absl::AsciiStrToLower(std::string(rest));
  const auto address = ip::Address::Parse(endpoint.host);
  if (address.ok() && !address->is_v4()) return Refuse(text, "an IPv6 address needs brackets");
  if (!address.ok() && !base::IsDnsName(endpoint.host)) {
    return Refuse(text, "its host is neither a DNS name nor an address");
  }
  return endpoint;
}

absl::StatusOr<std::vector<Endpoint>> ParseEndpoints(std::span<const std::string> texts) {
  if (texts.empty() || texts.size() > kMaxEndpoints) {
    return absl::InvalidArgumentError(
        fmt::format("etcd needs 1 to {} endpoints, not {}", kMaxEndpoints, texts.size()));
  }
  std::vector<Endpoint> endpoints;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(Endpoint endpoint, ParseEndpoint(text));
    if (std::find(endpoints.begin(), endpoints.end(), endpoint) != endpoints.end()) {
      return absl::InvalidArgumentError(fmt::format("{} is given twice", endpoint.ToString()));
    }
    if (!endpoints.empty() && endpoints.front().secure != endpoint.secure) {
      return absl::InvalidArgumentError(
          fmt::format("{} and {} differ in their scheme: write https for all, or http for all",
                      endpoints.front().ToString(), endpoint.ToString()));
    }
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

}  // namespace spoke::ipam::etcd
