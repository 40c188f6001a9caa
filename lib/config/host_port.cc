#include "lib/config/host_port.h"

#include <charconv>
#include <system_error>

namespace spoke::config {

bool IsHostPort(std::string_view text, PortZero zero) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view port = text.substr(colon + 1);
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size()) return false;
  if (number == 0 && zero == PortZero::kRefused) return false;
  std::string_view host = text.substr(0, colon);
  if (host.front() == '[') {
    if (host.size() < 4 || host.back() != ']') return false;
    host = host.substr(1, host.size() - 2);
    return host.find_first_not_of("0123456789abcdefABCDEF:.%") == std::string_view::npos &&
           host.find(':') != std::string_view::npos;
  }
  return host.find_first_of(" \t/,:[]") == std::string_view::npos;
}

}  // namespace spoke::config
