#include "admin-cli/dashboard/present_rates.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr int64_t kStart = 1'700'000'000'000;

TEST(PresentRatesTest, AreOfTenSecondsOrMore) {
  PresentRates rates;
  EXPECT_THAT(rates.BitsPerSecond(), IsEmpty());
  rates.Add(kStart, {{"node1", 0}});
  EXPECT_THAT(rates.BitsPerSecond(), IsEmpty());
  rates.Add(kStart + 5'000, {{"node1", 5'000}});
  rates.Add(kStart + 10'000, {{"node1", 10'000}});
  rates.Add(kStart + 20'000, {{"node1", 110'000}, {"node2", 10}});
  // From the tenth second on: what was before does not count any more.
  EXPECT_THAT(rates.BitsPerSecond(), ElementsAre(Pair("node1", 80'000), Pair("node2", 8)));
  rates.Add(kStart, {{"node1", 0}});
  EXPECT_THAT(rates.BitsPerSecond(), IsEmpty());
}

}  // namespace
}  // namespace spoke::ctl
