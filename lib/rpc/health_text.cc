#include "lib/rpc/health_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "fmt/core.h"
#include "lib/base/utf8.h"

namespace spoke::rpc {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr size_t kMaxPathBytes = 107;
constexpr size_t kMaxLineBytes = 1024;
// The room for "and 12345 more" and its line's end.
constexpr size_t kCountBytes = 32;

// Returns one line of it: runtimes and terminals show it as it is.
std::string Line(std::string_view reason) {
  std::string line = base::CutText(reason, kMaxLineBytes);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return line;
}

}  // namespace

std::string JoinReasons(const std::vector<std::string>& reasons) {
  std::string text;
  for (size_t i = 0; i < reasons.size(); ++i) {
    const std::string line = Line(reasons[i]);
    const bool last_line = i == kMaxReasons - 1 && i + 1 < reasons.size();
    if (last_line || text.size() + line.size() + kCountBytes > kMaxReasonBytes) {
      return fmt::format("{}and {} more\n", text, reasons.size() - i);
    }
    text += line + "\n";
  }
  return text;
}

std::vector<std::string> SplitReasons(std::string_view text) {
  std::vector<std::string> reasons;
  text = text.substr(0, kMaxReasonBytes);
  while (!text.empty() && reasons.size() < kMaxReasons) {
    const size_t end = text.find('\n');
    std::string line = Line(text.substr(0, end));
    if (!line.empty()) reasons.push_back(std::move(line));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return reasons;
}

absl::Status CheckHealthAddress(std::string_view address) {
  if (address.starts_with(kUnix)) {
    const std::string_view path = SocketPathOf(address);
    if (path.size() < 2 || path.front() != '/') {
      return absl::InvalidArgumentError(
          fmt::format("\"{}\" is not a unix socket; write unix:/an/absolute/path", address));
    }
    if (path.size() > kMaxPathBytes) {
      return absl::InvalidArgumentError(
          fmt::format("socket path {} is longer than {} bytes", path, kMaxPathBytes));
    }
    return absl::OkStatus();
  }
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon != std::string_view::npos && colon > 0) {
    const std::string_view text = address.substr(colon + 1);
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), port);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) port = 0;
  }
  if (port == 0 || port > 65'535 || address.find('/') != std::string_view::npos) {
    return absl::InvalidArgumentError(
        fmt::format("must be unix:/an/absolute/path or host:port, not '{}'", address));
  }
  return absl::OkStatus();
}

std::string_view SocketPathOf(std::string_view address) {
  return address.starts_with(kUnix) ? address.substr(kUnix.size()) : "";
}

}  // namespace spoke::rpc
