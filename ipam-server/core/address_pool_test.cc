#include "ipam-server/core/address_pool.h"

#include <random>
#include <set>

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

PoolSpec Spec(std::string_view cidr, uint32_t first = 4, uint32_t last = 1) {
  return {.name = "default",
          .cidr = ip::Prefix::Parse(cidr).value(),
          .reserve_first = first,
          .reserve_last = last};
}

TEST(AddressPool, HandsOutEveryUsableAddressOnceAndThenSaysWhy) {
  AddressPool pool(Spec("10.1.0.0/29"));
  EXPECT_EQ(pool.usable(), 3U);
  EXPECT_EQ(*pool.Take(), A("10.1.0.4"));
  EXPECT_EQ(*pool.Take(), A("10.1.0.5"));
  EXPECT_EQ(*pool.Take(), A("10.1.0.6"));
  const auto none = pool.Take();
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(none.status().message(), "pool default (10.1.0.0/29): 3 usable, 3 attached, 0 free");
}

TEST(AddressPool, TheLongestUnusedComesFirst) {
  AddressPool pool(Spec("10.1.0.0/29"));
  const auto first = *pool.Take();
  const auto second = *pool.Take();
  EXPECT_TRUE(pool.Return(second));
  EXPECT_TRUE(pool.Return(first));
  EXPECT_EQ(*pool.Take(), A("10.1.0.6"));
  EXPECT_EQ(*pool.Take(), second);
  EXPECT_EQ(*pool.Take(), first);
}

TEST(AddressPool, AReservedOrForeignAddressIsNeverHeld) {
  AddressPool pool(Spec("10.1.0.0/29"));
  for (const char* text : {"10.1.0.0", "10.1.0.3", "10.1.0.7", "10.1.0.8", "fd00::4"}) {
    EXPECT_FALSE(pool.Owns(A(text))) << text;
    EXPECT_FALSE(pool.Hold(A(text))) << text;
    EXPECT_FALSE(pool.Return(A(text))) << text;
  }
}

TEST(AddressPool, AHeldAddressIsNotTakenAndASecondReturnChangesNothing) {
  AddressPool pool(Spec("10.1.0.0/29"));
  EXPECT_TRUE(pool.Hold(A("10.1.0.5")));
  EXPECT_FALSE(pool.Hold(A("10.1.0.5")));
  EXPECT_TRUE(pool.Return(A("10.1.0.5")));
  EXPECT_FALSE(pool.Return(A("10.1.0.5")));
  EXPECT_EQ(pool.free(), 3U);
  std::set<ip::Address> taken;
  while (pool.free() > 0) EXPECT_TRUE(taken.insert(*pool.Take()).second);
  EXPECT_EQ(taken.size(), 3U);
}

TEST(AddressPool, AnIpv6SubnetCostsNoMoreThanItsUse) {
  AddressPool pool(Spec("fd00::/64"));
  EXPECT_EQ(*pool.Take(), A("fd00::4"));
  EXPECT_GT(pool.free(), uint64_t{1} << 60U);
}

TEST(AddressPool, ASubnetSmallerThanItsReserveIsEmptyNotNegative) {
  AddressPool pool(Spec("10.1.0.0/30"));
  EXPECT_EQ(pool.usable(), 0U);
  EXPECT_FALSE(pool.Take().ok());
}

TEST(AddressPool, RandomUseNeverHandsOutAHeldAddress) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  AddressPool pool(Spec("10.1.0.0/26"));
  std::set<ip::Address> held;
  for (int step = 0; step < 20'000; ++step) {
    const ip::Address any = ip::Advance(A("10.1.0.0"), random() % 64);
    switch (random() % 3) {
      case 0: {
        const auto taken = pool.Take();
        ASSERT_EQ(taken.ok(), held.size() < pool.usable());
        if (taken.ok()) {
          ASSERT_TRUE(pool.Owns(*taken));
          ASSERT_TRUE(held.insert(*taken).second) << taken->ToString();
        }
        break;
      }
      case 1:
        ASSERT_EQ(pool.Hold(any), pool.Owns(any) && held.insert(any).second);
        break;
      default:
        ASSERT_EQ(pool.Return(any), held.erase(any) == 1);
    }
    ASSERT_EQ(pool.held(), held.size());
  }
}

}  // namespace
}  // namespace spoke::ipam
