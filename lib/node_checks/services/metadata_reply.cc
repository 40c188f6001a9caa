#include "lib/node_checks/services/metadata_reply.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "fmt/core.h"

namespace spoke::node_checks {
namespace {

constexpr std::string_view kScheme = "http://";
constexpr std::string_view kHttp = "HTTP/";
constexpr std::string_view kEndOfHeaders = "\r\n\r\n";
constexpr size_t kStatusLineBytes = 12;  // The bytes of "HTTP/1.1 200".

std::optional<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

absl::Status NotTheService() {
  return absl::InvalidArgumentError("answers with something else than the versions that it has");
}

// Returns the three digits of "HTTP/1.1 200"; nullopt: they are none.
std::optional<int> StatusOf(std::string_view line) {
  if (line.substr(0, kHttp.size()) != kHttp || line[kStatusLineBytes - 4] != ' ') {
    return std::nullopt;
  }
  const std::string_view digits = line.substr(kStatusLineBytes - 3, 3);
  int status = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), status);
  if (error != std::errc() || end != digits.data() + digits.size() || status < 100) {
    return std::nullopt;
  }
  return status;
}

}  // namespace

std::optional<MetadataService> ParseMetadataUrl(std::string_view url) {
  if (url.substr(0, kScheme.size()) != kScheme) return std::nullopt;
  MetadataService service{.address = {}, .host = std::string(url.substr(kScheme.size()))};
  std::string_view host = service.host;
  const size_t bracket = host.find(']');
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    const auto port = ParsePort(host.substr(colon + 1));
    if (!port) return std::nullopt;
    service.port = *port;
    host = host.substr(0, colon);
  }
  const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (in_brackets) host = host.substr(1, host.size() - 2);
  const auto address = ip::Address::Parse(host);
  if (!address.ok() || address->is_v4() == in_brackets) return std::nullopt;
  service.address = *address;
  return service;
}

std::string MetadataRequest(const MetadataService& service) {
  return fmt::format(
      "GET {} HTTP/1.1\r\nHost: {}\r\nMetadata: true\r\nUser-Agent: spoke\r\n"
      "Connection: close\r\n\r\n",
      kMetadataPath, service.host);
}

std::optional<absl::Status> JudgeMetadataReply(std::string_view reply, bool ended) {
  const std::string_view start = reply.substr(0, std::min(reply.size(), kHttp.size()));
  if (start != kHttp.substr(0, start.size())) return NotTheService();
  if (reply.size() < kStatusLineBytes) {
    if (!ended) return std::nullopt;
    return absl::UnavailableError("closes the connection without an answer");
  }
  const auto status = StatusOf(reply);
  if (!status) return NotTheService();
  if (*status == 410 || *status == 429) return absl::OkStatus();
  if (*status != 200) return absl::UnavailableError(fmt::format("answers HTTP {}", *status));
  const size_t headers = reply.find(kEndOfHeaders);
  if (headers != std::string_view::npos &&
      reply.find("\"apiVersions\"", headers) != std::string_view::npos) {
    return absl::OkStatus();
  }
  if (!ended) return std::nullopt;
  return NotTheService();
}

}  // namespace spoke::node_checks
