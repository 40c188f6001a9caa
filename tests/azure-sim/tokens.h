// Bearer tokens of the simulated directory. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace spoke::azure_sim {

// What a token says. Nothing is signed: a test may make any it likes.
struct Token {
  std::string principal;  // Whose; no dots.
  absl::Time issued;
  absl::Time expires;
};

std::string FormatToken(const Token& token);
// nullopt: not one of ours.
std::optional<Token> ParseToken(std::string_view text);

}  // namespace spoke::azure_sim
