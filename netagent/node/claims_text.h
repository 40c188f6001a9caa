// The text that `spoke-netagent --claims` prints. Pure.
#pragma once

#include <string>

namespace spoke::netagent {

// A table for people: what, value and why, one claim a line.
std::string ClaimsTable();

// An array of objects with "what", "value" and "why".
std::string ClaimsJson();

}  // namespace spoke::netagent
