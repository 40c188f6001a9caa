#include "netagent/node/claims_text.h"

#include <algorithm>

#include "fmt/core.h"
#include "netagent/node/all_claims.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {

std::string ClaimsTable() {
  std::vector<Claim> claims = AllClaims();
  claims.insert(claims.begin(), {"", "WHAT", "VALUE", "WHY"});
  size_t what = 0;
  size_t value = 0;
  for (const Claim& claim : claims) {
    what = std::max(what, claim.what.size());
    value = std::max(value, claim.value.size());
  }
  std::string table;
  for (const Claim& claim : claims) {
    table += fmt::format("{:{}}  {:{}}  {}\n", claim.what, what, claim.value, value, claim.why);
  }
  return table;
}

std::string ClaimsJson() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Claim& claim : AllClaims()) {
    list.push_back({{"what", claim.what}, {"value", claim.value}, {"why", claim.why}});
  }
  return list.dump(2) + "\n";
}

}  // namespace spoke::netagent
