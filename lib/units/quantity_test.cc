#include "lib/units/quantity.h"

#include <concepts>
#include <type_traits>

#include "gtest/gtest.h"

namespace spoke::units {
namespace {

template <typename A, typename B>
concept Adds = requires(A a, B b) {
  a + b;
};
template <typename A, typename B>
concept Compares = requires(A a, B b) {
  a < b;
};
template <typename A, typename B>
concept Equates = requires(A a, B b) {
  a == b;
};

template <typename A, typename B>
constexpr bool kMixes =
    Adds<A, B> || Compares<A, B> || Equates<A, B> || std::is_convertible_v<A, B> ||
    std::is_constructible_v<A, B> || std::is_assignable_v<A&, B>;

static_assert(Adds<BitRate, BitRate> && Compares<BitRate, BitRate> && Equates<BitRate, BitRate>);
static_assert(!kMixes<BitRate, ByteRate> && !kMixes<ByteRate, BitRate>);
static_assert(!kMixes<ByteCount, ByteRate> && !kMixes<ByteRate, ByteCount>);
static_assert(!kMixes<ByteCount, BitRate> && !kMixes<BitRate, ByteCount>);
// A bare number says no unit: it goes in and out by name alone.
static_assert(!std::is_convertible_v<uint64_t, BitRate> &&
              !std::is_convertible_v<BitRate, uint64_t>);
static_assert(!Adds<BitRate, uint64_t> && !Compares<BitRate, uint64_t>);
static_assert(sizeof(BitRate) == sizeof(uint64_t) && std::is_trivially_copyable_v<BitRate>);

TEST(Quantity, CountsAndCompares) {
  constexpr BitRate kOne(1);
  EXPECT_TRUE(BitRate().is_zero());
  EXPECT_EQ((kOne + BitRate(2)).count(), 3);
  EXPECT_EQ((BitRate(5) - BitRate(2)).count(), 3);
  EXPECT_LT(kOne, BitRate(2));
}

}  // namespace
}  // namespace spoke::units
