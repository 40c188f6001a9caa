#include "ipam-server/pools/address_pool.h"

#include <map>
#include <set>

#include "gtest/gtest.h"
#include "ipam-server/ledger/node_record.h"
#include "tests/support/random_seed.h"

namespace spoke::ipam {
namespace {

using State = AddressPool::State;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
const NodeRecord kNode;

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }
ip::Prefix One(std::string_view text) { return ip::Prefix::Host(A(text)); }
ip::Prefix Block(std::string_view text) { return ip::Prefix::Parse(text).value(); }

PoolSpec Spec(std::string_view cidr, uint32_t block_length = 0) {
  return {.name = "default", .cidr = ip::Prefix::Parse(cidr).value(), .block_length = block_length};
}

TEST(AddressPool, HandsOutEveryUsableAddressOnceAndThenSaysWhy) {
  AddressPool pool(Spec("10.1.0.0/29"));
  EXPECT_EQ(pool.usable(), 3U);
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("10.1.0.4"));
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("10.1.0.5"));
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("10.1.0.6"));
  const auto none = pool.Take(&kNode, kNow);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(none.status().message(),
            "pool default (10.1.0.0/29): 3 usable, 3 attached, 0 in cooldown, 0 free");
  EXPECT_EQ(pool.OwnerOf(A("10.1.0.5")), &kNode);
}

TEST(AddressPool, AReleasedAddressIsInCooldownAndTheLongestReleasedComesFirst) {
  AddressPool pool(Spec("10.1.0.0/29"));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.Take(&kNode, kNow).ok());
  EXPECT_TRUE(pool.Release(One("10.1.0.5"), kNow + absl::Seconds(30)));
  EXPECT_TRUE(pool.Release(One("10.1.0.4"), kNow + absl::Seconds(31)));
  EXPECT_EQ(pool.cooldown(), 2U);
  EXPECT_EQ(pool.StateOf(A("10.1.0.4")), State::kCooldown);
  EXPECT_FALSE(pool.Take(&kNode, kNow + absl::Seconds(29)).ok());
  EXPECT_EQ(*pool.Take(&kNode, kNow + absl::Seconds(30)), One("10.1.0.5"));
  EXPECT_FALSE(pool.Take(&kNode, kNow + absl::Seconds(30)).ok());
  EXPECT_EQ(*pool.Take(&kNode, kNow + absl::Seconds(31)), One("10.1.0.4"));
  EXPECT_EQ(pool.cooldown(), 0U);
}

TEST(AddressPool, WhatWasNeverUsedComesBeforeWhatWas) {
  AddressPool pool(Spec("10.1.0.0/29"));
  ASSERT_TRUE(pool.Take(&kNode, kNow).ok());
  EXPECT_TRUE(pool.Release(One("10.1.0.4"), kNow));
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("10.1.0.5"));
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("10.1.0.6"));
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("10.1.0.4"));
}

TEST(AddressPool, AnExcludedOrForeignAddressIsNeverHeld) {
  AddressPool pool(Spec("10.1.0.0/29"));
  for (const char* text : {"10.1.0.0", "10.1.0.3", "10.1.0.7", "10.1.0.8", "fd00::4"}) {
    EXPECT_FALSE(pool.Hold(One(text), &kNode)) << text;
    EXPECT_FALSE(pool.Release(One(text), kNow)) << text;
    EXPECT_EQ(pool.StateOf(A(text)), State::kExcluded) << text;
  }
  EXPECT_FALSE(pool.Hold(Block("10.1.0.4/31"), &kNode));  // It is no unit of this pool.
}

TEST(AddressPool, BlocksAreWholeAndKeepOffTheEnds) {
  AddressPool pool(Spec("10.1.0.0/26", 28));
  EXPECT_EQ(pool.usable(), 32U);  // The first and the last block hold excluded addresses.
  EXPECT_EQ(*pool.Take(&kNode, kNow), Block("10.1.0.16/28"));
  EXPECT_EQ(*pool.Take(&kNode, kNow), Block("10.1.0.32/28"));
  EXPECT_FALSE(pool.Take(&kNode, kNow).ok());
  EXPECT_EQ(pool.UnitOf(A("10.1.0.21")), Block("10.1.0.16/28"));
  EXPECT_EQ(pool.OwnerOf(A("10.1.0.21")), &kNode);
  EXPECT_FALSE(pool.Release(One("10.1.0.16"), kNow));
  EXPECT_TRUE(pool.Release(Block("10.1.0.16/28"), kNow));
  EXPECT_EQ(pool.free(), 0U);  // It is in cooldown, if only until now.
  pool.EndCooldowns(kNow);
  EXPECT_EQ(pool.free(), 16U);
}

TEST(AddressPool, AQuarantinedAddressIsUnusableUntilThatIsLifted) {
  AddressPool pool(Spec("10.1.0.0/29"));
  EXPECT_TRUE(pool.SetQuarantined(One("10.1.0.4"), true));
  EXPECT_FALSE(pool.SetQuarantined(One("10.1.0.4"), true));
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("10.1.0.5"));
  EXPECT_TRUE(pool.SetQuarantined(One("10.1.0.5"), true));  // It is held, and stays held for now.
  EXPECT_EQ(pool.quarantined(), 1U);
  EXPECT_TRUE(pool.Release(One("10.1.0.5"), kNow));
  EXPECT_EQ(pool.quarantined(), 2U);
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("10.1.0.6"));
  EXPECT_FALSE(pool.Take(&kNode, kNow).ok());
  EXPECT_TRUE(pool.SetQuarantined(One("10.1.0.4"), false));
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("10.1.0.4"));
}

// It is lifted sooner than the cooldown is over that began before it, in it, or was stored.
TEST(AddressPool, AQuarantineEndsNoCooldown) {
  AddressPool pool(Spec("10.1.0.0/29"));  // 10.1.0.4 to 10.1.0.6
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.Take(&kNode, kNow).ok());
  EXPECT_TRUE(pool.Release(One("10.1.0.4"), kNow + absl::Seconds(30)));
  EXPECT_TRUE(pool.SetQuarantined(One("10.1.0.4"), true));
  EXPECT_TRUE(pool.SetQuarantined(One("10.1.0.5"), true));
  EXPECT_TRUE(pool.Release(One("10.1.0.5"), kNow + absl::Seconds(31)));
  EXPECT_TRUE(pool.Release(One("10.1.0.6"), kNow + absl::Seconds(32)));
  EXPECT_TRUE(pool.SetQuarantined(One("10.1.0.5"), false));
  EXPECT_TRUE(pool.SetQuarantined(One("10.1.0.4"), false));
  EXPECT_EQ(pool.cooldown(), 3U);
  EXPECT_FALSE(pool.Take(&kNode, kNow + absl::Seconds(29)).ok());
  EXPECT_EQ(*pool.Take(&kNode, kNow + absl::Seconds(30)), One("10.1.0.4"));
  EXPECT_EQ(*pool.Take(&kNode, kNow + absl::Seconds(31)), One("10.1.0.5"));
  EXPECT_FALSE(pool.Take(&kNode, kNow + absl::Seconds(31)).ok());
  EXPECT_EQ(*pool.Take(&kNode, kNow + absl::Seconds(32)), One("10.1.0.6"));

  AddressPool restored(Spec("10.1.0.0/29"));
  EXPECT_TRUE(restored.SetQuarantined(One("10.1.0.4"), true));
  EXPECT_FALSE(restored.Cool(One("10.1.0.4"), kNow + absl::Seconds(30)));
  EXPECT_TRUE(restored.SetQuarantined(One("10.1.0.4"), false));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(restored.Take(&kNode, kNow).ok());
  EXPECT_FALSE(restored.Take(&kNode, kNow + absl::Seconds(29)).ok());
  EXPECT_EQ(*restored.Take(&kNode, kNow + absl::Seconds(30)), One("10.1.0.4"));
}

TEST(AddressPool, AnAddressAnAgentProvesItHasIsHeldEvenInCooldown) {
  AddressPool pool(Spec("10.1.0.0/29"));
  EXPECT_TRUE(pool.Cool(One("10.1.0.4"), kNow + absl::Seconds(30)));
  EXPECT_TRUE(pool.Hold(One("10.1.0.4"), &kNode));
  EXPECT_FALSE(pool.Hold(One("10.1.0.4"), &kNode));
  EXPECT_FALSE(pool.Cool(One("10.1.0.4"), kNow));
  EXPECT_EQ(pool.cooldown(), 0U);
  pool.EndCooldowns(kNow + absl::Hours(1));
  EXPECT_EQ(pool.OwnerOf(A("10.1.0.4")), &kNode);
}

TEST(AddressPool, AnIpv6SubnetCostsNoMoreThanItsUse) {
  AddressPool pool(Spec("fd00::/64"));
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("fd00::4"));
  EXPECT_GT(pool.free(), uint64_t{1} << 60U);
  AddressPool wide(Spec("fd00::/48"));
  EXPECT_EQ(*wide.Take(&kNode, kNow), One("fd00::4"));
  EXPECT_EQ(wide.StateOf(A("fd00:0:0:1::4")), State::kExcluded);
}

TEST(AddressPool, ASubnetSmallerThanItsReserveIsEmptyNotNegative) {
  AddressPool pool(Spec("10.1.0.0/30"));
  EXPECT_EQ(pool.usable(), 0U);
  EXPECT_FALSE(pool.Take(&kNode, kNow).ok());
}

// A plain model of the same promises: the pool and it must agree after every step.
TEST(AddressPool, NoRandomUseHandsOutWhatIsHeldInCooldownOrQuarantined) {
  testing_support::Random random;
  AddressPool pool(Spec("10.1.0.0/26"));
  std::set<ip::Prefix> held;
  std::set<ip::Prefix> quarantined;
  std::map<ip::Prefix, absl::Time> cooldown;
  absl::Time now = kNow;
  for (int step = 0; step < testing_support::kRandomCases; ++step) {
    const ip::Prefix any = ip::Prefix::Host(ip::Advance(A("10.1.0.0"), random.Between(0, 63)));
    const bool usable = pool.Owns(any);
    now += absl::Seconds(1);
    std::erase_if(cooldown, [&](const auto& entry) { return entry.second <= now; });
    switch (random.Between(0, 4)) {
      case 0: {
        const auto taken = pool.Take(&kNode, now);
        if (!taken.ok()) break;
        ASSERT_TRUE(held.insert(*taken).second) << taken->ToString();
        ASSERT_FALSE(cooldown.contains(*taken) || quarantined.contains(*taken));
        break;
      }
      case 1:
        ASSERT_EQ(pool.Hold(any, &kNode), usable && held.insert(any).second);
        if (usable) cooldown.erase(any);
        break;
      case 2: {
        const bool released = pool.Release(any, now + absl::Seconds(30));
        ASSERT_EQ(released, held.erase(any) == 1) << any.ToString();
        if (released) cooldown[any] = now + absl::Seconds(30);
        break;
      }
      default: {
        const bool on = random.OneIn(2);
        const bool is = quarantined.contains(any);
        ASSERT_EQ(pool.SetQuarantined(any, on), usable && on != is);
        if (!usable) break;
        if (on) {
          quarantined.insert(any);
        } else {
          quarantined.erase(any);
        }
      }
    }
    ASSERT_EQ(pool.held(), held.size());
    ASSERT_LE(pool.held() + pool.cooldown() + pool.quarantined(), pool.usable());
  }
}

// --- Another specification. ---

TEST(AddressPool, APoolThatGrowsKeepsAllAndGoesOnWhereItWas) {
  AddressPool pool(Spec("10.1.0.0/29"));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.Take(&kNode, kNow).ok());
  const PoolSpec larger = Spec("10.1.0.0/28");
  EXPECT_EQ(pool.InUseOutside(&larger), std::nullopt);
  pool.Respecify(larger);
  EXPECT_EQ(pool.usable(), 11U);
  EXPECT_EQ(pool.held(), 3U);
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("10.1.0.7"));
  PoolSpec earlier = larger;
  earlier.reserve_first = 1;
  pool.Respecify(earlier);
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("10.1.0.1"));
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("10.1.0.2"));
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("10.1.0.3"));
  EXPECT_EQ(*pool.Take(&kNode, kNow), One("10.1.0.8"));
}

TEST(AddressPool, WhatIsInUseOutsideIsNamedWhateverItsUse) {
  AddressPool pool(Spec("10.1.0.0/28"));
  const PoolSpec smaller = Spec("10.1.0.0/29");
  const PoolSpec elsewhere = Spec("10.2.0.0/28");
  EXPECT_EQ(pool.InUseOutside(nullptr), std::nullopt);
  EXPECT_EQ(pool.InUseOutside(&elsewhere), std::nullopt);
  EXPECT_EQ(pool.Used().addresses, 0U);
  ASSERT_TRUE(pool.Hold(One("10.1.0.5"), &kNode));
  ASSERT_TRUE(pool.SetQuarantined(One("10.1.0.12"), true));
  ASSERT_TRUE(pool.Cool(One("10.1.0.9"), kNow));
  EXPECT_EQ(pool.InUseOutside(&smaller), One("10.1.0.9"));
  EXPECT_EQ(pool.InUseOutside(&elsewhere), One("10.1.0.5"));
  EXPECT_EQ(pool.InUseOutside(nullptr), One("10.1.0.5"));
  EXPECT_EQ(pool.Used().addresses, 3U);
  EXPECT_EQ(pool.Used().lowest, A("10.1.0.5"));
  EXPECT_EQ(pool.Used().highest, A("10.1.0.12"));
  pool.EndCooldowns(kNow);
  EXPECT_EQ(pool.InUseOutside(&smaller), One("10.1.0.12"));
  ASSERT_TRUE(pool.SetQuarantined(One("10.1.0.12"), false));
  pool.EndCooldowns(kNow);
  EXPECT_EQ(pool.InUseOutside(&smaller), std::nullopt);
  const PoolSpec blocks = Spec("10.1.0.0/24", 28);
  EXPECT_EQ(pool.InUseOutside(&blocks), One("10.1.0.5")) << "it is no block";
}

// Whatever a pool becomes, an address is in the state that it was in, and each can be taken once.
TEST(AddressPool, AnotherSpecificationChangesNoAddressThatBothHave) {
  testing_support::Random random;
  const std::vector<PoolSpec> specs = {Spec("10.1.0.0/27"), Spec("10.1.0.0/26"),
                                       Spec("10.1.0.0/25"), Spec("10.1.0.32/27")};
  for (int round = 0; round < 2'000; ++round) {
    PoolSpec spec = specs[random.Between(0, specs.size() - 1)];
    AddressPool pool(spec);
    absl::Time now = kNow;
    for (int step = 0; step < 12; ++step) {
      now += absl::Seconds(1);
      const ip::Prefix any = ip::Prefix::Host(ip::Advance(A("10.1.0.0"), random.Between(0, 127)));
      switch (random.Between(0, 5)) {
        case 0:
        case 1:
          (void)pool.Take(&kNode, now);
          break;
        case 2:
          pool.Release(any, now + absl::Seconds(3));
          break;
        case 3:
          pool.SetQuarantined(any, random.OneIn(2));
          break;
        case 4:
          pool.EndCooldowns(now);
          break;
        default: {
          PoolSpec next = specs[random.Between(0, specs.size() - 1)];
          next.reserve_first = static_cast<uint32_t>(random.Between(0, 7));
          if (pool.InUseOutside(&next)) break;
          const AddressPool before = pool;
          pool.Respecify(next);
          ASSERT_EQ(pool.spec(), next);
          for (uint64_t i = 0; i < 128; ++i) {
            const ip::Address address = ip::Advance(A("10.1.0.0"), i);
            const State was = before.StateOf(address);
            const State is = pool.StateOf(address);
            if (!pool.UnitOf(address)) {
              ASSERT_EQ(is, State::kExcluded);
            } else {
              ASSERT_EQ(is, was == State::kExcluded ? State::kFree : was) << address.ToString();
            }
          }
          ASSERT_EQ(pool.held(), before.held());
          ASSERT_EQ(pool.cooldown(), before.cooldown());
          ASSERT_EQ(pool.quarantined(), before.quarantined());
        }
      }
    }
    // All that is free can be had, and nothing else.
    const uint64_t held = pool.held();
    const uint64_t free = pool.free() + pool.cooldown();
    std::set<ip::Prefix> taken;
    for (auto unit = pool.Take(&kNode, absl::InfiniteFuture()); unit.ok();
         unit = pool.Take(&kNode, absl::InfiniteFuture())) {
      ASSERT_TRUE(taken.insert(*unit).second);
      ASSERT_TRUE(pool.Owns(*unit));
    }
    ASSERT_EQ(taken.size(), free);
    ASSERT_EQ(pool.held(), held + free);
    ASSERT_EQ(pool.free(), 0U);
  }
}

TEST(AddressPool, WhatIsFreeCanBeMadeToRest) {
  AddressPool pool({.name = "p", .cidr = ip::Prefix::Parse("10.1.0.0/29").value()});
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  const absl::Time until = now + absl::Seconds(30);
  const auto held = pool.Take(&kNode, now);
  ASSERT_TRUE(held.ok());
  const uint64_t free = pool.free();
  pool.RestFree(until);
  EXPECT_EQ(pool.free(), 0U);
  EXPECT_EQ(pool.cooldown(), free);
  EXPECT_EQ(pool.held(), 1U);
  EXPECT_EQ(pool.Take(&kNode, until - absl::Milliseconds(1)).status().code(),
            absl::StatusCode::kResourceExhausted);
  const ip::Address other = ip::Advance(held->base(), 1);
  EXPECT_EQ(pool.StateOf(other), State::kCooldown);
  EXPECT_EQ(pool.UsableFrom(other), until);
  EXPECT_EQ(pool.StateOf(held->base()), State::kHeld);
  // What nodes say they have is held all the same.
  EXPECT_TRUE(pool.Hold(ip::Prefix::Host(other), &kNode));
  pool.EndCooldowns(until - absl::Milliseconds(1));
  EXPECT_EQ(pool.free(), 0U);
  pool.EndCooldowns(until);
  EXPECT_EQ(pool.free(), free - 1);
  EXPECT_EQ(pool.cooldown(), 0U);
  EXPECT_TRUE(pool.Take(&kNode, until).ok());
}

TEST(AddressPool, ARestEndsByItsTimeWhenSomethingIsTaken) {
  AddressPool pool({.name = "p", .cidr = ip::Prefix::Parse("10.1.0.0/29").value()});
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  pool.RestFree(now + absl::Seconds(30));
  EXPECT_FALSE(pool.Take(&kNode, now).ok());
  EXPECT_TRUE(pool.Take(&kNode, now + absl::Seconds(30)).ok());
  EXPECT_GT(pool.free(), 0U);
}

}  // namespace
}  // namespace spoke::ipam
