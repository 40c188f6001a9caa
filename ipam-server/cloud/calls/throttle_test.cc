#include "ipam-server/cloud/calls/throttle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <random>
#include <string>

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1000);
constexpr LimitRate kPerVm = {
    .capacity = 12, .refill = 4, .interval = absl::Minutes(1), .stepwise = true};
constexpr LimitRate kDoor = {.capacity = 200, .refill = 10};

// A limit that counts as the cloud does.
class Reference {
 public:
  Reference(const LimitRate& rate, absl::Duration phase)
      : rate_(rate), tokens_(rate.capacity), last_(kStart), tick_(kStart + phase) {}

  double At(absl::Time now) {
    if (rate_.stepwise) {
      for (; tick_ <= now; tick_ += rate_.interval) {
        tokens_ = std::min(rate_.capacity, tokens_ + rate_.refill);
      }
    } else {
      tokens_ = std::min(rate_.capacity,
                         tokens_ + absl::ToDoubleSeconds(now - last_) * rate_.PerSecond());
    }
    last_ = now;
    return tokens_;
  }
  void Take(double units) { tokens_ -= units; }
  absl::Duration ToTick() const { return tick_ - last_; }

 private:
  LimitRate rate_;
  double tokens_;
  absl::Time last_;
  absl::Time tick_;
};

TEST(Throttle, AFullBucketGoesAtOnce) {
  Throttle throttle(kPerVm);
  EXPECT_TRUE(throttle.AtRest(kStart));
  EXPECT_GE(throttle.LeftAt(kStart), 12);
  throttle.Take(12, kStart);
  EXPECT_LT(throttle.LeftAt(kStart + absl::Seconds(59)), 1);
  EXPECT_GE(throttle.LeftAt(kStart + absl::Seconds(60)), 4);
  EXPECT_FALSE(throttle.AtRest(kStart + absl::Minutes(10)));  // One call is not answered.
}

TEST(Throttle, ContinuousRefillIsFollowedExactly) {
  Throttle throttle(kDoor);
  throttle.Take(200, kStart);
  EXPECT_LT(throttle.LeftAt(kStart), 1);
  EXPECT_EQ(throttle.When(25, kStart), kStart + absl::Seconds(2.5));
  EXPECT_GE(throttle.LeftAt(kStart + absl::Seconds(2.5)), 25);
  EXPECT_EQ(throttle.When(201, kStart), absl::InfiniteFuture());
}

TEST(Throttle, WhatTheCloudSaysCorrectsBothWays) {
  Throttle throttle(kPerVm);
  throttle.Answered(throttle.Take(1, kStart), 3, kStart);  // Somebody else used it.
  EXPECT_LT(throttle.LeftAt(kStart), 4);
  throttle.Answered(throttle.Take(1, kStart + absl::Seconds(1)), 9, kStart + absl::Seconds(2));
  EXPECT_GE(throttle.LeftAt(kStart + absl::Seconds(2)), 9);
}

TEST(Throttle, CallsUnderWayAreNotCountedTwiceInOurFavour) {
  Throttle throttle(kPerVm);
  const Throttle::Ticket first = throttle.Take(1, kStart);
  throttle.Take(5, kStart);
  throttle.Answered(first, 11, kStart);  // It came before the five arrived.
  EXPECT_LT(throttle.LeftAt(kStart), 7);
}

TEST(Throttle, NonsenseIsCutToWhatCanBe) {
  Throttle throttle(kPerVm);
  throttle.Answered(throttle.Take(1, kStart), -7, kStart);
  EXPECT_LT(throttle.LeftAt(kStart), 1);
  throttle.Answered(throttle.Take(0, kStart), 1e300, kStart);
  EXPECT_LE(throttle.LeftAt(kStart), 12.001);
}

TEST(Throttle, ARefusalClosesAndTeachesTheMomentOfRefill) {
  Throttle throttle(kPerVm);
  throttle.Answered(throttle.Take(1, kStart), std::nullopt, kStart);
  throttle.Refuse(absl::Seconds(17), absl::Seconds(3), kStart);
  EXPECT_TRUE(throttle.knows_phase());
  EXPECT_EQ(throttle.closed_until(), kStart + absl::Seconds(20));
  EXPECT_EQ(throttle.LeftAt(kStart + absl::Seconds(19)), 0);
  EXPECT_EQ(throttle.When(1, kStart), kStart + absl::Seconds(20));
  EXPECT_GE(throttle.LeftAt(kStart + absl::Seconds(20)), 4);
  EXPECT_LT(throttle.LeftAt(kStart + absl::Seconds(77)), 5);
  EXPECT_GE(throttle.LeftAt(kStart + absl::Seconds(78)), 8);
}

// One call at most is refused, whenever the refills are, and once it has told, hardly any time is
// lost.
TEST(Throttle, OneCallFindsOutWhenTheRefillsAre) {
  LimitRate rate{.capacity = 1500,
                 .refill = 500,
                 .interval = absl::Minutes(1),
                 .stepwise = true,
                 .probes = true};
  for (int phase = 1; phase <= 60; ++phase) {
    SCOPED_TRACE(phase);
    Reference cloud(rate, absl::Seconds(phase));
    Throttle throttle(rate);
    int refused = 0;
    double served = 0;
    absl::Duration longest_unused;
    absl::Time unused_since = absl::InfiniteFuture();
    for (absl::Time now = kStart; now < kStart + absl::Minutes(5); now += absl::Seconds(1)) {
      while (throttle.LeftAt(now) >= 1) {
        const Throttle::Ticket ticket = throttle.Take(1, now);
        if (cloud.At(now) >= 1) {
          cloud.Take(1);
          ++served;
          throttle.Answered(ticket, cloud.At(now), now);
        } else {
          ++refused;
          throttle.Refuse(cloud.ToTick(), absl::ZeroDuration(), now);
          throttle.Answered(ticket, std::nullopt, now);
        }
      }
      const bool unused = cloud.At(now) >= 1;
      if (!unused) unused_since = absl::InfiniteFuture();
      if (unused) unused_since = std::min(unused_since, now);
      if (unused) longest_unused = std::max(longest_unused, now - unused_since);
    }
    EXPECT_LE(refused, 1);
    EXPECT_GE(served, 1500 + 4 * 500);
    EXPECT_LE(longest_unused, absl::Seconds(5));
  }
}

// Answers that failed before they were counted leave more than the estimate knows.
TEST(Throttle, AProbeThatFindsSomethingLeftIsNotTheLast) {
  Throttle throttle({.capacity = 1500,
                     .refill = 500,
                     .interval = absl::Minutes(1),
                     .stepwise = true,
                     .probes = true});
  throttle.Answered(throttle.Take(1500, kStart), std::nullopt, kStart);
  absl::Time now = throttle.When(1, kStart);
  throttle.Answered(throttle.Take(1, now), 2, now);
  EXPECT_GE(throttle.LeftAt(now), 2);
  throttle.Answered(throttle.Take(2, now), 0, now);
  EXPECT_LT(throttle.LeftAt(now), 1);
  now = throttle.When(1, now);
  EXPECT_LT(now, kStart + absl::Seconds(10));
  throttle.Refuse(absl::Seconds(20), absl::ZeroDuration(), now);
  EXPECT_TRUE(throttle.knows_phase());
}

TEST(Throttle, WithoutProbesNothingIsSentThatMayBeRefused) {
  LimitRate rate{.capacity = 1500, .refill = 500, .interval = absl::Minutes(1), .stepwise = true};
  Throttle throttle(rate);
  throttle.Take(1500, kStart);
  EXPECT_LT(throttle.LeftAt(kStart + absl::Seconds(59)), 1);
}

TEST(Throttle, ALongRefusalTeachesNothing) {
  Throttle throttle(kPerVm);
  throttle.Refuse(absl::Minutes(20), absl::ZeroDuration(), kStart);
  EXPECT_FALSE(throttle.knows_phase());
  EXPECT_EQ(throttle.When(1, kStart), kStart + absl::Minutes(20));
}

struct Traffic {
  std::string name;
  LimitRate rate;
  double per_second;  // Calls that would be sent.
};

class ThrottleProperty : public testing::TestWithParam<Traffic> {};

// Answers come late and out of order, and say what is left or nothing; nobody else uses the limit.
TEST_P(ThrottleProperty, IsNeverAboveTheCloudsOwnCount) {
  const Traffic& traffic = GetParam();
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto uniform = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
    Reference cloud(traffic.rate, uniform() * traffic.rate.interval);
    Throttle throttle(traffic.rate);
    struct Sent {
      absl::Time answered_at;
      Throttle::Ticket ticket;
      std::optional<double> remaining;
    };
    std::deque<Sent> sent;
    absl::Time now = kStart;
    const bool headers = seed % 3 != 0;
    for (int step = 0; step < 2000; ++step) {
      // Bursts, and long pauses in between.
      now += absl::Seconds(uniform() / traffic.per_second * (uniform() < 0.02 ? 100 : 1));
      std::sort(sent.begin(), sent.end(),
                [](const Sent& a, const Sent& b) { return a.answered_at < b.answered_at; });
      while (!sent.empty() && sent.front().answered_at <= now) {
        throttle.Answered(sent.front().ticket, sent.front().remaining, now);
        sent.pop_front();
      }
      ASSERT_LE(throttle.LeftAt(now), cloud.At(now) + 1e-3) << "step " << step;
      if (throttle.LeftAt(now) < 1) {
        const absl::Time when = throttle.When(1, now);
        ASSERT_GT(when, now);
        ASSERT_LE(when, now + 2 * traffic.rate.interval);
        ASSERT_GE(throttle.LeftAt(when), 1) << "step " << step;
        continue;
      }
      cloud.Take(1);
      ASSERT_GE(cloud.At(now), -1e-3) << "step " << step;
      sent.push_back({now + absl::Seconds(uniform()), throttle.Take(1, now),
                      headers ? std::optional<double>(std::floor(cloud.At(now))) : std::nullopt});
    }
  }
}

// A throttle that knows when the refills are wastes none.
TEST(ThrottleProperty, InStepItUsesAllThereIs) {
  Reference cloud(kPerVm, absl::Seconds(23));
  Throttle throttle(kPerVm);
  int taken = 0;
  int refused = 0;
  for (absl::Time now = kStart; now < kStart + absl::Hours(1); now += absl::Milliseconds(500)) {
    if (now == kStart + absl::Minutes(2)) {  // Someone else's burst, once.
      cloud.Take(std::floor(cloud.At(now)));
    }
    if (throttle.LeftAt(now) < 1) continue;
    const Throttle::Ticket ticket = throttle.Take(1, now);
    throttle.Answered(ticket, std::nullopt, now);
    if (cloud.At(now) < 1) {
      ++refused;
      throttle.Refuse(absl::Ceil(cloud.ToTick(), absl::Seconds(1)), absl::ZeroDuration(), now);
      continue;
    }
    cloud.Take(1);
    ++taken;
  }
  EXPECT_LE(refused, 2);
  EXPECT_GE(taken, 58 * 4);
}

INSTANTIATE_TEST_SUITE_P(
    Traffic, ThrottleProperty,
    testing::Values(
        Traffic{"PerVmBusy", kPerVm, 2}, Traffic{"PerVmSlow", kPerVm, 0.07},
        Traffic{"FrontDoor", kDoor, 30},
        Traffic{"Window",
                {.capacity = 100, .refill = 100, .interval = absl::Minutes(5), .stepwise = true},
                1}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace spoke::ipam
