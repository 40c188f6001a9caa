#include "netagent/classes/egress_cells.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"
#include "tests/support/random_seed.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ip::Address A(const std::string& text) { return ip::Address::Parse(text).value(); }
ip::Prefix P(const std::string& text) { return ip::Prefix::Parse(text).value(); }

ClassMap Classes() {
  Policy policy{.version = 1};
  policy.entries["ClusterNetwork/main"] = {
      .key = "ClusterNetwork/main",
      .bytes = {},
      .value = policy::ClusterNetwork{.cluster = policy::Blocks({"10.1.0.0/16"}),
                                      .hub = policy::Blocks({"10.2.0.0/16"}),
                                      .peer_spoke = {},
                                      .platform = {},
                                      .storage = policy::Blocks({"20.60.0.0/16"}),
                                      .services = {}}};
  return ClassMap::Compile(policy, {}).value();
}

std::vector<uint32_t> PoliciesOf(const Cells& cells, const std::string& address) {
  return cells.cells.at(cells.CellOf(A(address))).policies;
}

TEST(EgressCells, EverythingMeansTheInternet) {
  const Cells cells = CutIntoCells({{.blocks = {P("0.0.0.0/0")}}}, Classes(), {});
  EXPECT_THAT(PoliciesOf(cells, "8.8.8.8"), ElementsAre(0));
  EXPECT_THAT(PoliciesOf(cells, "10.3.0.1"), ElementsAre(0));
  EXPECT_THAT(PoliciesOf(cells, "1.0.0.0"), ElementsAre(0));
  for (const char* inside :
       {"10.1.0.1", "10.2.255.255", "20.60.1.1", "127.0.0.1", "169.254.0.1", "255.255.255.255"}) {
    EXPECT_THAT(PoliciesOf(cells, inside), IsEmpty()) << inside;
  }
  EXPECT_THAT(PoliciesOf(cells, "2600::1"), IsEmpty()) << "the block is of IPv4";
}

TEST(EgressCells, ABlockInsideIsMeantAsItStands) {
  const Cells cells = CutIntoCells(
      {{.blocks = {P("10.2.3.0/24"), P("10.1.0.0/16")}, .excluded = {P("10.1.7.0/24")}}}, Classes(),
      {});
  EXPECT_THAT(PoliciesOf(cells, "10.2.3.9"), ElementsAre(0));
  EXPECT_THAT(PoliciesOf(cells, "10.2.4.9"), IsEmpty());
  EXPECT_THAT(PoliciesOf(cells, "10.1.0.0"), ElementsAre(0));
  EXPECT_THAT(PoliciesOf(cells, "10.1.7.1"), IsEmpty());
  EXPECT_TRUE(cells.cells[cells.CellOf(A("10.1.0.0"))].cluster);
  EXPECT_FALSE(cells.cells[cells.CellOf(A("10.2.3.9"))].cluster);
}

TEST(EgressCells, ABlockAcrossTheBorderMeansWhatLiesOutside) {
  const Cells cells = CutIntoCells({{.blocks = {P("10.0.0.0/8")}}}, Classes(), {});
  EXPECT_THAT(PoliciesOf(cells, "10.0.0.1"), ElementsAre(0));
  EXPECT_THAT(PoliciesOf(cells, "10.1.0.1"), IsEmpty());
}

TEST(EgressCells, NoPolicyHasASayAboutThePlatformOrTheNodeItself) {
  const Cells cells = CutIntoCells({{.blocks = {P("0.0.0.0/0"), P("169.254.169.254/32")}}},
                                   Classes(), {A("9.9.9.9")});
  for (const char* platform : {"169.254.169.254", "168.63.129.16"}) {
    EXPECT_TRUE(cells.cells[cells.CellOf(A(platform))].platform) << platform;
    EXPECT_THAT(PoliciesOf(cells, platform), IsEmpty()) << platform;
  }
  EXPECT_FALSE(cells.cells[cells.CellOf(A("169.254.169.253"))].platform);
  EXPECT_FALSE(cells.cells[cells.CellOf(A("168.63.129.17"))].platform);
  EXPECT_THAT(PoliciesOf(cells, "9.9.9.9"), IsEmpty());
  EXPECT_THAT(PoliciesOf(cells, "9.9.9.10"), ElementsAre(0));
}

TEST(EgressCells, TheLastAddressOfEachFamilyIsInACell) {
  const Cells cells = CutIntoCells(
      {{.blocks = {P("255.255.255.255/32"), P("::/0"), P("2600::/16")}}}, ClassMap(), {});
  EXPECT_THAT(PoliciesOf(cells, "255.255.255.255"), ElementsAre(0));
  EXPECT_THAT(PoliciesOf(cells, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), ElementsAre(0));
  EXPECT_EQ(cells.v6.back().last, A("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
}

// The result is compared with asking each block in turn.
TEST(EgressCells, AgreeWithAskingEachPolicy) {
  testing_support::Random random;
  const auto address = [&] {
    return ip::Address::V4(static_cast<uint32_t>(random.Between(0x0A000000, 0x0A7FFFFF)));
  };
  const auto block = [&] {
    return ip::Prefix::Of(address(), static_cast<int>(random.Between(8, 24))).value();
  };
  const ClassMap classes = Classes();
  for (int round = 0; round < 20; ++round) {
    std::vector<Destinations> policies(random.Between(0, 5));
    for (Destinations& policy : policies) {
      for (uint64_t i = random.Between(0, 3); i > 0; --i) policy.outside.push_back(block());
      for (uint64_t i = random.Between(0, 2); i > 0; --i) policy.excluded.push_back(block());
    }
    const Cells cells = CutIntoCells(policies, classes, {});
    for (int probe = 0; probe < 200; ++probe) {
      const ip::Address asked = address();
      std::vector<uint32_t> want;
      const auto has = [&](const std::vector<ip::Prefix>& blocks) {
        return std::any_of(blocks.begin(), blocks.end(),
                           [&](const ip::Prefix& b) { return b.Contains(asked); });
      };
      const bool inside = classes.ClassOf(asked) != kInternet;
      for (uint32_t i = 0; i < policies.size(); ++i) {
        if (has(policies[i].outside) && !has(policies[i].excluded) && !inside) want.push_back(i);
      }
      ASSERT_EQ(cells.cells[cells.CellOf(asked)].policies, want) << asked.ToString();
    }
  }
}

TEST(EgressCells, RangesHaveNoGapsAndNeighboursDiffer) {
  const Cells cells = CutIntoCells(
      {{.blocks = {P("1.0.0.0/8"), P("2.0.0.0/8")}}, {.blocks = {P("2600::/16")}}}, Classes(), {});
  for (const auto* ranges : {&cells.v4, &cells.v6}) {
    for (size_t i = 1; i < ranges->size(); ++i) {
      EXPECT_EQ((*ranges)[i].first, ip::Advance((*ranges)[i - 1].last, 1));
      EXPECT_NE((*ranges)[i].cell, (*ranges)[i - 1].cell);
    }
  }
}

}  // namespace
}  // namespace spoke::netagent
