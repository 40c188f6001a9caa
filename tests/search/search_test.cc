#include "tests/search/search.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/search/actions.h"
#include "tests/search/roots.h"
#include "tests/search/world.h"

namespace spoke::search {
namespace {

using enum Rare;

std::string StoriesOf(const Found& found) {
  std::string text;
  for (const Violation& violation : found.violations) {
    text += violation.what + "\n" + violation.root + "\n" + violation.story;
  }
  return text;
}

TEST(SearchTest, FindsNothingBroken) {
  const Found found = SearchFrom(AllRoots(), {.states = 10'000});
  EXPECT_TRUE(found.violations.empty()) << StoriesOf(found);
  EXPECT_GE(found.states, 9'000U);
  EXPECT_LE(found.worlds, found.states);
}

TEST(SearchTest, WritesEveryStateAndReadsItBack) {
  std::vector<World> worlds;
  for (const Root& root : AllRoots()) worlds.push_back(root.world);
  const size_t roots = worlds.size();
  // One way from each, of what is possible there in turn.
  for (size_t i = 0; i < roots; ++i) {
    World world = worlds[i];
    for (size_t step = 0; step < 40; ++step) {
      const std::vector<Action>& all = AllActions();
      for (size_t at = 0; at < all.size(); ++at) {
        const auto outcome = Apply(world, all[(step * 7 + at) % all.size()], Defect::kNone);
        if (!outcome || outcome->world.overflow || !outcome->broken.empty()) continue;
        world = outcome->world;
        break;
      }
      worlds.push_back(world);
    }
  }
  for (const World& world : worlds) EXPECT_EQ(Decode(Encode(world)), world);
}

TEST(SearchTest, TakesNodesThatChangePlacesForOneState) {
  World world = WorldOf(Start::kReplaced);
  World other = world;
  std::swap(other.nodes[0], other.nodes[2]);
  EXPECT_NE(Encode(world), Encode(other));
  Canonicalise(world);
  Canonicalise(other);
  EXPECT_EQ(Encode(world), Encode(other));
}

std::vector<Root> From(Start start, uint8_t faults, const std::vector<Share>& shares) {
  World world = WorldOf(start);
  Allow(world, faults, shares);
  return {{.name = std::string(NameOf(start)), .world = world}};
}

TEST(SearchTest, SymmetryChangesNoVerdict) {
  const std::vector<Root> roots = From(Start::kSettled, 1, {{kAdd, 2}, {kReplace, 1}});
  for (const Defect defect : {Defect::kNone, Defect::kNoAgentCooldown}) {
    const Found with = SearchFrom(roots, {.depth = 4, .defect = defect});
    const Found without = SearchFrom(roots, {.depth = 4, .symmetry = false, .defect = defect});
    EXPECT_LT(with.states, without.states);
    ASSERT_EQ(with.violations.size(), without.violations.size()) << NameOf(defect);
    for (size_t i = 0; i < with.violations.size(); ++i) {
      EXPECT_EQ(with.violations[i].what, without.violations[i].what);
      EXPECT_EQ(with.violations[i].depth, without.violations[i].depth);
    }
  }
}

struct Canary {
  Defect defect;
  Start start;
  uint8_t faults;
  std::vector<Share> shares;
};

// A search that finds no defect that is put in would find none that is there.
class CanaryTest : public testing::TestWithParam<Canary> {};

TEST_P(CanaryTest, IsFound) {
  const Canary& canary = GetParam();
  const Found found =
      SearchFrom(From(canary.start, canary.faults, canary.shares),
                 {.states = 20'000, .defect = canary.defect, .stop_at_first = true});
  ASSERT_FALSE(found.violations.empty()) << found.states << " states";
  EXPECT_FALSE(found.violations.front().story.empty());
  RecordProperty("states", static_cast<int>(found.states));
}

INSTANTIATE_TEST_SUITE_P(
    Defects, CanaryTest,
    testing::Values(Canary{Defect::kForgetsWithdrawal, Start::kDrained, 0, {{kAdd, 1}}},
                    Canary{Defect::kDetachesUnasked, Start::kSettled, 0, {{kAdd, 1}, {kMode, 1}}},
                    Canary{Defect::kFreesEarly, Start::kDrained, 0, {{kTick, 1}}},
                    Canary{Defect::kNoAgentCooldown, Start::kSettled, 0, {{kAdd, 2}}},
                    Canary{
                        Defect::kNoServerCooldown, Start::kReplaced, 0, {{kAdd, 1}, {kListing, 2}}},
                    Canary{Defect::kTrustsMark, Start::kCameSince, 1, {{kAdd, 1}, {kRestore, 1}}},
                    Canary{Defect::kNamesWithdrawn, Start::kMovedCutOff, 1, {{kRestore, 1}}},
                    Canary{Defect::kOldAnswers, Start::kDrained, 1, {{kAdd, 1}, {kCut, 1}}},
                    Canary{Defect::kStoresLess, Start::kReplaced, 0, {}}),
    [](const auto& test) {
      std::string name(NameOf(test.param.defect));
      std::erase(name, '-');
      return name;
    });

}  // namespace
}  // namespace spoke::search
