#include "ipam-server/policy/objects/claims.h"

#include <random>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

Claim Block(const std::string& share, const std::string& cidr, int line = 0) {
  const auto prefix = ip::Prefix::Parse(cidr);
  EXPECT_TRUE(prefix.ok()) << prefix.status();
  return {.space = "s", .share = share, .what = *prefix, .role = {}, .path = {}, .line = line};
}

Claim Word(const std::string& share, const std::string& word) {
  return {.space = "s", .share = share, .what = word, .role = {}, .path = {}};
}

// Each claim with its position as its owner.
std::vector<OwnedClaim> Own(const std::vector<Claim>& claims) {
  std::vector<OwnedClaim> owned;
  for (size_t i = 0; i < claims.size(); ++i) owned.push_back({&claims[i], i});
  return owned;
}

size_t CountClashes(const std::vector<Claim>& claims) { return FindClashes(Own(claims)).size(); }

TEST(FindClashes, BlocksOfDifferentSharesMustBeApart) {
  EXPECT_EQ(CountClashes({Block("a", "10.1.0.0/24"), Block("b", "10.1.1.0/24")}), 0U);
  EXPECT_EQ(CountClashes({Block("a", "10.1.0.0/16"), Block("b", "10.1.1.0/24")}), 1U);
  EXPECT_EQ(CountClashes({Block("a", "10.1.1.0/24"), Block("b", "10.1.0.0/16")}), 1U);
  EXPECT_EQ(CountClashes({Block("a", "10.1.1.0/24"), Block("b", "10.1.1.0/24")}), 1U);
  EXPECT_EQ(CountClashes({Block("a", "fd00::/8"), Block("b", "fd01::/16")}), 1U);
  EXPECT_EQ(CountClashes({Block("a", "0.0.0.0/0"), Block("b", "::/0")}), 0U);
}

TEST(FindClashes, BlocksOfOneShareMayOverlap) {
  EXPECT_EQ(CountClashes(
                {Block("a", "10.1.0.0/16"), Block("a", "10.1.1.0/24"), Block("a", "10.1.1.0/24")}),
            0U);
}

TEST(FindClashes, ABlockInsideTwoIsFoundInTheOuterOne) {
  // The inner block is of the same share as the one just around it.
  EXPECT_EQ(CountClashes(
                {Block("a", "10.0.0.0/8"), Block("b", "10.1.0.0/16"), Block("b", "10.1.1.0/24")}),
            2U);
}

TEST(FindClashes, WordsOfDifferentSharesMustDiffer) {
  EXPECT_EQ(CountClashes({Word("a", "x"), Word("a", "y"), Word("b", "z")}), 0U);
  EXPECT_EQ(CountClashes({Word("a", "x"), Word("b", "x"), Word("b", "x")}), 2U);
}

TEST(FindClashes, SpacesDoNotMeet) {
  Claim other = Block("b", "10.0.0.0/8");
  other.space = "t";
  EXPECT_EQ(CountClashes({Block("a", "10.0.0.0/8"), other}), 0U);
}

TEST(FindClashes, AClashIsLaidToTheLaterOwnerThenTheLaterLine) {
  const std::vector<Claim> claims = {Block("a", "10.1.1.0/24"), Block("b", "10.0.0.0/8")};
  const auto clashes = FindClashes(Own(claims));
  ASSERT_EQ(clashes.size(), 1U);
  EXPECT_EQ(clashes[0].later.claim, &claims[1]);
  const std::vector<Claim> own = {Block("a", "10.0.0.0/8", 9), Block("b", "10.1.0.0/16", 4)};
  const std::vector<OwnedClaim> one_owner = {{&own[0], 0}, {&own[1], 0}};
  EXPECT_EQ(FindClashes(one_owner).at(0).later.claim, &own[0]);
}

TEST(FindClashes, FindsOneExactlyWhenAnyTwoClash) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20000; ++round) {
    std::vector<Claim> claims;
    const size_t count = 2 + random() % 6;
    for (size_t i = 0; i < count; ++i) {
      const std::string share(1, static_cast<char>('a' + random() % 2));
      const auto prefix =
          ip::Prefix::Of(ip::Address::V4(static_cast<uint32_t>(random() % 32) << 27U),
                         static_cast<int>(random() % 6));
      claims.push_back(Block(share, prefix->ToString()));
    }
    bool clash = false;
    for (const Claim& a : claims) {
      for (const Claim& b : claims) {
        clash = clash || (a.share != b.share &&
                          std::get<ip::Prefix>(a.what).Overlaps(std::get<ip::Prefix>(b.what)));
      }
    }
    ASSERT_EQ(CountClashes(claims) > 0, clash) << "round " << round;
  }
}

}  // namespace
}  // namespace spoke::ipam
