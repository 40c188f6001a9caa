// Lists for people what claims.h says: every name, number and address in the kernel that is ours,
// and why. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spoke::netagent {

struct Claim {
  std::string_view constant;  // Its name in claims.h; empty: said elsewhere.
  std::string what;           // Such as "route protocol".
  std::string value;
  std::string why;
};

// Returns each constant of claims.h (all_claims_test.cc reads that file), and each setting.
std::vector<Claim> AllClaims();

}  // namespace spoke::netagent
