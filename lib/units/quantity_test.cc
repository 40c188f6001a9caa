#include "lib/units/quantity.h"

#include <concepts>
#include <limits>
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
static_assert(!kMixes<FractionalBitRate, BitRate> && !kMixes<BitRate, FractionalBitRate>);
static_assert(!kMixes<BitCount, BitRate> && !kMixes<BitCount, ByteCount>);
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

TEST(Quantity, HasMultiplesAndParts) {
  EXPECT_EQ(3 * BitRate(5), BitRate(15));
  EXPECT_EQ(ByteCount(17) / 4, ByteCount(4));
  EXPECT_EQ(ByteCount(17) / ByteCount(4), 4U);
}

TEST(Quantity, BitsAndBytesAreConvertedByName) {
  EXPECT_EQ(ToBytes(BitRate(17)), ByteRate(2));
  EXPECT_EQ(ToBytes(BitCount(16)), ByteCount(2));
  EXPECT_EQ(ToBits(ByteRate(2)), BitRate(16));
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(ToBits(ByteRate(kMost / 8)), BitRate(kMost - 7));
  EXPECT_EQ(ToBits(ByteRate(kMost / 8 + 1)), BitRate(kMost));
}

}  // namespace
}  // namespace spoke::units
