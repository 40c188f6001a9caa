#include "netagent/attach/assignments.h"

#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
constexpr absl::Duration kCooldown = absl::Seconds(30);
const AttachmentKey kPodA{"aaa", "eth0"};
const AttachmentKey kPodB{"bbb", "eth0"};

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

HoldingsReplaced Holdings(const std::vector<std::string>& addresses) {
  HoldingsReplaced event;
  for (const std::string& address : addresses) event.holdings.push_back({A(address), "default"});
  return event;
}

Assignments WithHoldings(const std::vector<std::string>& addresses) {
  Assignments assignments(kCooldown);
  assignments.Apply(Holdings(addresses));
  return assignments;
}

// Does what the agent does for an ADD that works.
Assignment Assign(Assignments& assignments, const AttachmentKey& key, absl::Time now = kNow) {
  const Assignment assignment = assignments.PlanAssignment({.key = key}, now).value();
  assignments.Apply(AssignmentBegun{assignment});
  assignments.Apply(AssignmentBuilt{key});
  return assignment;
}

UseCounts CountsOf(const Assignments& assignments) { return assignments.CountByPool()["default"]; }

TEST(Assignments, AssignsWhatHasBeenAvailableTheLongest) {
  Assignments assignments = WithHoldings({"10.1.0.7", "10.1.0.5"});
  EXPECT_THAT(Assign(assignments, kPodA).addresses, ElementsAre(A("10.1.0.7")));
  assignments.Apply(AssignmentReleased{kPodA, kNow});
  EXPECT_THAT(assignments.EndCooldowns(kNow + kCooldown), ElementsAre(A("10.1.0.7")));
  EXPECT_THAT(Assign(assignments, kPodB).addresses, ElementsAre(A("10.1.0.5")));
  EXPECT_THAT(Assign(assignments, kPodA).addresses, ElementsAre(A("10.1.0.7")));
}

TEST(Assignments, GivesOneAddressOfEachFamilyTheNodeHolds) {
  Assignments assignments = WithHoldings({"10.1.0.5", "fd00::5", "fd00::6"});
  EXPECT_THAT(Assign(assignments, kPodA).addresses, ElementsAre(A("10.1.0.5"), A("fd00::5")));
  // A pod with one family missing would be a broken pod, not a smaller one.
  EXPECT_EQ(assignments.PlanAssignment({.key = kPodB}, kNow).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(Assignments, ASecondAddForOneAttachmentIsRefusedAndChangesNothing) {
  Assignments assignments = WithHoldings({"10.1.0.5", "10.1.0.6"});
  const Assignment first = Assign(assignments, kPodA);
  EXPECT_EQ(assignments.PlanAssignment({.key = kPodA}, kNow).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*assignments.Find(kPodA), first);
  EXPECT_TRUE(assignments.PlanAssignment({.key = {"aaa", "eth1"}}, kNow).ok());
}

TEST(Assignments, AReleasedAddressIsInCooldownBeforeItIsAssignedAgain) {
  Assignments assignments = WithHoldings({"10.1.0.5"});
  Assign(assignments, kPodA);
  assignments.Apply(AssignmentReleased{kPodA, kNow});
  EXPECT_EQ(CountsOf(assignments), (UseCounts{.cooldown = 1}));
  EXPECT_FALSE(assignments.PlanAssignment({.key = kPodB}, kNow).ok());
  EXPECT_EQ(assignments.NextCooldownEnd(), kNow + kCooldown);
  EXPECT_THAT(assignments.EndCooldowns(kNow + kCooldown - absl::Milliseconds(1)), IsEmpty());
  EXPECT_THAT(assignments.EndCooldowns(kNow + kCooldown), ElementsAre(A("10.1.0.5")));
  EXPECT_EQ(assignments.NextCooldownEnd(), std::nullopt);
  EXPECT_TRUE(assignments.PlanAssignment({.key = kPodB}, kNow).ok());
}

TEST(Assignments, AnAddressNoPodEverHadIsAvailableAtOnce) {
  Assignments assignments = WithHoldings({"10.1.0.5"});
  assignments.Apply(AssignmentBegun{assignments.PlanAssignment({.key = kPodA}, kNow).value()});
  EXPECT_EQ(assignments.Unfinished().size(), 1U);
  assignments.Apply(AssignmentReleased{kPodA, kNow, /*unused=*/true});
  EXPECT_EQ(CountsOf(assignments), (UseCounts{.available = 1}));
}

TEST(Assignments, SomethingIsUsableWhileAPodHasItOrCould) {
  Assignments assignments = WithHoldings({});
  EXPECT_FALSE(assignments.HasUsable());
  assignments = WithHoldings({"10.1.0.5", "10.1.0.6"});
  EXPECT_TRUE(assignments.HasUsable());
  assignments.SetOnNic({A("10.1.0.5"), A("10.1.0.6")});
  EXPECT_FALSE(assignments.HasUsable());
  assignments.SetOnNic({A("10.1.0.5")});
  Assign(assignments, kPodA);
  EXPECT_TRUE(assignments.HasUsable()) << "a pod has the other";
  assignments.Apply(AssignmentReleased{kPodA, kNow});
  EXPECT_FALSE(assignments.HasUsable()) << "it is in cooldown";
  assignments.EndCooldowns(kNow + kCooldown);
  EXPECT_TRUE(assignments.HasUsable());
}

TEST(Assignments, ALateOrRepeatedReleaseFreesNothing) {
  Assignments assignments = WithHoldings({"10.1.0.5"});
  assignments.Apply(AssignmentReleased{kPodA, kNow});
  Assign(assignments, kPodB);
  assignments.Apply(AssignmentReleased{kPodA, kNow});
  EXPECT_EQ(CountsOf(assignments), (UseCounts{.in_use = 1}));
}

TEST(Assignments, AnAssignedAddressOutlivesItsListingAndThenGoes) {
  Assignments assignments = WithHoldings({"10.1.0.5"});
  Assign(assignments, kPodA);
  assignments.Apply(Holdings({}));
  EXPECT_THAT(assignments.Attached(), ElementsAre(A("10.1.0.5")));
  assignments.Apply(AssignmentReleased{kPodA, kNow});
  assignments.EndCooldowns(kNow + kCooldown);
  EXPECT_THAT(assignments.Attached(), IsEmpty());
}

TEST(Assignments, GenerationsRiseEvenWhenTheClockStandsOrTheJournalIsLost) {
  Assignments assignments = WithHoldings({"10.1.0.5", "10.1.0.6"});
  const uint64_t first = Assign(assignments, kPodA).generation;
  EXPECT_GT(Assign(assignments, kPodB).generation, first);
  Assignments forgetful = WithHoldings({"10.1.0.5"});
  EXPECT_GT(Assign(forgetful, kPodA, kNow + absl::Seconds(1)).generation, first + 1);
}

TEST(Assignments, WithNothingAttachedTheReasonSaysSo) {
  const Assignments assignments(kCooldown);
  const auto none = assignments.PlanAssignment({.key = kPodA}, kNow);
  EXPECT_EQ(none.status(), absl::ResourceExhaustedError("no address is attached to this node"));
}

ip::Prefix P(std::string_view text) { return ip::Prefix::Parse(text).value(); }

// Does what the agent does with a request to give `blocks` up.
WithdrawPlan Withdraw(Assignments& assignments, const std::vector<ip::Prefix>& blocks) {
  const WithdrawPlan plan = assignments.PlanWithdraw(blocks);
  if (!plan.withdraw.empty()) assignments.Apply(WithdrawnSet{plan.withdraw});
  return plan;
}

TEST(Assignments, WhatIsAvailableIsGivenUpAndNeverAssignedAgain) {
  Assignments assignments = WithHoldings({"10.1.0.5", "10.1.0.6"});
  const auto plan = Withdraw(assignments, {P("10.1.0.5/32")});
  EXPECT_THAT(plan.agreed, ElementsAre(P("10.1.0.5/32")));
  EXPECT_THAT(plan.denied, IsEmpty());
  EXPECT_EQ(CountsOf(assignments), (UseCounts{.available = 1, .unusable = 1}));
  EXPECT_THAT(Assign(assignments, kPodA).addresses, ElementsAre(A("10.1.0.6")));
  EXPECT_FALSE(assignments.PlanAssignment({.key = kPodB}, kNow).ok());
  // A list that still has it may have been sent before the agreement arrived.
  assignments.Apply(Holdings({"10.1.0.5", "10.1.0.6"}));
  EXPECT_FALSE(assignments.PlanAssignment({.key = kPodB}, kNow).ok());
}

TEST(Assignments, ARepeatedRequestIsAgreedToAgainAndWithdrawsNothing) {
  Assignments assignments = WithHoldings({"10.1.0.5"});
  const WithdrawPlan first = Withdraw(assignments, {P("10.1.0.5/32")});
  const WithdrawPlan second = Withdraw(assignments, {P("10.1.0.5/32")});
  EXPECT_EQ(second.agreed, first.agreed);
  EXPECT_THAT(second.withdraw, IsEmpty());
  assignments.Apply(Holdings({}));
  EXPECT_EQ(Withdraw(assignments, {P("10.1.0.5/32")}), second);
}

TEST(Assignments, ABlockIsGivenUpAsAWhole) {
  HoldingsReplaced listed;
  for (uint64_t i = 0; i < 16; ++i) {
    listed.holdings.push_back({ip::Advance(A("10.1.0.16"), i), "default"});
    listed.holdings.push_back({ip::Advance(A("fd00::10"), i), "six"});
  }
  Assignments assignments(kCooldown);
  assignments.Apply(listed);
  // One address of sixteen is in each of the three uses that stand in the way.
  const ip::Prefix v4 = P("10.1.0.16/28");
  const ip::Prefix v6 = P("fd00::10/124");
  const WithdrawPlan denied{.denied = {v4, v6}};
  assignments.Apply(AssignmentBegun{assignments.PlanAssignment({.key = kPodA}, kNow).value()});
  EXPECT_EQ(Withdraw(assignments, {v4, v6}), denied);
  assignments.Apply(AssignmentBuilt{kPodA});
  EXPECT_EQ(Withdraw(assignments, {v4, v6}), denied);
  assignments.Apply(AssignmentReleased{kPodA, kNow});
  EXPECT_EQ(Withdraw(assignments, {v4, v6}), denied);
  assignments.EndCooldowns(kNow + kCooldown);
  const auto agreed = Withdraw(assignments, {v4, v6});
  EXPECT_THAT(agreed.agreed, ElementsAre(v4, v6));
  EXPECT_EQ(agreed.withdraw.size(), 32U);
  EXPECT_FALSE(assignments.PlanAssignment({.key = kPodA}, kNow).ok());
  EXPECT_EQ(CountsOf(assignments), (UseCounts{.unusable = 16}));
}

TEST(Assignments, AnAddressThatLeftTheListAndCameBackIsAssignedAgain) {
  Assignments assignments = WithHoldings({"10.1.0.5"});
  Withdraw(assignments, {P("10.1.0.5/32")});
  assignments.Apply(ConflictNoted{A("10.1.0.5"), std::nullopt});
  assignments.Apply(Holdings({}));
  assignments.Apply(Holdings({"10.1.0.5"}));
  EXPECT_TRUE(assignments.PlanAssignment({.key = kPodA}, kNow).ok());
}

TEST(Assignments, AnAddressInConflictStaysWithItsPodAndIsNotAssignedAgain) {
  Assignments assignments = WithHoldings({"10.1.0.5"});
  Assign(assignments, kPodA);
  assignments.Apply(ConflictNoted{A("10.1.0.5"), std::nullopt});
  EXPECT_NE(assignments.Find(kPodA), nullptr);
  assignments.Apply(AssignmentReleased{kPodA, kNow});
  assignments.EndCooldowns(kNow + kCooldown);
  EXPECT_FALSE(assignments.PlanAssignment({.key = kPodB}, kNow).ok());
  assignments.Apply(Holdings({"10.1.0.5"}));
  EXPECT_FALSE(assignments.PlanAssignment({.key = kPodB}, kNow).ok());
  EXPECT_EQ(assignments.Conflicts().size(), 1U);
}

TEST(Assignments, WhenAConflictIsOverTheAddressIsAssignedAgain) {
  Assignments assignments = WithHoldings({"10.1.0.5"});
  assignments.Apply(ConflictNoted{A("10.1.0.5"), std::nullopt});
  EXPECT_FALSE(assignments.PlanAssignment({.key = kPodA}, kNow).ok());
  assignments.Apply(ConflictOver{A("10.1.0.5")});
  assignments.Apply(ConflictOver{A("10.1.0.9")});
  EXPECT_TRUE(assignments.PlanAssignment({.key = kPodA}, kNow).ok());
  EXPECT_TRUE(assignments.Conflicts().empty());
}

TEST(Assignments, WhatTheNetworkIsAskedAboutIsAssignedLast) {
  Assignments assignments = WithHoldings({"10.1.0.5", "10.1.0.6"});
  assignments.SetUnasked({A("10.1.0.5")});
  EXPECT_EQ(assignments.PlanAssignment({.key = kPodA}, kNow)->addresses[0], A("10.1.0.6"));
  Assign(assignments, kPodA);
  EXPECT_EQ(assignments.PlanAssignment({.key = kPodB}, kNow)->addresses[0], A("10.1.0.5"));
  assignments.SetUnasked({});
  EXPECT_TRUE(assignments.PlanAssignment({.key = kPodB}, kNow).ok());
}

TEST(Assignments, OwnIsWhatNobodyElseMayHave) {
  Assignments assignments = WithHoldings({"10.1.0.5", "10.1.0.6", "10.1.0.7"});
  Assign(assignments, kPodA);
  Withdraw(assignments, {P("10.1.0.6/32")});
  assignments.Apply(Holdings({"10.1.0.6", "10.1.0.7"}));
  EXPECT_EQ(assignments.Own(), (std::vector{A("10.1.0.5"), A("10.1.0.7")}))
      << "the pod has it, listed or not";
  EXPECT_TRUE(assignments.IsAssigned(A("10.1.0.5")));
  EXPECT_FALSE(assignments.IsAssigned(A("10.1.0.7")));
  EXPECT_EQ(assignments.PoolOf(A("10.1.0.9")), "");
}

// The node has one IPv4 pool for all, one for `web` and `batch`, and an IPv6 pool for `web` alone.
Assignments WithPools() {
  Assignments assignments(kCooldown);
  assignments.Apply(HoldingsReplaced{
      {{A("10.1.0.5"), "open"}, {A("10.2.0.5"), "teams"}, {A("fd00::5"), "six"}},
      {{"teams", "10.2.0.0/24", {"web", "batch"}}, {"six", "fd00::/64", {"web"}}}});
  return assignments;
}

TEST(Assignments, ThePodsNamespaceChoosesThePool) {
  struct Case {
    std::string pod_namespace;
    std::vector<ip::Address> want;
  };
  for (const Case& c : {Case{"web", {A("10.2.0.5"), A("fd00::5")}}, Case{"batch", {A("10.2.0.5")}},
                        Case{"else", {A("10.1.0.5")}}, Case{"", {A("10.1.0.5")}}}) {
    const auto assignment =
        WithPools().PlanAssignment({.key = kPodA, .pod = {.pod_namespace = c.pod_namespace}}, kNow);
    ASSERT_TRUE(assignment.ok()) << c.pod_namespace;
    EXPECT_EQ(assignment->addresses, c.want) << c.pod_namespace;
  }
}

TEST(Assignments, APodWaitsForItsOwnPoolAndTakesNobodyElses) {
  Assignments assignments = WithPools();
  assignments.Apply(AssignmentBegun{
      assignments.PlanAssignment({.key = kPodA, .pod = {.pod_namespace = "batch"}}, kNow).value()});
  const auto second =
      assignments.PlanAssignment({.key = kPodB, .pod = {.pod_namespace = "batch"}}, kNow);
  EXPECT_EQ(second.status(),
            absl::ResourceExhaustedError("no IPv4 address is free on this node for namespace batch "
                                         "(considered: pool teams)"));
  // The pod also waits while no address of its pool is here.
  assignments = Assignments(kCooldown);
  assignments.Apply(
      HoldingsReplaced{{{A("10.1.0.5"), "open"}}, {{"teams", "10.2.0.0/24", {"web"}}}});
  EXPECT_FALSE(
      assignments.PlanAssignment({.key = kPodA, .pod = {.pod_namespace = "web"}}, kNow).ok());
  EXPECT_TRUE(
      assignments.PlanAssignment({.key = kPodA, .pod = {.pod_namespace = "else"}}, kNow).ok());
}

TEST(Assignments, APodDoesNotDoWithoutAnAddressOfAFamilyThatIsYetToCome) {
  Assignments assignments(kCooldown);
  const std::vector<PoolRule> rules = {{"four", "10.1.0.0/24", {}}, {"six", "fd00::/120", {}}};
  const auto plan = [&] { return assignments.PlanAssignment({.key = kPodA}, kNow); };
  assignments.Apply(HoldingsReplaced{{}, rules});
  EXPECT_EQ(plan().status(), absl::ResourceExhaustedError("no address is attached to this node"));
  for (const char* only : {"10.1.0.5", "fd00::5"}) {
    assignments.Apply(HoldingsReplaced{{{A(only), A(only).is_v4() ? "four" : "six"}}, rules});
    EXPECT_TRUE(absl::IsResourceExhausted(plan().status())) << only << ": " << plan().status();
  }
  assignments.Apply(HoldingsReplaced{{{A("10.1.0.5"), "four"}, {A("fd00::5"), "six"}}, rules});
  ASSERT_TRUE(plan().ok()) << plan().status();
  EXPECT_THAT(plan()->addresses, ElementsAre(A("10.1.0.5"), A("fd00::5")));
  Assignments replayed(kCooldown);
  for (const Event& event : assignments.Snapshot()) replayed.Apply(event);
  EXPECT_EQ(replayed.Rules(), rules);
}

TEST(Assignments, ANodeWithOnlyOtherNamespacesPoolsSaysSo) {
  Assignments assignments(kCooldown);
  assignments.Apply(
      HoldingsReplaced{{{A("10.2.0.5"), "teams"}}, {{"teams", "10.2.0.0/24", {"web"}}}});
  EXPECT_EQ(
      assignments.PlanAssignment({.key = kPodA, .pod = {.pod_namespace = "else"}}, kNow).status(),
      absl::PermissionDeniedError("no pool on this node is meant for namespace else"));
}

TEST(Assignments, WhatIsInCooldownUnlistedIsNotAssignedAfterARestartUnlessListed) {
  Assignments assignments = WithHoldings({"10.1.0.5"});
  Assign(assignments, kPodA);
  assignments.Apply(AssignmentReleased{kPodA, kNow});
  assignments.Apply(Holdings({}));
  Assignments replayed(kCooldown);
  for (const Event& event : assignments.Snapshot()) replayed.Apply(event);
  EXPECT_THAT(replayed.Cooldown(), ElementsAre(A("10.1.0.5")));
  replayed.EndCooldowns(kNow + kCooldown);
  EXPECT_THAT(replayed.Attached(), IsEmpty());
  EXPECT_FALSE(replayed.PlanAssignment({.key = kPodA}, kNow).ok());
}

// Does to `assignments` what server, runtime and clock may, and keeps the journal.
class RandomLife {
 public:
  explicit RandomLife(unsigned seed) : random_(seed) {}

  void Step(absl::Time now) {
    const AttachmentKey key{std::string(1, static_cast<char>('a' + random_() % 8)), "eth0"};
    switch (random_() % 9) {
      case 0:
        Do(RandomListing());
        break;
      case 1:
      case 2:
      case 3:
        if (const auto assignment =
                assignments_.PlanAssignment({.key = key, .pod = RandomPod()}, now);
            assignment.ok()) {
          for (const auto& address : assignment->addresses)
            CheckMayBeAssigned(address, assignment->pod);
          Do(AssignmentBegun{*assignment});
          if (random_() % 4 != 0) Do(AssignmentBuilt{key});
        }
        break;
      case 4:
      case 5:
        Do(AssignmentReleased{key, now, random_() % 4 == 0});
        break;
      case 6: {
        const ip::Prefix block =
            *ip::Prefix::Of(RandomAddress(), 128 - 96 - static_cast<int>(random_() % 3));
        const WithdrawPlan plan = assignments_.PlanWithdraw({block});
        if (!plan.withdraw.empty()) Do(WithdrawnSet{plan.withdraw});
        ASSERT_THAT(assignments_.PlanWithdraw({block}).withdraw, IsEmpty());
        if (!plan.agreed.empty()) given_up_.insert(plan.withdraw.begin(), plan.withdraw.end());
        break;
      }
      case 7:
        if (random_() % 8 == 0) {
          Do(ConflictNoted{RandomAddress(), std::nullopt});
        } else if (const auto withdrawn = assignments_.Withdrawn(); !withdrawn.empty()) {
          const ip::Address anew = withdrawn[random_() % withdrawn.size()];
          Do(WithdrawnSet{{anew}, /*withdrawn=*/false});
          given_up_.erase(anew);
        }
        break;
      default:
        assignments_.EndCooldowns(now);
    }
  }

  const Assignments& assignments() const { return assignments_; }
  Assignments Replay() const {
    Assignments replayed(kCooldown);
    for (const Event& event : journal_) replayed.Apply(event);
    return replayed;
  }
  // Restarts the agent from its journal.
  void Restart() {
    assignments_ = Replay();
    journal_ = assignments_.Snapshot();
  }

 private:
  void Do(const Event& event) {
    if (const auto* listed = std::get_if<HoldingsReplaced>(&event)) {
      std::set<ip::Address> now_listed;
      for (const Holding& holding : listed->holdings) now_listed.insert(holding.address);
      std::erase_if(given_up_, [&](const auto& address) { return !now_listed.contains(address); });
    }
    const std::vector<ip::Address> own = assignments_.Own();
    const uint64_t version = assignments_.own_version();
    journal_.push_back(event);
    assignments_.Apply(event);
    if (assignments_.Own() != own) EXPECT_GT(assignments_.own_version(), version);
  }
  void CheckMayBeAssigned(const ip::Address& address, const cni::PodReference& pod) const {
    ASSERT_FALSE(given_up_.contains(address)) << address.ToString();
    // Addresses 0..4 are for everybody, 5..9 for "web".
    ASSERT_EQ(address.low() >= 5, pod.pod_namespace == "web") << address.ToString();
  }
  ip::Address RandomAddress() { return ip::Address::V4(static_cast<uint32_t>(random_() % 10)); }
  cni::PodReference RandomPod() { return {.pod_namespace = random_() % 2 == 0 ? "web" : "else"}; }
  HoldingsReplaced RandomListing() {
    HoldingsReplaced listed{{}, {{"teams", "0.0.0.0/24", {"web"}}}};
    for (uint32_t i = 0; i < 10; ++i) {
      if (random_() % 8 != 0) {
        listed.holdings.push_back({ip::Address::V4(i), i < 5 ? "open" : "teams"});
      }
    }
    return listed;
  }

  std::mt19937 random_;
  Assignments assignments_{kCooldown};
  std::vector<Event> journal_;
  std::set<ip::Address> given_up_;  // Those agreed to, and not listed anew since.
};

void ExpectNothingAssignedTwice(const Assignments& assignments) {
  std::set<ip::Address> in_use;
  for (const auto& list : {assignments.Built(), assignments.Unfinished()}) {
    for (const Assignment& assignment : list) {
      for (const auto& address : assignment.addresses) ASSERT_TRUE(in_use.insert(address).second);
    }
  }
  for (const ip::Address& address : assignments.Withdrawn()) {
    ASSERT_FALSE(in_use.contains(address)) << "withdrawn and assigned: " << address.ToString();
  }
}

void ExpectSame(const Assignments& a, const Assignments& b) {
  ASSERT_EQ(a.Built(), b.Built());
  ASSERT_EQ(a.Unfinished(), b.Unfinished());
  ASSERT_EQ(a.Cooldown(), b.Cooldown());
  ASSERT_EQ(a.Attached(), b.Attached());
  ASSERT_EQ(a.Withdrawn(), b.Withdrawn());
  ASSERT_EQ(a.Conflicts(), b.Conflicts());
  ASSERT_EQ(a.Rules(), b.Rules());
}

TEST(Assignments, WhateverHappensNothingIsAssignedTwiceOrAfterItWasGivenUpAndTheJournalIsTheState) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  RandomLife life(seed);
  std::mt19937 random(seed + 1);
  for (int step = 0; step < 10'000; ++step) {
    const absl::Time now = kNow + 5 * absl::Seconds(step);
    ASSERT_NO_FATAL_FAILURE(life.Step(now));
    ASSERT_NO_FATAL_FAILURE(ExpectNothingAssignedTwice(life.assignments()));
    Assignments compacted(kCooldown);
    for (const Event& event : life.assignments().Snapshot()) compacted.Apply(event);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(compacted, life.assignments()));
    // The end of a cooldown is no event: it is in what an event says of time.
    Assignments replayed = life.Replay();
    Assignments live = life.assignments();
    replayed.EndCooldowns(now);
    live.EndCooldowns(now);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(replayed, live));
    if (random() % 50 == 0) life.Restart();
  }
}

TEST(Assignments, WhatIsOnTheNodesOwnDeviceIsNotAssignedForAsLong) {
  Assignments assignments = WithHoldings({"10.1.0.5"});
  assignments.SetOnNic({A("10.1.0.4"), A("10.1.0.5")});
  EXPECT_EQ(assignments.PlanAssignment({.key = kPodA}, kNow).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CountsOf(assignments), (UseCounts{.on_nic = 1}));
  assignments.SetOnNic({A("10.1.0.4")});
  EXPECT_TRUE(assignments.PlanAssignment({.key = kPodA}, kNow).ok());
}

TEST(Assignments, WhatIsOnANicWithoutAWayOutIsPassedOverForAsLong) {
  const ip::MacAddress stuck = ip::MacAddress::Parse("00:0d:3a:00:00:02").value();
  Assignments assignments(kCooldown);
  assignments.Apply(
      HoldingsReplaced{{{A("10.1.0.5"), "default", stuck}, {A("10.1.0.6"), "default"}}});
  assignments.SetUnroutable({stuck});
  EXPECT_EQ(CountsOf(assignments), (UseCounts{.available = 1, .unusable = 1}));
  EXPECT_THAT(assignments.PlanAssignment({.key = kPodA}, kNow)->addresses,
              ElementsAre(A("10.1.0.6")));
  EXPECT_EQ(assignments.PlanAssignment({.key = kPodA, .addresses = {A("10.1.0.5")}}, kNow)
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
  assignments.SetUnroutable({});
  EXPECT_THAT(assignments.PlanAssignment({.key = kPodA}, kNow)->addresses,
              ElementsAre(A("10.1.0.5")));
}

TEST(Assignments, TheVersionOfTheAttachedRisesWheneverTheyChangeAndOnlyThen) {
  const std::vector<Holding> both = {{A("10.1.0.5"), "default"}, {A("10.1.0.6"), "default"}};
  struct Step {
    Event event;
    bool changes;
  };
  const Assignment assignment{.key = kPodA, .addresses = {A("10.1.0.5")}, .generation = 1};
  const Assignment stray{.key = kPodB, .addresses = {A("10.1.0.9")}, .generation = 2};
  const std::vector<Step> steps = {
      {HoldingsReplaced{both}, true},
      {HoldingsReplaced{both}, false},
      {AssignmentBegun{assignment}, false},
      {AssignmentBuilt{kPodA}, false},
      {HoldingsReplaced{{both[1]}}, false},  // An assigned address stays.
      {HoldingsReplaced{}, true},
      {AssignmentReleased{kPodA, kNow, /*unused=*/true}, true},
      {AssignmentBegun{stray}, true},
      {AssignmentReleased{kPodB, kNow}, false},
      {CooldownSet{A("10.1.0.9"), kNow}, false},
      {CooldownSet{A("10.1.0.7"), kNow}, true},
      {HoldingsReplaced{{{A("10.1.0.8"), "default"}}}, true},
  };
  Assignments assignments(kCooldown);
  for (size_t i = 0; i < steps.size(); ++i) {
    SCOPED_TRACE(i);
    const std::vector<ip::Address> before = assignments.Attached();
    const uint64_t version = assignments.attached_version();
    assignments.Apply(steps[i].event);
    EXPECT_EQ(assignments.Attached() != before, steps[i].changes);
    EXPECT_EQ(assignments.attached_version() != version, steps[i].changes);
  }
  const uint64_t version = assignments.attached_version();
  EXPECT_THAT(assignments.EndCooldowns(kNow), ElementsAre(A("10.1.0.7"), A("10.1.0.9")));
  EXPECT_NE(assignments.attached_version(), version) << "they were not listed, and are gone";
}

TEST(Assignments, NoCooldownEndsLateWhateverEndsOrMovesAnother) {
  Assignments assignments = WithHoldings({"10.1.0.5", "10.1.0.6", "10.1.0.7"});
  const auto at = [](int seconds) { return kNow + absl::Seconds(seconds); };
  assignments.Apply(CooldownSet{A("10.1.0.6"), at(20)});
  assignments.Apply(CooldownSet{A("10.1.0.5"), at(10)});
  assignments.Apply(CooldownSet{A("10.1.0.7"), at(30)});
  EXPECT_EQ(assignments.NextCooldownEnd(), at(10));
  // The first is assigned after all (an adopted link has it): nothing ends then, and the next is
  // known.
  assignments.Apply(AssignmentBegun{{.key = kPodA, .addresses = {A("10.1.0.5")}, .generation = 1}});
  EXPECT_THAT(assignments.EndCooldowns(at(10)), ElementsAre());
  EXPECT_EQ(assignments.NextCooldownEnd(), at(20));
  // One cooldown is put off, and one is brought forward.
  assignments.Apply(CooldownSet{A("10.1.0.6"), at(40)});
  EXPECT_THAT(assignments.EndCooldowns(at(20)), ElementsAre());
  EXPECT_EQ(assignments.NextCooldownEnd(), at(30));
  assignments.Apply(CooldownSet{A("10.1.0.6"), at(25)});
  EXPECT_THAT(assignments.EndCooldowns(at(25)), ElementsAre(A("10.1.0.6")));
  EXPECT_THAT(assignments.EndCooldowns(at(30)), ElementsAre(A("10.1.0.7")));
  EXPECT_EQ(assignments.NextCooldownEnd(), std::nullopt);
}

}  // namespace
}  // namespace spoke::netagent
