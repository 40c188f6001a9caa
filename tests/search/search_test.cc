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
  const Found found = SearchFrom(AllRoots(), {.states = 4'000});
  EXPECT_TRUE(found.violations.empty()) << StoriesOf(found);
  EXPECT_GE(found.states, 3'500U);
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

// Nodes with addresses are not alike, since addresses are not: so it saves only where some have
// none.
TEST(SearchTest, SymmetryChangesNoVerdict) {
  for (const auto& [start, defect] : {std::pair(Start::kNothing, Defect::kNone),
                                      std::pair(Start::kSettled, Defect::kNoAgentCooldown)}) {
    const std::vector<Root> roots = From(start, 1, {{kAdd, 2}});
    const Found with = SearchFrom(roots, {.depth = 4, .defect = defect});
    const Found without = SearchFrom(roots, {.depth = 4, .symmetry = false, .defect = defect});
    EXPECT_LE(with.states, without.states);
    EXPECT_EQ(with.states < without.states, start == Start::kNothing);
    EXPECT_EQ(with.violations.empty(), defect == Defect::kNone);
    ASSERT_EQ(with.violations.size(), without.violations.size());
    for (size_t i = 0; i < with.violations.size(); ++i) {
      EXPECT_EQ(with.violations[i].what, without.violations[i].what);
      EXPECT_EQ(with.violations[i].depth, without.violations[i].depth);
    }
  }
}

struct Canary {
  Defect defect;
  Start start;
  std::vector<Action> way;  // What happens first.
  std::vector<Share> shares;
};

// A search that finds no defect that is put in would find none that is there.
class CanaryTest : public testing::TestWithParam<Canary> {};

TEST_P(CanaryTest, IsFound) {
  const Canary& canary = GetParam();
  World world = WorldOf(canary.start);
  Allow(world, 7,
        {{kAdd, 7}, {kCut, 7}, {kTick, 7}, {kListing, 7}, {kLeaderChange, 7}, {kRestore, 7}});
  for (const Action& action : canary.way) {
    const auto outcome = Apply(world, action, canary.defect);
    ASSERT_TRUE(outcome && outcome->broken.empty());
    world = outcome->world;
  }
  Allow(world, 1, canary.shares);
  const Found found =
      SearchFrom({{.name = "canary", .world = world}},
                 {.states = 20'000, .defect = canary.defect, .stop_at_first = true});
  ASSERT_FALSE(found.violations.empty()) << found.states << " states";
  EXPECT_FALSE(found.violations.front().story.empty());
  RecordProperty("states", static_cast<int>(found.states));
  RecordProperty("transitions", static_cast<int>(found.transitions));
}

INSTANTIATE_TEST_SUITE_P(
    Defects, CanaryTest,
    testing::Values(
        Canary{Defect::kForgetsWithdrawal, Start::kDrained, {{Act::kHear, 0}}, {{kAdd, 1}}},
        Canary{Defect::kDetachesUnasked, Start::kSettled, {}, {{kAdd, 1}, {kMode, 1}}},
        Canary{Defect::kFreesEarly,
               Start::kDrained,
               {{Act::kHear, 0}, {Act::kListen, 1}},
               {{kTick, 1}}},
        Canary{Defect::kNoAgentCooldown, Start::kSettled, {{Act::kAddPod, 0, 1}}, {{kAdd, 1}}},
        Canary{Defect::kNoServerCooldown,
               Start::kReplaced,
               {{Act::kNotice, 0}, {Act::kList}, {Act::kList}},
               {{kAdd, 1}}},
        Canary{Defect::kTrustsMark,
               Start::kCameSince,
               {{Act::kAddPod, 0, 1}, {Act::kRestore}, {Act::kDisconnect, 0}, {Act::kConnect, 0}},
               {{kAdd, 1}}},
        Canary{Defect::kNamesWithdrawn,
               Start::kMovedCutOff,
               {{Act::kRestore},
                {Act::kDisconnect, 1},
                {Act::kDisconnect, 2},
                {Act::kConnect, 1},
                {Act::kListen, 1},
                {Act::kHear, 1},
                {Act::kConnect, 0},
                {Act::kListen, 0},
                {Act::kHear, 0}},
               {{kAdd, 1}}},
        Canary{Defect::kOldAnswers,
               Start::kDrained,
               {{Act::kHear, 0}, {Act::kDisconnect, 0}, {Act::kNotice, 0}, {Act::kConnect, 0}},
               {{kAdd, 1}}},
        Canary{Defect::kStoresLess, Start::kReplaced, {}, {}},
        Canary{Defect::kForgetsBoot,
               Start::kSettled,
               {{Act::kAddPod, 0, 1}},
               {{kAdd, 1}, {kReboot, 1}}},
        // This one is no canary but so: see rules.h.
        Canary{Defect::kOpensEarly,
               Start::kCameSince,
               {{Act::kAddPod, 0, 1},
                {Act::kRestoreElsewhere},
                {Act::kDisconnect, 0},
                {Act::kConnect, 0},
                {Act::kDisconnect, 1},
                {Act::kConnect, 1}},
               {{kAdd, 1}}}),
    [](const auto& test) {
      std::string name(NameOf(test.param.defect));
      std::erase(name, '-');
      return name;
    });

}  // namespace
}  // namespace spoke::search
