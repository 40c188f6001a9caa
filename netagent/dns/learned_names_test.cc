#include "netagent/dns/learned_names.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr ClassNumber kModels = 16;
constexpr ClassNumber kImages = 17;
const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

ip::Address Ip(std::string_view text) { return ip::Address::Parse(text).value(); }

DnsAnswer Answer(const std::string& question, const std::vector<std::string>& addresses,
                 absl::Duration ttl = absl::Minutes(5)) {
  DnsAnswer out{question, {}, {}};
  for (const std::string& address : addresses) out.addresses.push_back({Ip(address), ttl});
  return out;
}

class LearnedNamesTest : public testing::Test {
 protected:
  LearnedNamesTest() {
    names_.SetNames({{"hub.org", kModels}, {"*.hub.org", kModels}, {"*.cdn.net", kImages}});
  }
  LearnedNames names_;
};

TEST_F(LearnedNamesTest, LearnsWhatIsOfAGroup) {
  EXPECT_TRUE(names_.OnAnswer(Answer("hub.org", {"192.0.2.1", "2001:db8::1"}), kNow));
  EXPECT_TRUE(names_.OnAnswer(Answer("a.b.cdn.net", {"192.0.2.2"}), kNow));
  // The name is not below itself.
  EXPECT_FALSE(names_.OnAnswer(Answer("cdn.net", {"192.0.2.3"}), kNow));
  EXPECT_FALSE(names_.OnAnswer(Answer("xhub.org", {"192.0.2.4"}), kNow));
  EXPECT_FALSE(names_.OnAnswer(Answer("hub.org.evil.net", {"192.0.2.5"}), kNow));
  EXPECT_FALSE(names_.OnAnswer(Answer("hub.org", {}), kNow));
  EXPECT_THAT(names_.At(kNow),
              ElementsAre(Pair(Ip("192.0.2.1"), kModels), Pair(Ip("192.0.2.2"), kImages),
                          Pair(Ip("2001:db8::1"), kModels)));
  EXPECT_EQ(names_.size(), 3U);
  EXPECT_EQ(names_.shared(), 0U);
}

TEST_F(LearnedNamesTest, TheLongestNameCounts) {
  names_.SetNames({{"*.org", kModels}, {"*.a.org", kImages}, {"x.a.org", kModels}});
  names_.OnAnswer(Answer("b.org", {"192.0.2.1"}), kNow);
  names_.OnAnswer(Answer("b.a.org", {"192.0.2.2"}), kNow);
  names_.OnAnswer(Answer("x.a.org", {"192.0.2.3"}), kNow);
  EXPECT_THAT(names_.At(kNow),
              ElementsAre(Pair(Ip("192.0.2.1"), kModels), Pair(Ip("192.0.2.2"), kImages),
                          Pair(Ip("192.0.2.3"), kModels)));
}

TEST_F(LearnedNamesTest, NamesAreOfAnyCaseAndMayEndInADot) {
  names_.SetNames({{"Hub.ORG.", kModels}});
  EXPECT_TRUE(names_.OnAnswer(Answer("hub.org", {"192.0.2.1"}), kNow));
}

TEST_F(LearnedNamesTest, TheQuestionCountsBeforeItsAliases) {
  DnsAnswer answer = Answer("www.hub.org", {"192.0.2.1"});
  answer.aliases = {"a.cdn.net"};
  names_.OnAnswer(answer, kNow);
  answer = Answer("www.elsewhere.org", {"192.0.2.2"});
  answer.aliases = {"b.elsewhere.org", "b.cdn.net"};
  names_.OnAnswer(answer, kNow);
  EXPECT_THAT(names_.At(kNow),
              ElementsAre(Pair(Ip("192.0.2.1"), kModels), Pair(Ip("192.0.2.2"), kImages)));
}

TEST_F(LearnedNamesTest, ATtlCountsWithinBounds) {
  names_.OnAnswer(Answer("hub.org", {"192.0.2.1"}, absl::ZeroDuration()), kNow);
  EXPECT_EQ(names_.NextExpiry(), kNow + LearnedNames::kLeastLife);
  names_.OnAnswer(Answer("hub.org", {"192.0.2.1"}, absl::Minutes(10)), kNow);
  EXPECT_EQ(names_.NextExpiry(), kNow + absl::Minutes(10));
  names_.OnAnswer(Answer("hub.org", {"192.0.2.1"}, absl::Hours(99)), kNow);
  EXPECT_EQ(names_.NextExpiry(), kNow + LearnedNames::kMostLife);
}

TEST_F(LearnedNamesTest, WhatIsLearnedAgainLivesLongerAndNeverShorter) {
  names_.OnAnswer(Answer("hub.org", {"192.0.2.1"}, absl::Minutes(10)), kNow);
  // A cache on its way counts the TTL down.
  EXPECT_FALSE(names_.OnAnswer(Answer("hub.org", {"192.0.2.1"}, absl::Minutes(2)), kNow));
  EXPECT_EQ(names_.NextExpiry(), kNow + absl::Minutes(10));
  const absl::Time later = kNow + absl::Minutes(9);
  EXPECT_FALSE(names_.OnAnswer(Answer("hub.org", {"192.0.2.1"}, absl::Minutes(2)), later));
  EXPECT_EQ(names_.NextExpiry(), later + absl::Minutes(2));
}

TEST_F(LearnedNamesTest, WhatExpiresIsForgotten) {
  EXPECT_EQ(names_.NextExpiry(), absl::InfiniteFuture());
  names_.OnAnswer(Answer("hub.org", {"192.0.2.1"}, absl::Minutes(2)), kNow);
  names_.OnAnswer(Answer("x.cdn.net", {"192.0.2.2"}, absl::Minutes(3)), kNow);
  const absl::Time expiry = kNow + absl::Minutes(2);
  EXPECT_FALSE(names_.Expire(expiry - absl::Nanoseconds(1)));
  EXPECT_THAT(names_.At(expiry), ElementsAre(Pair(Ip("192.0.2.2"), kImages)));
  EXPECT_TRUE(names_.Expire(expiry));
  EXPECT_FALSE(names_.Expire(expiry));
  EXPECT_EQ(names_.size(), 1U);
  // An answer that adds nothing says so too.
  EXPECT_TRUE(names_.OnAnswer(Answer("other.org", {}), kNow + absl::Minutes(3)));
  EXPECT_EQ(names_.NextExpiry(), absl::InfiniteFuture());
}

TEST_F(LearnedNamesTest, AnAddressOfTwoGroupsStaysInTheFirstAndIsShared) {
  names_.OnAnswer(Answer("hub.org", {"192.0.2.1", "192.0.2.2"}), kNow);
  EXPECT_FALSE(names_.OnAnswer(Answer("x.cdn.net", {"192.0.2.1"}, absl::Hours(1)), kNow));
  EXPECT_FALSE(names_.OnAnswer(Answer("x.cdn.net", {"192.0.2.1"}, absl::Hours(1)), kNow));
  EXPECT_EQ(names_.shared(), 1U);
  EXPECT_EQ(names_.At(kNow).at(Ip("192.0.2.1")), kModels);
  // The other group's answer does not keep it there.
  EXPECT_TRUE(names_.Expire(kNow + absl::Minutes(5)));
  EXPECT_EQ(names_.shared(), 0U);
}

TEST_F(LearnedNamesTest, AnAddressOfANameOfNoGroupIsSharedWhoeverIsFirst) {
  names_.OnAnswer(Answer("hub.org", {"192.0.2.1"}), kNow);
  names_.OnAnswer(Answer("other.org", {"192.0.2.1", "192.0.2.2"}), kNow);
  EXPECT_EQ(names_.shared(), 1U);
  names_.OnAnswer(Answer("hub.org", {"192.0.2.2"}), kNow + absl::Minutes(1));
  EXPECT_EQ(names_.shared(), 2U);
  // What the other name had long ago is not held against anybody.
  names_.OnAnswer(Answer("other.org", {"192.0.2.3"}), kNow);
  names_.OnAnswer(Answer("hub.org", {"192.0.2.3"}), kNow + absl::Minutes(6));
  EXPECT_EQ(names_.shared(), 0U);  // The first two have expired.
}

TEST_F(LearnedNamesTest, OnlySoManyOthersAreRemembered) {
  const auto other = [&](size_t i) {
    const ip::Address address = ip::Advance(Ip("10.0.0.0"), i);
    names_.OnAnswer({"other.org", {}, {{address, absl::Hours(1)}}}, kNow);
    return address;
  };
  const ip::Address first = other(0);
  const ip::Address second = other(1);
  for (size_t i = 2; i < LearnedNames::kMaxOthers; ++i) other(i);
  other(0);  // The address is heard of again, and so stays.
  other(LearnedNames::kMaxOthers);
  names_.OnAnswer({"hub.org", {}, {{second, absl::Hours(1)}}}, kNow);
  EXPECT_EQ(names_.shared(), 0U);
  names_.OnAnswer({"hub.org", {}, {{first, absl::Hours(1)}}}, kNow);
  EXPECT_EQ(names_.shared(), 1U);
}

TEST_F(LearnedNamesTest, AGroupHasOnlySoManyAndTheOldestLeaves) {
  for (size_t i = 0; i < LearnedNames::kMaxAddresses; ++i) {
    names_.OnAnswer({"hub.org", {}, {{ip::Advance(Ip("10.0.0.0"), i), absl::Minutes(10)}}},
                    kNow + absl::Milliseconds(i));
  }
  names_.OnAnswer(Answer("x.cdn.net", {"192.0.2.1"}), kNow + absl::Seconds(2));
  const absl::Time later = kNow + absl::Seconds(3);
  EXPECT_TRUE(names_.OnAnswer(Answer("hub.org", {"192.0.2.2"}), later));
  EXPECT_EQ(names_.size(), LearnedNames::kMaxAddresses + 1);
  const auto learned = names_.At(later);
  EXPECT_FALSE(learned.contains(Ip("10.0.0.0")));
  EXPECT_TRUE(learned.contains(Ip("10.0.0.1")));
  EXPECT_TRUE(learned.contains(Ip("192.0.2.2")));
  EXPECT_TRUE(learned.contains(Ip("192.0.2.1")));  // The address is of another group.
}

TEST_F(LearnedNamesTest, NamesThatGoTakeTheirAddressesAlong) {
  names_.OnAnswer(Answer("hub.org", {"192.0.2.1"}), kNow);
  names_.OnAnswer(Answer("x.cdn.net", {"192.0.2.2"}), kNow);
  names_.OnAnswer(Answer("other.org", {"192.0.2.2", "192.0.2.3"}), kNow);
  EXPECT_EQ(names_.shared(), 1U);
  EXPECT_FALSE(
      names_.SetNames({{"*.cdn.net", kImages}, {"*.hub.org", kModels}, {"hub.org", kModels}}));
  EXPECT_TRUE(names_.SetNames({{"hub.org", kImages}, {"other.org", kModels}}));
  EXPECT_THAT(names_.At(kNow), ElementsAre(Pair(Ip("192.0.2.1"), kImages)));
  EXPECT_EQ(names_.NextExpiry(), kNow + absl::Minutes(5));
  EXPECT_EQ(names_.shared(), 0U);
  // The address is of a group by now.
  names_.OnAnswer(Answer("other.org", {"192.0.2.3"}), kNow);
  EXPECT_EQ(names_.shared(), 0U);
  EXPECT_TRUE(names_.has_names());
  EXPECT_TRUE(names_.SetNames({}));
  EXPECT_FALSE(names_.has_names());
  EXPECT_THAT(names_.At(kNow), IsEmpty());
  EXPECT_EQ(names_.NextExpiry(), absl::InfiniteFuture());
}

TEST_F(LearnedNamesTest, GroupsThatBecomeOneKeepWithinTheBound) {
  for (size_t i = 0; i < LearnedNames::kMaxAddresses; ++i) {
    names_.OnAnswer({"hub.org", {}, {{ip::Advance(Ip("10.0.0.0"), i), absl::Minutes(10)}}}, kNow);
    names_.OnAnswer({"x.cdn.net", {}, {{ip::Advance(Ip("10.1.0.0"), i), absl::Minutes(9)}}}, kNow);
  }
  EXPECT_EQ(names_.size(), 2 * LearnedNames::kMaxAddresses);
  EXPECT_TRUE(names_.SetNames({{"hub.org", kModels}, {"*.cdn.net", kModels}}));
  const auto learned = names_.At(kNow);
  EXPECT_EQ(learned.size(), LearnedNames::kMaxAddresses);
  EXPECT_FALSE(learned.contains(Ip("10.1.0.0")));  // Those that would expire first are gone.
}

}  // namespace
}  // namespace spoke::netagent
