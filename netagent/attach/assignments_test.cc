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

Lendings WithHoldings(const std::vector<std::string>& addresses) {
  Lendings lendings(kCooldown);
  lendings.Apply(Holdings(addresses));
  return lendings;
}

// What the agent does for an ADD that works.
Lending Lend(Lendings& lendings, const AttachmentKey& key, absl::Time now = kNow) {
  const Lending lending = lendings.PlanLend({.key = key}, now).value();
  lendings.Apply(LendingBegun{lending});
  lendings.Apply(LendingBuilt{key});
  return lending;
}

UseCounts CountsOf(const Lendings& lendings) { return lendings.CountByPool()["default"]; }

TEST(Lendings, LendsWhatHasBeenIdleTheLongest) {
  Lendings lendings = WithHoldings({"10.1.0.7", "10.1.0.5"});
  EXPECT_THAT(Lend(lendings, kPodA).addresses, ElementsAre(A("10.1.0.7")));
  lendings.Apply(LendingReleased{kPodA, kNow});
  EXPECT_THAT(lendings.EndCooldowns(kNow + kCooldown), ElementsAre(A("10.1.0.7")));
  EXPECT_THAT(Lend(lendings, kPodB).addresses, ElementsAre(A("10.1.0.5")));
  EXPECT_THAT(Lend(lendings, kPodA).addresses, ElementsAre(A("10.1.0.7")));
}

TEST(Lendings, GivesOneAddressOfEachFamilyTheNodeHolds) {
  Lendings lendings = WithHoldings({"10.1.0.5", "fd00::5", "fd00::6"});
  EXPECT_THAT(Lend(lendings, kPodA).addresses, ElementsAre(A("10.1.0.5"), A("fd00::5")));
  // A pod with one family missing would be a broken pod, not a smaller one.
  EXPECT_EQ(lendings.PlanLend({.key = kPodB}, kNow).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(Lendings, ASecondAddForOneAttachmentIsRefusedAndChangesNothing) {
  Lendings lendings = WithHoldings({"10.1.0.5", "10.1.0.6"});
  const Lending first = Lend(lendings, kPodA);
  EXPECT_EQ(lendings.PlanLend({.key = kPodA}, kNow).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*lendings.Find(kPodA), first);
  EXPECT_TRUE(lendings.PlanLend({.key = {"aaa", "eth1"}}, kNow).ok());
}

TEST(Lendings, AReleasedAddressCoolsBeforeItIsLentAgain) {
  Lendings lendings = WithHoldings({"10.1.0.5"});
  Lend(lendings, kPodA);
  lendings.Apply(LendingReleased{kPodA, kNow});
  EXPECT_EQ(CountsOf(lendings), (UseCounts{.cooling = 1}));
  EXPECT_FALSE(lendings.PlanLend({.key = kPodB}, kNow).ok());
  EXPECT_EQ(lendings.NextCooldownEnd(), kNow + kCooldown);
  EXPECT_THAT(lendings.EndCooldowns(kNow + kCooldown - absl::Milliseconds(1)), IsEmpty());
  EXPECT_THAT(lendings.EndCooldowns(kNow + kCooldown), ElementsAre(A("10.1.0.5")));
  EXPECT_EQ(lendings.NextCooldownEnd(), std::nullopt);
  EXPECT_TRUE(lendings.PlanLend({.key = kPodB}, kNow).ok());
}

TEST(Lendings, AnAddressNoPodEverHadIsIdleAtOnce) {
  Lendings lendings = WithHoldings({"10.1.0.5"});
  lendings.Apply(LendingBegun{lendings.PlanLend({.key = kPodA}, kNow).value()});
  EXPECT_EQ(lendings.Unfinished().size(), 1U);
  lendings.Apply(LendingReleased{kPodA, kNow, /*unused=*/true});
  EXPECT_EQ(CountsOf(lendings), (UseCounts{.idle = 1}));
}

TEST(Lendings, ALateOrRepeatedReleaseFreesNothing) {
  Lendings lendings = WithHoldings({"10.1.0.5"});
  lendings.Apply(LendingReleased{kPodA, kNow});
  Lend(lendings, kPodB);
  lendings.Apply(LendingReleased{kPodA, kNow});
  EXPECT_EQ(CountsOf(lendings), (UseCounts{.lent = 1}));
}

TEST(Lendings, ALentAddressOutlivesItsListingAndThenGoes) {
  Lendings lendings = WithHoldings({"10.1.0.5"});
  Lend(lendings, kPodA);
  lendings.Apply(Holdings({}));
  EXPECT_THAT(lendings.Attached(), ElementsAre(A("10.1.0.5")));
  lendings.Apply(LendingReleased{kPodA, kNow});
  lendings.EndCooldowns(kNow + kCooldown);
  EXPECT_THAT(lendings.Attached(), IsEmpty());
}

TEST(Lendings, GenerationsRiseEvenWhenTheClockStandsOrTheJournalIsLost) {
  Lendings lendings = WithHoldings({"10.1.0.5", "10.1.0.6"});
  const uint64_t first = Lend(lendings, kPodA).generation;
  EXPECT_GT(Lend(lendings, kPodB).generation, first);
  Lendings forgetful = WithHoldings({"10.1.0.5"});
  EXPECT_GT(Lend(forgetful, kPodA, kNow + absl::Seconds(1)).generation, first + 1);
}

TEST(Lendings, WithNothingAttachedTheReasonSaysSo) {
  const Lendings lendings(kCooldown);
  const auto none = lendings.PlanLend({.key = kPodA}, kNow);
  EXPECT_EQ(none.status(), absl::ResourceExhaustedError("no address is attached to this node"));
}

ip::Prefix P(std::string_view text) { return ip::Prefix::Parse(text).value(); }

// What the agent does with a request to give `blocks` up.
WithdrawPlan Withdraw(Lendings& lendings, const std::vector<ip::Prefix>& blocks) {
  const WithdrawPlan plan = lendings.PlanWithdraw(blocks);
  if (!plan.withdraw.empty()) lendings.Apply(WithdrawnSet{plan.withdraw});
  return plan;
}

TEST(Lendings, WhatIsIdleIsGivenUpAndNeverLentAgain) {
  Lendings lendings = WithHoldings({"10.1.0.5", "10.1.0.6"});
  const auto plan = Withdraw(lendings, {P("10.1.0.5/32")});
  EXPECT_THAT(plan.agreed, ElementsAre(P("10.1.0.5/32")));
  EXPECT_THAT(plan.denied, IsEmpty());
  EXPECT_EQ(CountsOf(lendings), (UseCounts{.idle = 1, .withheld = 1}));
  EXPECT_THAT(Lend(lendings, kPodA).addresses, ElementsAre(A("10.1.0.6")));
  EXPECT_FALSE(lendings.PlanLend({.key = kPodB}, kNow).ok());
  // A list that still has it may have been sent before the agreement arrived.
  lendings.Apply(Holdings({"10.1.0.5", "10.1.0.6"}));
  EXPECT_FALSE(lendings.PlanLend({.key = kPodB}, kNow).ok());
}

TEST(Lendings, ARepeatedRequestIsAgreedToAgainAndWithdrawsNothing) {
  Lendings lendings = WithHoldings({"10.1.0.5"});
  const WithdrawPlan first = Withdraw(lendings, {P("10.1.0.5/32")});
  const WithdrawPlan second = Withdraw(lendings, {P("10.1.0.5/32")});
  EXPECT_EQ(second.agreed, first.agreed);
  EXPECT_THAT(second.withdraw, IsEmpty());
  lendings.Apply(Holdings({}));
  EXPECT_EQ(Withdraw(lendings, {P("10.1.0.5/32")}), second);
}

TEST(Lendings, ABlockIsGivenUpAsAWhole) {
  HoldingsReplaced listed;
  for (uint64_t i = 0; i < 16; ++i) {
    listed.holdings.push_back({ip::Advance(A("10.1.0.16"), i), "default"});
    listed.holdings.push_back({ip::Advance(A("fd00::10"), i), "six"});
  }
  Lendings lendings(kCooldown);
  lendings.Apply(listed);
  // One address of sixteen in each of the three uses that stand in the way.
  const ip::Prefix v4 = P("10.1.0.16/28");
  const ip::Prefix v6 = P("fd00::10/124");
  const WithdrawPlan denied{.denied = {v4, v6}};
  lendings.Apply(LendingBegun{lendings.PlanLend({.key = kPodA}, kNow).value()});
  EXPECT_EQ(Withdraw(lendings, {v4, v6}), denied);
  lendings.Apply(LendingBuilt{kPodA});
  EXPECT_EQ(Withdraw(lendings, {v4, v6}), denied);
  lendings.Apply(LendingReleased{kPodA, kNow});
  EXPECT_EQ(Withdraw(lendings, {v4, v6}), denied);
  lendings.EndCooldowns(kNow + kCooldown);
  const auto agreed = Withdraw(lendings, {v4, v6});
  EXPECT_THAT(agreed.agreed, ElementsAre(v4, v6));
  EXPECT_EQ(agreed.withdraw.size(), 32U);
  EXPECT_FALSE(lendings.PlanLend({.key = kPodA}, kNow).ok());
  EXPECT_EQ(CountsOf(lendings), (UseCounts{.withheld = 16}));
}

TEST(Lendings, AnAddressThatLeftTheListAndCameBackIsLentAgain) {
  Lendings lendings = WithHoldings({"10.1.0.5"});
  Withdraw(lendings, {P("10.1.0.5/32")});
  lendings.Apply(ConflictNoted{A("10.1.0.5"), std::nullopt});
  lendings.Apply(Holdings({}));
  lendings.Apply(Holdings({"10.1.0.5"}));
  EXPECT_TRUE(lendings.PlanLend({.key = kPodA}, kNow).ok());
}

TEST(Lendings, AnAddressInConflictStaysWithItsPodAndIsNotLentAgain) {
  Lendings lendings = WithHoldings({"10.1.0.5"});
  Lend(lendings, kPodA);
  lendings.Apply(ConflictNoted{A("10.1.0.5"), std::nullopt});
  EXPECT_NE(lendings.Find(kPodA), nullptr);
  lendings.Apply(LendingReleased{kPodA, kNow});
  lendings.EndCooldowns(kNow + kCooldown);
  EXPECT_FALSE(lendings.PlanLend({.key = kPodB}, kNow).ok());
  lendings.Apply(Holdings({"10.1.0.5"}));
  EXPECT_FALSE(lendings.PlanLend({.key = kPodB}, kNow).ok());
  EXPECT_EQ(lendings.Conflicts().size(), 1U);
}

TEST(Lendings, WhenAConflictIsOverTheAddressIsLentAgain) {
  Lendings lendings = WithHoldings({"10.1.0.5"});
  lendings.Apply(ConflictNoted{A("10.1.0.5"), std::nullopt});
  EXPECT_FALSE(lendings.PlanLend({.key = kPodA}, kNow).ok());
  lendings.Apply(ConflictOver{A("10.1.0.5")});
  lendings.Apply(ConflictOver{A("10.1.0.9")});
  EXPECT_TRUE(lendings.PlanLend({.key = kPodA}, kNow).ok());
  EXPECT_TRUE(lendings.Conflicts().empty());
}

TEST(Lendings, WhatTheNetworkIsAskedAboutIsLentLast) {
  Lendings lendings = WithHoldings({"10.1.0.5", "10.1.0.6"});
  lendings.SetUnasked({A("10.1.0.5")});
  EXPECT_EQ(lendings.PlanLend({.key = kPodA}, kNow)->addresses[0], A("10.1.0.6"));
  Lend(lendings, kPodA);
  EXPECT_EQ(lendings.PlanLend({.key = kPodB}, kNow)->addresses[0], A("10.1.0.5"));
  lendings.SetUnasked({});
  EXPECT_TRUE(lendings.PlanLend({.key = kPodB}, kNow).ok());
}

TEST(Lendings, OwnIsWhatNobodyElseMayHave) {
  Lendings lendings = WithHoldings({"10.1.0.5", "10.1.0.6", "10.1.0.7"});
  Lend(lendings, kPodA);
  Withdraw(lendings, {P("10.1.0.6/32")});
  lendings.Apply(Holdings({"10.1.0.6", "10.1.0.7"}));
  EXPECT_EQ(lendings.Own(), (std::vector{A("10.1.0.5"), A("10.1.0.7")}))
      << "the pod has it, listed or not";
  EXPECT_TRUE(lendings.IsLent(A("10.1.0.5")));
  EXPECT_FALSE(lendings.IsLent(A("10.1.0.7")));
  EXPECT_EQ(lendings.PoolOf(A("10.1.0.9")), "");
}

// One IPv4 pool for everybody, one for `web` and `batch`, and an IPv6 pool for `web` alone.
Lendings WithPools() {
  Lendings lendings(kCooldown);
  lendings.Apply(HoldingsReplaced{
      {{A("10.1.0.5"), "open"}, {A("10.2.0.5"), "teams"}, {A("fd00::5"), "six"}},
      {{"teams", "10.2.0.0/24", {"web", "batch"}}, {"six", "fd00::/64", {"web"}}}});
  return lendings;
}

TEST(Lendings, ThePodsNamespaceChoosesThePool) {
  struct Case {
    std::string pod_namespace;
    std::vector<ip::Address> want;
  };
  for (const Case& c : {Case{"web", {A("10.2.0.5"), A("fd00::5")}}, Case{"batch", {A("10.2.0.5")}},
                        Case{"else", {A("10.1.0.5")}}, Case{"", {A("10.1.0.5")}}}) {
    const auto lending =
        WithPools().PlanLend({.key = kPodA, .pod = {.pod_namespace = c.pod_namespace}}, kNow);
    ASSERT_TRUE(lending.ok()) << c.pod_namespace;
    EXPECT_EQ(lending->addresses, c.want) << c.pod_namespace;
  }
}

TEST(Lendings, APodWaitsForItsOwnPoolAndTakesNobodyElses) {
  Lendings lendings = WithPools();
  lendings.Apply(LendingBegun{
      lendings.PlanLend({.key = kPodA, .pod = {.pod_namespace = "batch"}}, kNow).value()});
  const auto second = lendings.PlanLend({.key = kPodB, .pod = {.pod_namespace = "batch"}}, kNow);
  EXPECT_EQ(second.status(),
            absl::ResourceExhaustedError("no IPv4 address is free on this node for namespace batch "
                                         "(considered: pool teams)"));
  // Nor while no address of it is here.
  lendings = Lendings(kCooldown);
  lendings.Apply(HoldingsReplaced{{{A("10.1.0.5"), "open"}}, {{"teams", "10.2.0.0/24", {"web"}}}});
  EXPECT_FALSE(lendings.PlanLend({.key = kPodA, .pod = {.pod_namespace = "web"}}, kNow).ok());
  EXPECT_TRUE(lendings.PlanLend({.key = kPodA, .pod = {.pod_namespace = "else"}}, kNow).ok());
}

TEST(Lendings, ANodeWithOnlyOtherNamespacesPoolsSaysSo) {
  Lendings lendings(kCooldown);
  lendings.Apply(HoldingsReplaced{{{A("10.2.0.5"), "teams"}}, {{"teams", "10.2.0.0/24", {"web"}}}});
  EXPECT_EQ(lendings.PlanLend({.key = kPodA, .pod = {.pod_namespace = "else"}}, kNow).status(),
            absl::PermissionDeniedError("no pool on this node is meant for namespace else"));
}

TEST(Lendings, WhatCoolsUnlistedIsNotLentAfterARestartUnlessListed) {
  Lendings lendings = WithHoldings({"10.1.0.5"});
  Lend(lendings, kPodA);
  lendings.Apply(LendingReleased{kPodA, kNow});
  lendings.Apply(Holdings({}));
  Lendings replayed(kCooldown);
  for (const Event& event : lendings.Snapshot()) replayed.Apply(event);
  EXPECT_THAT(replayed.Cooling(), ElementsAre(A("10.1.0.5")));
  replayed.EndCooldowns(kNow + kCooldown);
  EXPECT_THAT(replayed.Attached(), IsEmpty());
  EXPECT_FALSE(replayed.PlanLend({.key = kPodA}, kNow).ok());
}

// Does to `lendings` what server, runtime and clock may, and keeps the journal.
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
        if (const auto lending = lendings_.PlanLend({.key = key, .pod = RandomPod()}, now);
            lending.ok()) {
          for (const auto& address : lending->addresses) CheckMayBeLent(address, lending->pod);
          Do(LendingBegun{*lending});
          if (random_() % 4 != 0) Do(LendingBuilt{key});
        }
        break;
      case 4:
      case 5:
        Do(LendingReleased{key, now, random_() % 4 == 0});
        break;
      case 6: {
        const ip::Prefix block =
            *ip::Prefix::Of(RandomAddress(), 128 - 96 - static_cast<int>(random_() % 3));
        const WithdrawPlan plan = lendings_.PlanWithdraw({block});
        if (!plan.withdraw.empty()) Do(WithdrawnSet{plan.withdraw});
        ASSERT_THAT(lendings_.PlanWithdraw({block}).withdraw, IsEmpty());
        if (!plan.agreed.empty()) given_up_.insert(plan.withdraw.begin(), plan.withdraw.end());
        break;
      }
      case 7:
        if (random_() % 8 == 0) {
          Do(ConflictNoted{RandomAddress(), std::nullopt});
        } else if (const auto withdrawn = lendings_.Withdrawn(); !withdrawn.empty()) {
          const ip::Address anew = withdrawn[random_() % withdrawn.size()];
          Do(WithdrawnSet{{anew}, /*withdrawn=*/false});
          given_up_.erase(anew);
        }
        break;
      default:
        lendings_.EndCooldowns(now);
    }
  }

  const Lendings& lendings() const { return lendings_; }
  Lendings Replay() const {
    Lendings replayed(kCooldown);
    for (const Event& event : journal_) replayed.Apply(event);
    return replayed;
  }
  // As the agent does at its start.
  void Restart() {
    lendings_ = Replay();
    journal_ = lendings_.Snapshot();
  }

 private:
  void Do(const Event& event) {
    if (const auto* listed = std::get_if<HoldingsReplaced>(&event)) {
      std::set<ip::Address> now_listed;
      for (const Holding& holding : listed->holdings) now_listed.insert(holding.address);
      std::erase_if(given_up_, [&](const auto& address) { return !now_listed.contains(address); });
    }
    journal_.push_back(event);
    lendings_.Apply(event);
  }
  void CheckMayBeLent(const ip::Address& address, const PodReference& pod) const {
    ASSERT_FALSE(given_up_.contains(address)) << address.ToString();
    // 0..4 are for everybody, 5..9 for "web".
    ASSERT_EQ(address.low() >= 5, pod.pod_namespace == "web") << address.ToString();
  }
  ip::Address RandomAddress() { return ip::Address::V4(static_cast<uint32_t>(random_() % 10)); }
  PodReference RandomPod() { return {.pod_namespace = random_() % 2 == 0 ? "web" : "else"}; }
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
  Lendings lendings_{kCooldown};
  std::vector<Event> journal_;
  std::set<ip::Address> given_up_;  // Agreed, and not listed anew since.
};

void ExpectNothingLentTwice(const Lendings& lendings) {
  std::set<ip::Address> lent;
  for (const auto& list : {lendings.Built(), lendings.Unfinished()}) {
    for (const Lending& lending : list) {
      for (const auto& address : lending.addresses) ASSERT_TRUE(lent.insert(address).second);
    }
  }
  for (const ip::Address& address : lendings.Withdrawn()) {
    ASSERT_FALSE(lent.contains(address)) << "withdrawn and lent: " << address.ToString();
  }
}

void ExpectSame(const Lendings& a, const Lendings& b) {
  ASSERT_EQ(a.Built(), b.Built());
  ASSERT_EQ(a.Unfinished(), b.Unfinished());
  ASSERT_EQ(a.Cooling(), b.Cooling());
  ASSERT_EQ(a.Attached(), b.Attached());
  ASSERT_EQ(a.Withdrawn(), b.Withdrawn());
  ASSERT_EQ(a.Conflicts(), b.Conflicts());
  ASSERT_EQ(a.Rules(), b.Rules());
}

TEST(Lendings, WhateverHappensNothingIsLentTwiceOrAfterItWasGivenUpAndTheJournalIsTheState) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  RandomLife life(seed);
  std::mt19937 random(seed + 1);
  for (int step = 0; step < 10'000; ++step) {
    const absl::Time now = kNow + 5 * absl::Seconds(step);
    ASSERT_NO_FATAL_FAILURE(life.Step(now));
    ASSERT_NO_FATAL_FAILURE(ExpectNothingLentTwice(life.lendings()));
    Lendings compacted(kCooldown);
    for (const Event& event : life.lendings().Snapshot()) compacted.Apply(event);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(compacted, life.lendings()));
    // The end of a cooldown is no event: it is in what an event says of time.
    Lendings replayed = life.Replay();
    Lendings live = life.lendings();
    replayed.EndCooldowns(now);
    live.EndCooldowns(now);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(replayed, live));
    if (random() % 50 == 0) life.Restart();
  }
}

class LendingsWithProof : public testing::Test {
 protected:
  bool CanLend(const AttachmentKey& key = kPodB) const {
    return lendings_.PlanLend({.key = key}, kNow).ok();
  }

  Lendings lendings_{kCooldown, {.ipv4 = true}};
};

TEST_F(LendingsWithProof, AnAddressIsLentOnceItIsProven) {
  lendings_.Apply(Holdings({"10.1.0.5", "10.1.0.6"}));
  EXPECT_FALSE(CanLend());
  EXPECT_EQ(CountsOf(lendings_), (UseCounts{.unproven = 2}));
  EXPECT_THAT(lendings_.Unproven(), ElementsAre(A("10.1.0.5"), A("10.1.0.6")));
  lendings_.Apply(AddressesProven{{A("10.1.0.6")}});
  EXPECT_THAT(Lend(lendings_, kPodA).addresses, ElementsAre(A("10.1.0.6")));
  EXPECT_FALSE(CanLend());
  EXPECT_THAT(lendings_.Unproven(), ElementsAre(A("10.1.0.5")));
}

TEST_F(LendingsWithProof, WhatAPodHasHadNeedsNoProof) {
  lendings_.Apply(Holdings({"10.1.0.5"}));
  lendings_.Apply(LendingBegun{{.key = kPodA, .addresses = {A("10.1.0.5")}, .generation = 1}});
  lendings_.Apply(LendingBuilt{kPodA});
  EXPECT_THAT(lendings_.Unproven(), IsEmpty());
  lendings_.Apply(LendingReleased{kPodA, kNow});
  lendings_.EndCooldowns(kNow + kCooldown);
  EXPECT_TRUE(CanLend());
}

TEST_F(LendingsWithProof, AnAddressThatHasLeftAndComesBackIsProvenAnew) {
  lendings_.Apply(Holdings({"10.1.0.5"}));
  lendings_.Apply(AddressesProven{{A("10.1.0.5")}});
  lendings_.Apply(Holdings({}));
  lendings_.Apply(Holdings({"10.1.0.5"}));
  EXPECT_FALSE(CanLend());
  // Also when a pod held it in between.
  lendings_.Apply(AddressesProven{{A("10.1.0.5")}});
  Lend(lendings_, kPodA);
  lendings_.Apply(Holdings({}));
  lendings_.Apply(LendingReleased{kPodA, kNow});
  lendings_.Apply(Holdings({"10.1.0.5"}));
  lendings_.EndCooldowns(kNow + kCooldown);
  EXPECT_FALSE(CanLend());
}

TEST_F(LendingsWithProof, WhatIsWithdrawnIsNotProvenAndLaterProvenAnew) {
  lendings_.Apply(Holdings({"10.1.0.5"}));
  lendings_.Apply(AddressesProven{{A("10.1.0.5")}});
  lendings_.Apply(WithdrawnSet{{A("10.1.0.5")}});
  EXPECT_THAT(lendings_.Unproven(), IsEmpty());
  lendings_.Apply(AddressesProven{{A("10.1.0.5")}});  // Too late: it was on its way.
  lendings_.Apply(WithdrawnSet{{A("10.1.0.5")}, /*withdrawn=*/false});
  EXPECT_FALSE(CanLend());
  EXPECT_THAT(lendings_.Unproven(), ElementsAre(A("10.1.0.5")));
}

TEST_F(LendingsWithProof, OtherFamiliesAndOtherNodesNeedNone) {
  lendings_.Apply(Holdings({"fd00::5"}));
  EXPECT_TRUE(CanLend());
  EXPECT_THAT(lendings_.Unproven(), IsEmpty());
  const Lendings without = WithHoldings({"10.1.0.5"});
  EXPECT_THAT(without.Unproven(), IsEmpty());
}

TEST_F(LendingsWithProof, EachFamilyHasAProofOfItsOwn) {
  lendings_ = Lendings(kCooldown, {.ipv4 = true, .ipv6 = true});
  lendings_.Apply(Holdings({"10.1.0.5", "fd00::5", "fd00::6"}));
  lendings_.Apply(AddressesProven{{A("10.1.0.5")}});
  EXPECT_FALSE(CanLend()) << "a pod gets both families or none";
  EXPECT_THAT(lendings_.Unproven(), ElementsAre(A("fd00::5"), A("fd00::6")));
  lendings_.Apply(AddressesProven{{A("fd00::6")}});
  EXPECT_THAT(Lend(lendings_, kPodA).addresses, ElementsAre(A("10.1.0.5"), A("fd00::6")));
}

TEST_F(LendingsWithProof, ASnapshotKeepsWhatIsProven) {
  lendings_.Apply(Holdings({"10.1.0.5", "10.1.0.6", "10.1.0.7"}));
  lendings_.Apply(AddressesProven{{A("10.1.0.6"), A("10.9.9.9")}});
  Lendings replayed(kCooldown, {.ipv4 = true});
  for (const Event& event : lendings_.Snapshot()) replayed.Apply(event);
  EXPECT_EQ(replayed.Proven(), lendings_.Proven());
  EXPECT_THAT(replayed.Proven(), ElementsAre(A("10.1.0.6")));
  EXPECT_THAT(replayed.Unproven(), ElementsAre(A("10.1.0.5"), A("10.1.0.7")));
}

TEST(Lendings, WhatIsOnTheNodesOwnDeviceIsNotLentForAsLong) {
  Lendings lendings = WithHoldings({"10.1.0.5"});
  lendings.SetOnNic({A("10.1.0.4"), A("10.1.0.5")});
  EXPECT_EQ(lendings.PlanLend({.key = kPodA}, kNow).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CountsOf(lendings), (UseCounts{.on_nic = 1}));
  lendings.SetOnNic({A("10.1.0.4")});
  EXPECT_TRUE(lendings.PlanLend({.key = kPodA}, kNow).ok());
}

TEST(Lendings, WhatIsOnANicWithoutAWayOutIsPassedOverForAsLong) {
  const ip::MacAddress stuck = ip::MacAddress::Parse("00:0d:3a:00:00:02").value();
  Lendings lendings(kCooldown);
  lendings.Apply(HoldingsReplaced{{{A("10.1.0.5"), "default", stuck}, {A("10.1.0.6"), "default"}}});
  lendings.SetUnroutable({stuck});
  EXPECT_EQ(CountsOf(lendings), (UseCounts{.idle = 1, .withheld = 1}));
  EXPECT_THAT(lendings.PlanLend({.key = kPodA}, kNow)->addresses, ElementsAre(A("10.1.0.6")));
  EXPECT_EQ(lendings.PlanLend({.key = kPodA, .addresses = {A("10.1.0.5")}}, kNow).status().code(),
            absl::StatusCode::kResourceExhausted);
  lendings.SetUnroutable({});
  EXPECT_THAT(lendings.PlanLend({.key = kPodA}, kNow)->addresses, ElementsAre(A("10.1.0.5")));
}

TEST(Lendings, TheVersionOfTheAttachedRisesWheneverTheyChangeAndOnlyThen) {
  const std::vector<Holding> both = {{A("10.1.0.5"), "default"}, {A("10.1.0.6"), "default"}};
  struct Step {
    Event event;
    bool changes;
  };
  const Lending lending{.key = kPodA, .addresses = {A("10.1.0.5")}, .generation = 1};
  const Lending stray{.key = kPodB, .addresses = {A("10.1.0.9")}, .generation = 2};
  const std::vector<Step> steps = {
      {HoldingsReplaced{both}, true},
      {HoldingsReplaced{both}, false},
      {LendingBegun{lending}, false},
      {LendingBuilt{kPodA}, false},
      {HoldingsReplaced{{both[1]}}, false},  // What is lent stays.
      {HoldingsReplaced{}, true},
      {LendingReleased{kPodA, kNow, /*unused=*/true}, true},
      {LendingBegun{stray}, true},
      {LendingReleased{kPodB, kNow}, false},
      {CoolingSet{A("10.1.0.9"), kNow}, false},
      {CoolingSet{A("10.1.0.7"), kNow}, true},
      {HoldingsReplaced{{{A("10.1.0.8"), "default"}}}, true},
  };
  Lendings lendings(kCooldown);
  for (size_t i = 0; i < steps.size(); ++i) {
    SCOPED_TRACE(i);
    const std::vector<ip::Address> before = lendings.Attached();
    const uint64_t version = lendings.attached_version();
    lendings.Apply(steps[i].event);
    EXPECT_EQ(lendings.Attached() != before, steps[i].changes);
    EXPECT_EQ(lendings.attached_version() != version, steps[i].changes);
  }
  const uint64_t version = lendings.attached_version();
  EXPECT_THAT(lendings.EndCooldowns(kNow), ElementsAre(A("10.1.0.7"), A("10.1.0.9")));
  EXPECT_NE(lendings.attached_version(), version) << "they were not listed, and are gone";
}

TEST(Lendings, NoCooldownEndsLateWhateverEndsOrMovesAnother) {
  Lendings lendings = WithHoldings({"10.1.0.5", "10.1.0.6", "10.1.0.7"});
  const auto at = [](int seconds) { return kNow + absl::Seconds(seconds); };
  lendings.Apply(CoolingSet{A("10.1.0.6"), at(20)});
  lendings.Apply(CoolingSet{A("10.1.0.5"), at(10)});
  lendings.Apply(CoolingSet{A("10.1.0.7"), at(30)});
  EXPECT_EQ(lendings.NextCooldownEnd(), at(10));
  // The first is lent after all (an adopted link has it): nothing ends then, and the next is known.
  lendings.Apply(LendingBegun{{.key = kPodA, .addresses = {A("10.1.0.5")}, .generation = 1}});
  EXPECT_THAT(lendings.EndCooldowns(at(10)), ElementsAre());
  EXPECT_EQ(lendings.NextCooldownEnd(), at(20));
  // One that is put off, and one that is brought forward.
  lendings.Apply(CoolingSet{A("10.1.0.6"), at(40)});
  EXPECT_THAT(lendings.EndCooldowns(at(20)), ElementsAre());
  EXPECT_EQ(lendings.NextCooldownEnd(), at(30));
  lendings.Apply(CoolingSet{A("10.1.0.6"), at(25)});
  EXPECT_THAT(lendings.EndCooldowns(at(25)), ElementsAre(A("10.1.0.6")));
  EXPECT_THAT(lendings.EndCooldowns(at(30)), ElementsAre(A("10.1.0.7")));
  EXPECT_EQ(lendings.NextCooldownEnd(), std::nullopt);
}

}  // namespace
}  // namespace spoke::netagent
