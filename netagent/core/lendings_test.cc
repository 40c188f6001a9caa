#include "netagent/core/lendings.h"

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
  const Lending lending = lendings.PlanLend(key, {}, now).value();
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
  EXPECT_EQ(lendings.PlanLend(kPodB, {}, kNow).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(Lendings, ASecondAddForOneAttachmentIsRefusedAndChangesNothing) {
  Lendings lendings = WithHoldings({"10.1.0.5", "10.1.0.6"});
  const Lending first = Lend(lendings, kPodA);
  EXPECT_EQ(lendings.PlanLend(kPodA, {}, kNow).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*lendings.Find(kPodA), first);
  EXPECT_TRUE(lendings.PlanLend({"aaa", "eth1"}, {}, kNow).ok());
}

TEST(Lendings, AReleasedAddressCoolsBeforeItIsLentAgain) {
  Lendings lendings = WithHoldings({"10.1.0.5"});
  Lend(lendings, kPodA);
  lendings.Apply(LendingReleased{kPodA, kNow});
  EXPECT_EQ(CountsOf(lendings), (UseCounts{.cooling = 1}));
  EXPECT_FALSE(lendings.PlanLend(kPodB, {}, kNow).ok());
  EXPECT_EQ(lendings.NextCooldownEnd(), kNow + kCooldown);
  EXPECT_THAT(lendings.EndCooldowns(kNow + kCooldown - absl::Milliseconds(1)), IsEmpty());
  EXPECT_THAT(lendings.EndCooldowns(kNow + kCooldown), ElementsAre(A("10.1.0.5")));
  EXPECT_EQ(lendings.NextCooldownEnd(), std::nullopt);
  EXPECT_TRUE(lendings.PlanLend(kPodB, {}, kNow).ok());
}

TEST(Lendings, AnAddressNoPodEverHadIsIdleAtOnce) {
  Lendings lendings = WithHoldings({"10.1.0.5"});
  lendings.Apply(LendingBegun{lendings.PlanLend(kPodA, {}, kNow).value()});
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
  const auto none = lendings.PlanLend(kPodA, {}, kNow);
  EXPECT_EQ(none.status(), absl::ResourceExhaustedError("no address is attached to this node"));
}

TEST(Lendings, AReplayOfTheSnapshotGivesTheSameStateWhateverHappened) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Lendings lendings(kCooldown);
  for (int step = 0; step < 3000; ++step) {
    const AttachmentKey key{std::string(1, static_cast<char>('a' + random() % 8)), "eth0"};
    const absl::Time now = kNow + absl::Seconds(step);
    switch (random() % 5) {
      case 0: {
        HoldingsReplaced listed;
        for (uint32_t i = 0; i < 10; ++i) {
          if (random() % 4 != 0) listed.holdings.push_back({ip::Address::V4(i), "default"});
        }
        lendings.Apply(listed);
        break;
      }
      case 1:
      case 2:
        if (const auto lending = lendings.PlanLend(key, {}, now); lending.ok()) {
          lendings.Apply(LendingBegun{*lending});
          if (random() % 4 != 0) lendings.Apply(LendingBuilt{key});
        }
        break;
      case 3:
        lendings.Apply(LendingReleased{key, now, random() % 4 == 0});
        break;
      default:
        lendings.EndCooldowns(now);
    }
    std::set<ip::Address> lent;
    for (const auto& list : {lendings.Built(), lendings.Unfinished()}) {
      for (const Lending& lending : list) {
        for (const auto& address : lending.addresses) ASSERT_TRUE(lent.insert(address).second);
      }
    }
    Lendings replayed(kCooldown);
    for (const Event& event : lendings.Snapshot()) replayed.Apply(event);
    ASSERT_EQ(replayed.Built(), lendings.Built());
    ASSERT_EQ(replayed.Unfinished(), lendings.Unfinished());
    ASSERT_EQ(replayed.Cooling(), lendings.Cooling());
    ASSERT_EQ(replayed.Attached(), lendings.Attached());
  }
}

}  // namespace
}  // namespace spoke::netagent
