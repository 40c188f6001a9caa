#include "lib/base/fnv1a.h"

#include "gtest/gtest.h"

namespace spoke::base {
namespace {

// These are from the test vectors of draft-eastlake-fnv.
static_assert(Fnv1a("") == 0xCBF29CE484222325ULL);
static_assert(Fnv1a("a") == 0xAF63DC4C8601EC8CULL);
static_assert(Fnv1a("foobar") == 0x85944171F73967E8ULL);

TEST(Fnv1a, PartsOneAfterTheOtherHashAsTheWhole) {
  EXPECT_EQ(Fnv1a("bar", Fnv1a("foo")), Fnv1a("foobar"));
  EXPECT_NE(Fnv1a("foo", Fnv1a("bar")), Fnv1a("foobar"));
}

TEST(Fnv1a, EveryByteCountsAlsoZeroAndThoseBeyondAscii) {
  EXPECT_NE(Fnv1a(std::string_view("a\0", 2)), Fnv1a("a"));
  // 0xFF is not sign-extended.
  EXPECT_EQ(Fnv1a("\xFF"), (kFnv1aBasis ^ 0xFFU) * 0x100000001B3ULL);
}

}  // namespace
}  // namespace spoke::base
