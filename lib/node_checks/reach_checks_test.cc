// Tests of the checks of the hub and of peer spokes: found when two looks agree, silent when all is
// as it is to be.
#include <utility>

#include "lib/node_checks/testing/healthy_node.h"

namespace spoke::node_checks {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const absl::Time kSince = absl::FromUnixSeconds(1'800'000'000);  // 2027-01-15T08:00:00Z

ReachAnswer Of(const char* target, bool reached, int looks) {
  return {.target = ip::Endpoint::Parse(target).value(),
          .reached = reached,
          .how = reached ? "reached" : "timed out",
          .looks = looks,
          .since = kSince};
}

NodeFacts Tried(ReachAnswers answers) {
  NodeFacts facts = HealthyNode();
  facts.reach = std::move(answers);
  return facts;
}

TEST(ReachChecks, TheHubIsFoundWhenTwoLooksInARowReachNothingOfIt) {
  EXPECT_THAT(FindingsOf(Tried({.hub = {Of("10.8.0.10:443", false, 1)}}), "hub"), IsEmpty());
  const auto found = FindingsOf(
      Tried({.hub = {Of("10.8.0.10:443", false, 3), Of("[fd08::1]:22", false, 2)}}), "hub");
  EXPECT_THAT(found, ElementsAre(Warning("hub")));
  EXPECT_EQ(found[0].what,
            "is not reached since 2027-01-15T08:00:00Z, at 2 looks in a row: 10.8.0.10:443 (timed "
            "out), [fd08::1]:22 (timed out)");
  EXPECT_THAT(found[0].remedy, AllOf(HasSubstr("ip route get 10.8.0.10;"),
                                     HasSubstr("spokectl policy verify --hub 10.8.0.10:443")));
}

TEST(ReachChecks, OneTargetOfTheHubThatAnswersIsEnough) {
  EXPECT_THAT(
      FindingsOf(Tried({.hub = {Of("10.8.0.10:443", false, 9), Of("10.8.0.11:443", true, 1)}}),
                 "hub"),
      IsEmpty());
  // So is one that has only just been missed.
  EXPECT_THAT(
      FindingsOf(Tried({.hub = {Of("10.8.0.10:443", false, 9), Of("10.8.0.11:443", false, 1)}}),
                 "hub"),
      IsEmpty());
}

TEST(ReachChecks, EachPeerSpokeThatIsReachedIsAFinding) {
  const auto found = FindingsOf(
      Tried({.peer_spoke = {Of("10.32.0.1:443", true, 2), Of("10.33.0.1:443", true, 1),
                            Of("10.34.0.1:443", false, 7), Of("10.35.0.1:443", true, 8)}}),
      "peer-spoke");
  EXPECT_THAT(found, ElementsAre(Warning("10.32.0.1:443"), Warning("10.35.0.1:443")));
  EXPECT_EQ(found[0].what,
            "is of a peer spoke, and is reached since 2027-01-15T08:00:00Z, at 2 looks in a row "
            "(reached)");
  EXPECT_THAT(found[0].remedy, HasSubstr("spokectl policy verify --spoke 10.32.0.1:443"));
}

TEST(ReachChecks, AreMadeOnlyWhereSomethingWasTriedAndOtherwiseSaidToBeMissing) {
  const auto not_made = [](const NodeFacts& facts) {
    std::vector<std::string> whys;
    for (const CheckNotMade& check : Examine(facts).not_made) {
      if (check.id == "hub" || check.id == "peer-spoke") whys.push_back(check.why);
    }
    return whys;
  };
  EXPECT_THAT(not_made(Tried({})),
              ElementsAre(HasSubstr("probes.hub"), HasSubstr("probes.peerSpoke")));
  EXPECT_THAT(not_made(Tried({.hub = {Of("10.8.0.10:443", true, 1)}})),
              ElementsAre(HasSubstr("probes.peerSpoke")));
  EXPECT_THAT(not_made(Tried({.hub = {Of("10.8.0.10:443", true, 1)},
                              .peer_spoke = {Of("10.32.0.1:443", false, 1)}})),
              IsEmpty());
  NodeFacts facts = HealthyNode();
  facts.services = ServiceAnswers();
  EXPECT_THAT(not_made(facts),
              ElementsAre(HasSubstr("spokectl node show"), HasSubstr("spokectl node show")));
  facts.settings.stage = Stage::kAgent;
  EXPECT_THAT(not_made(facts), IsEmpty()) << "the first look is not over";
}

}  // namespace
}  // namespace spoke::node_checks
