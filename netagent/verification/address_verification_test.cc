#include "netagent/verification/address_verification.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const ip::Address kOne = ip::Address::V4(0x0A010005);
const ip::Address kTwo = ip::Address::V4(0x0A010006);

class ReadinessTest : public testing::Test {
 protected:
  void Pass(absl::Duration by) { now_ += by; }
  // Moves to the next time at which something is to be done.
  void PassToWake() {
    const auto wake = readiness_.NextWake();
    ASSERT_TRUE(wake.has_value());
    now_ = std::max(now_, *wake);
  }
  // Takes the reading that is due now, with this outcome.
  void List(const std::set<ip::Address>& listed) {
    ASSERT_TRUE(readiness_.TakeReading(now_));
    readiness_.OnListing(listed, now_);
  }
  void FailListing() {
    ASSERT_TRUE(readiness_.TakeReading(now_));
    readiness_.OnListingFailed(now_);
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1000);
  Readiness readiness_{{}};
};

TEST_F(ReadinessTest, AnAddressIsProvenOnceItIsListedAndItsProbeIsAnswered) {
  readiness_.SetWanted({kOne, kTwo}, now_);
  EXPECT_THAT(readiness_.TakeProbes(now_), IsEmpty());  // It is not sent before the host lists it.
  List({kOne});
  EXPECT_THAT(readiness_.TakeProven(), IsEmpty());
  EXPECT_THAT(readiness_.TakeProbes(now_), ElementsAre(kOne));
  EXPECT_TRUE(readiness_.HasProbes());
  readiness_.OnAnswer(kOne);
  EXPECT_FALSE(readiness_.HasProbes());
  EXPECT_THAT(readiness_.TakeProven(), ElementsAre(kOne));
  EXPECT_THAT(readiness_.TakeProven(), IsEmpty());
  EXPECT_EQ(readiness_.waiting(), 1U);
}

TEST_F(ReadinessTest, WithoutAnAnswererTheListIsEnough) {
  Readiness readiness({.want_answer = false});
  readiness.SetWanted({kOne}, now_);
  ASSERT_TRUE(readiness.TakeReading(now_));
  readiness.OnListing({kOne}, now_);
  EXPECT_THAT(readiness.TakeProbes(now_), IsEmpty());
  EXPECT_THAT(readiness.TakeProven(), ElementsAre(kOne));
}

TEST_F(ReadinessTest, WithoutAListTheAnswerIsEnough) {
  Readiness readiness({.want_listing = false});
  readiness.SetWanted({kOne}, now_);
  EXPECT_FALSE(readiness.TakeReading(now_));
  EXPECT_THAT(readiness.TakeProbes(now_), ElementsAre(kOne));
  readiness.OnAnswer(kOne);
  EXPECT_THAT(readiness.TakeProven(), ElementsAre(kOne));
}

TEST_F(ReadinessTest, AListThatCannotBeReadLeavesTheAnswerToProve) {
  readiness_.SetWanted({kOne}, now_);
  FailListing();
  EXPECT_THAT(readiness_.TakeProbes(now_), ElementsAre(kOne));
  readiness_.OnAnswer(kOne);
  EXPECT_THAT(readiness_.TakeProven(), ElementsAre(kOne));
}

TEST_F(ReadinessTest, AListThatCannotBeReadProvesNothingByItself) {
  Readiness readiness({.want_answer = false});
  readiness.SetWanted({kOne}, now_);
  ASSERT_TRUE(readiness.TakeReading(now_));
  readiness.OnListingFailed(now_);
  EXPECT_THAT(readiness.TakeProven(), IsEmpty());
  EXPECT_EQ(readiness.Explain(), "1 while the host's list cannot be read");
}

TEST_F(ReadinessTest, TheListIsReadEverMoreSeldomAndAtOnceForWhatIsNew) {
  Readiness readiness({.want_answer = false});
  readiness.SetWanted({kOne}, now_);
  ASSERT_TRUE(readiness.TakeReading(now_));
  readiness.OnListing({}, now_);
  std::vector<absl::Duration> pauses;
  for (int i = 0; i < 7; ++i) {
    const absl::Time before = now_;
    now_ = *readiness.NextWake();
    // The deadline is another reason to wake, once.
    while (!readiness.TakeReading(now_)) {
      readiness.TakeOverdue(now_);
      now_ = *readiness.NextWake();
    }
    readiness.OnListing({}, now_);
    pauses.push_back(now_ - before);
  }
  EXPECT_THAT(pauses,
              ElementsAre(absl::Seconds(4), absl::Seconds(8), absl::Seconds(16), absl::Seconds(32),
                          absl::Seconds(64), absl::Seconds(64), absl::Seconds(64)));
  Pass(absl::Milliseconds(300));
  readiness.SetWanted({kOne, kTwo}, now_);
  EXPECT_FALSE(readiness.TakeReading(now_));  // There are no two in a second.
  Pass(absl::Milliseconds(700));
  ASSERT_TRUE(readiness.TakeReading(now_));
  readiness.OnListing({}, now_);
  EXPECT_EQ(*readiness.NextWake() - now_, absl::Seconds(4));
}

TEST_F(ReadinessTest, WhatComesDuringAReadingGetsAnotherOne) {
  readiness_.SetWanted({kOne}, now_);
  ASSERT_TRUE(readiness_.TakeReading(now_));
  EXPECT_FALSE(readiness_.TakeReading(now_));
  readiness_.SetWanted({kOne, kTwo}, now_);
  Pass(absl::Seconds(3));
  EXPECT_FALSE(readiness_.TakeReading(now_));  // The first one is not over.
  readiness_.OnListing({kOne}, now_);
  EXPECT_TRUE(readiness_.TakeReading(now_));
}

TEST_F(ReadinessTest, AProbeThatIsLostIsSentAgainEverMoreSeldom) {
  readiness_.SetWanted({kOne}, now_);
  List({kOne});
  std::vector<absl::Duration> pauses;
  absl::Time last = now_;
  ASSERT_THAT(readiness_.TakeProbes(now_), SizeIs(1));
  while (pauses.size() < 7) {
    PassToWake();
    readiness_.TakeOverdue(now_);
    if (readiness_.TakeProbes(now_).empty()) continue;
    pauses.push_back(now_ - last - kAnswerWithin);
    last = now_;
  }
  EXPECT_THAT(pauses,
              ElementsAre(absl::Seconds(1), absl::Seconds(2), absl::Seconds(4), absl::Seconds(8),
                          absl::Seconds(16), absl::Seconds(30), absl::Seconds(30)));
}

TEST_F(ReadinessTest, ALateAnswerCounts) {
  readiness_.SetWanted({kOne}, now_);
  List({kOne});
  ASSERT_THAT(readiness_.TakeProbes(now_), SizeIs(1));
  Pass(kAnswerWithin);
  EXPECT_THAT(readiness_.TakeProbes(now_), IsEmpty());
  EXPECT_FALSE(readiness_.HasProbes());
  readiness_.OnAnswer(kOne);
  EXPECT_FALSE(readiness_.HasProbes());
  EXPECT_THAT(readiness_.TakeProven(), ElementsAre(kOne));
}

TEST_F(ReadinessTest, ManyAddressesAreProbedAFewAtATimeAndAllInTheEnd) {
  std::vector<ip::Address> many;
  for (uint64_t i = 0; i < 5 * kMaxProbes; ++i) many.push_back(ip::Advance(kOne, i));
  readiness_.SetWanted(many, now_);
  List({many.begin(), many.end()});
  const std::vector<ip::Address> first = readiness_.TakeProbes(now_);
  EXPECT_THAT(first, SizeIs(kMaxProbes));
  EXPECT_THAT(readiness_.TakeProbes(now_), IsEmpty());
  readiness_.OnAnswer(first[0]);
  EXPECT_THAT(readiness_.TakeProbes(now_), SizeIs(1));
  // All others are lost: each address has its turn all the same.
  std::set<ip::Address> probed;
  for (int i = 0; i < 20; ++i) {
    for (const ip::Address& address : readiness_.TakeProbes(now_)) probed.insert(address);
    PassToWake();
  }
  EXPECT_GE(probed.size(), many.size() - kMaxProbes - 1);
}

TEST_F(ReadinessTest, WhatIsNotWantedAnyMoreIsForgottenWithItsProbe) {
  readiness_.SetWanted({kOne, kTwo}, now_);
  List({kOne, kTwo});
  ASSERT_THAT(readiness_.TakeProbes(now_), SizeIs(2));
  readiness_.SetWanted({kTwo}, now_);
  readiness_.OnAnswer(kOne);
  readiness_.OnAnswer(kTwo);
  EXPECT_THAT(readiness_.TakeProven(), ElementsAre(kTwo));
  EXPECT_FALSE(readiness_.HasProbes());
  EXPECT_EQ(readiness_.NextWake(), std::nullopt);
  EXPECT_EQ(readiness_.Explain(), "");
}

TEST_F(ReadinessTest, AListThatStaysWithoutTheAddressIsNotWaitedForWhereThereIsAnAnswerer) {
  readiness_.SetWanted({kOne}, now_);
  List({});
  Pass(kListingPatience - absl::Milliseconds(1));
  EXPECT_THAT(readiness_.TakeProbes(now_), IsEmpty());
  Pass(absl::Milliseconds(1));
  EXPECT_THAT(readiness_.TakeProbes(now_), ElementsAre(kOne));
  readiness_.OnAnswer(kOne);
  EXPECT_THAT(readiness_.TakeProven(), ElementsAre(kOne));
}

TEST_F(ReadinessTest, WithoutAnAnswererAnAddressThatTheListDoesNotHaveIsNeverProven) {
  Readiness readiness({.want_answer = false});
  readiness.SetWanted({kOne}, now_);
  ASSERT_TRUE(readiness.TakeReading(now_));
  readiness.OnListing({kTwo}, now_);
  Pass(absl::Hours(1));
  EXPECT_THAT(readiness.TakeProbes(now_), IsEmpty());
  EXPECT_THAT(readiness.TakeProven(), IsEmpty());
}

TEST_F(ReadinessTest, WhatWaitsTooLongIsSaidOnceWithWhatIsMissing) {
  readiness_.SetWanted({kOne, kTwo}, now_);
  List({kTwo});
  EXPECT_EQ(readiness_.Explain(),
            "1 not listed by the host, 1 without an answer through the network");
  Pass(absl::Minutes(2) - absl::Milliseconds(1));
  EXPECT_THAT(readiness_.TakeOverdue(now_), IsEmpty());
  Pass(absl::Milliseconds(1));
  EXPECT_THAT(readiness_.TakeOverdue(now_),
              ElementsAre(OverdueAddress{kOne, Missing::kListing, absl::Minutes(2)},
                          OverdueAddress{kTwo, Missing::kAnswer, absl::Minutes(2)}));
  Pass(absl::Minutes(2));
  EXPECT_THAT(readiness_.TakeOverdue(now_), IsEmpty());
  // The address is still tried.
  EXPECT_TRUE(readiness_.TakeReading(now_));
  EXPECT_THAT(readiness_.TakeProbes(now_), ElementsAre(kOne, kTwo));
}

TEST_F(ReadinessTest, NothingIsDoneEarlierThanNextWakeSays) {
  readiness_.SetWanted({kOne, kTwo}, now_);
  for (int i = 0; i < 50; ++i) {
    const auto wake = readiness_.NextWake();
    ASSERT_TRUE(wake.has_value());
    if (*wake > now_) {
      now_ = *wake - absl::Nanoseconds(1);
      EXPECT_FALSE(readiness_.TakeReading(now_));
      EXPECT_THAT(readiness_.TakeProbes(now_), IsEmpty());
      EXPECT_THAT(readiness_.TakeOverdue(now_), IsEmpty());
      now_ = *wake;
    }
    bool any = !readiness_.TakeOverdue(now_).empty();
    if (readiness_.TakeReading(now_)) {
      any = true;
      readiness_.OnListing({kOne}, now_);
    }
    const bool had_probes = readiness_.HasProbes();
    any |= !readiness_.TakeProbes(now_).empty() || had_probes != readiness_.HasProbes();
    EXPECT_TRUE(any) << "woken for nothing, round " << i;
  }
}

}  // namespace
}  // namespace spoke::netagent
