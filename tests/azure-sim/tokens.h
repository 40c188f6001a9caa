// Bearer tokens of the simulated directory. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace spoke::azure_sim {

// The content of a token. Nothing is signed: a test may make any it likes.
struct Token {
  std::string principal;  // The principal's name; no dots.
  absl::Time issued;
  absl::Time expires;
};

std::string FormatToken(const Token& token);
// Reads a token; nullopt: not one of ours.
std::optional<Token> ParseToken(std::string_view text);

}  // namespace spoke::azure_sim
