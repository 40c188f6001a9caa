// Where a program listens or is reached, as configurations and command lines name it. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace spoke::config {

// Whether the port 0 is one: to whoever listens, any free port.
enum class PortZero : uint8_t { kRefused, kTaken };

// Returns whether `text` is HOST:PORT or [IPV6]:PORT (RFC 3986, section 3.2.2: an IPv6 address
// without brackets could end with a port or with its own last group). A host is a name or an
// address without blanks, slashes, commas and colons; whether there is one is not asked.
bool IsHostPort(std::string_view text, PortZero zero = PortZero::kRefused);

}  // namespace spoke::config
