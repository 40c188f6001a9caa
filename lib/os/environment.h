// Variables of this process' environment. Thread-safe as long as nobody sets any: we do not.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace spoke::os {

// Returns what `name` holds, nullopt when it is not set.
inline std::optional<std::string> EnvironmentVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

}  // namespace spoke::os
