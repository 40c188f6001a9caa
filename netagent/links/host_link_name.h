// Which link names are ours. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "netagent/claims.h"

namespace spoke::netagent {

// Whether `name` has the form HostLinkName() gives: claims::kLinkPrefix and twelve lower-case hex
// digits. No other link is ever listed as attached or removed, whoever asks.
inline bool IsHostLinkName(std::string_view name) {
  constexpr size_t kDigits = 12;
  if (name.substr(0, claims::kLinkPrefix.size()) != claims::kLinkPrefix) return false;
  const std::string_view digits = name.substr(claims::kLinkPrefix.size());
  return digits.size() == kDigits && std::all_of(digits.begin(), digits.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace spoke::netagent
