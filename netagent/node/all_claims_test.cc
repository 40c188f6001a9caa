#include "netagent/node/all_claims.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

TEST(AllClaims, HasEachConstantOfClaimsH) {
  std::ifstream file(SPOKE_SOURCE_DIR "/netagent/claims.h");
  std::vector<std::string> defined;
  for (std::string line; std::getline(file, line);) {
    line.erase(std::min(line.size(), line.find("//")));
    const size_t equals = line.find(" = ");
    if (equals == std::string::npos) continue;
    // The line has the form "inline constexpr TYPE NAME = VALUE;".
    EXPECT_EQ(line.rfind("inline constexpr ", 0), 0U) << "this test does not read: " << line;
    const size_t name = line.rfind(' ', equals - 1) + 1;
    defined.push_back(line.substr(name, equals - name));
  }
  ASSERT_GE(defined.size(), 5U) << "claims.h is written in a way that this test does not read";

  std::vector<std::string> listed;
  for (const Claim& claim : AllClaims()) {
    if (!claim.constant.empty()) listed.emplace_back(claim.constant);
  }
  EXPECT_THAT(listed, testing::UnorderedElementsAreArray(defined));
}

TEST(AllClaims, EachSaysWhatItIsAndWhy) {
  for (const Claim& claim : AllClaims()) {
    EXPECT_FALSE(claim.what.empty() || claim.value.empty() || claim.why.empty()) << claim.value;
  }
}

}  // namespace
}  // namespace spoke::netagent
