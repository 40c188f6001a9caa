#include "tests/azure-sim/tokens.h"

#include <charconv>
#include <cstdint>
#include <vector>

#include "fmt/core.h"

namespace spoke::azure_sim {

std::string FormatToken(const Token& token) {
  return fmt::format("sim.{}.{}.{}", token.principal, absl::ToUnixSeconds(token.issued),
                     absl::ToUnixSeconds(token.expires));
}

std::optional<Token> ParseToken(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t dot = text.find('.');
    parts.push_back(text.substr(0, dot));
    if (dot == std::string_view::npos) break;
    text.remove_prefix(dot + 1);
  }
  if (parts.size() != 4 || parts[0] != "sim") return std::nullopt;
  int64_t times[2] = {0, 0};
  for (size_t i = 0; i < 2; ++i) {
    const std::string_view part = parts[i + 2];
    if (std::from_chars(part.data(), part.data() + part.size(), times[i]).ec != std::errc()) {
      return std::nullopt;
    }
  }
  return Token{std::string(parts[1]), absl::FromUnixSeconds(times[0]),
               absl::FromUnixSeconds(times[1])};
}

}  // namespace spoke::azure_sim
