// Seeded random traffic against buckets counted as the cloud counts them.
#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "gtest/gtest.h"
#include "ipam-server/cloud/calls/cloud_plan.h"

namespace spoke::ipam {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1000);

// A bucket of the cloud's, refilled at a moment of its own.
struct CloudBucket {
  LimitRate rate;
  absl::Time tick;
  double tokens = rate.capacity;
  absl::Time last = kStart;

  void Advance(absl::Time now) {
    if (rate.stepwise) {
      for (; tick <= now; tick += rate.interval) {
        tokens = std::min(rate.capacity, tokens + rate.refill);
      }
    } else {
      tokens =
          std::min(rate.capacity, tokens + absl::ToDoubleSeconds(now - last) * rate.PerSecond());
    }
    last = now;
  }
};

class Traffic {
 public:
  explicit Traffic(uint32_t seed) : random_(seed), plan_({.principals = 1 + seed % 3}) {}

  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  size_t Below(size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random_);
  }

  void AddSome() {
    static constexpr CallKind kKinds[] = {CallKind::kGetInstance, CallKind::kPutInstance,
                                          CallKind::kPollCompute, CallKind::kGetInstanceNic,
                                          CallKind::kPutNic};
    for (size_t i = Below(12); i > 0; --i) {
      CallRequest options;
      options.id = ++last_id_;
      options.kind = kKinds[Below(5)];
      options.lane = kCloudLanes.at(Below(3));
      options.since = now_;
      if (Uniform() < 0.1) options.not_before = now_ + absl::Seconds(20 * Uniform());
      options.subscription = Uniform() < 0.5 ? "s1" : "s2";
      options.region = "eastus";
      options.resource = "vm" + std::to_string(Below(40));
      options.prepares_write = options.kind == CallKind::kGetInstance;
      options.gates = {"set" + std::to_string(Below(3))};
      options_[options.id] = options;
      plan_.Add(options);
    }
  }

  // A call meets the cloud's buckets: none may be empty, and no gate closed.
  void Meet(const AdmittedCall& call) {
    const CallRequest& options = options_.at(call.id);
    for (const std::string& gate : options.gates) {
      if (parked_.contains(gate)) {
        EXPECT_GE(now_, parked_.at(gate)) << gate;
      }
    }
    EXPECT_GE(now_, options.not_before);
    for (const ScopedLimit& limit : LimitsOf(options.kind)) {
      std::string of = options.resource;
      if (limit.scope == LimitScope::kRegion) of = options.subscription;
      if (limit.scope == LimitScope::kPrincipal) {
        of = options.subscription + std::to_string(call.principal);
      }
      const LimitRate rate = RateOf(limit);
      const auto [it, fresh] =
          buckets_.try_emplace({limit, of}, CloudBucket{rate, kStart + Uniform() * rate.interval});
      it->second.Advance(now_);
      it->second.tokens -= 1;
      EXPECT_GE(it->second.tokens, -1e-3) << NameOf(limit.limit) << " of " << of;
    }
    EXPECT_TRUE(served_.insert(call.id).second);
    in_flight_.push_back({now_ + absl::Seconds(Uniform()), call.id});
  }

  // Checks that nothing that could have gone before waits for the same resource in a lane above.
  void CheckOrder(const std::vector<AdmittedCall>& calls) {
    std::map<std::tuple<CallKind, std::string, bool>, std::pair<CloudLane, absl::Time>> last;
    for (const AdmittedCall& call : calls) {
      const CallRequest& options = options_.at(call.id);
      const auto key = std::tuple(options.kind, options.subscription, options.prepares_write);
      const std::pair<CloudLane, absl::Time> now{options.lane, options.since};
      if (last.contains(key)) {
        EXPECT_LE(last.at(key), now) << "call " << call.id;
      }
      last[key] = now;
    }
  }

  void Step() {
    const std::vector<AdmittedCall> calls = plan_.Next(now_);
    CheckOrder(calls);
    for (const AdmittedCall& call : calls) Meet(call);
    for (size_t i = 0; i < in_flight_.size();) {
      if (in_flight_[i].first <= now_) {
        plan_.Answer(in_flight_[i].second, {}, now_, Uniform());
        in_flight_[i] = in_flight_.back();
        in_flight_.pop_back();
      } else {
        ++i;
      }
    }
    if (Uniform() < 0.01) {
      const std::string gate = "set" + std::to_string(Below(3));
      parked_[gate] = plan_.Park(gate, kConflictPark, "409", now_, Uniform());
    }
  }

  void Run() {
    for (int i = 0; i < 600; ++i) {
      AddSome();
      Step();
      now_ += absl::Seconds(Uniform());
    }
    const absl::Time end = now_ + absl::Hours(6);
    while (served_.size() < options_.size() && now_ < end) {
      Step();
      // It wakes when it says, or when the next answer is due: waking late would hide a stall.
      absl::Time next = plan_.NextWake();
      for (const auto& flight : in_flight_) next = std::min(next, flight.first);
      ASSERT_LT(next, absl::InfiniteFuture()) << "nothing would ever go again";
      now_ = std::max(now_ + absl::Milliseconds(1), next);
    }
    EXPECT_EQ(served_.size(), options_.size());
    EXPECT_EQ(plan_.waiting(), 0U);
  }

 private:
  std::mt19937 random_;
  CloudPlan plan_;
  absl::Time now_ = kStart;
  uint64_t last_id_ = 0;
  std::map<uint64_t, CallRequest> options_;
  std::set<uint64_t> served_;
  std::map<std::pair<ScopedLimit, std::string>, CloudBucket> buckets_;
  std::vector<std::pair<absl::Time, uint64_t>> in_flight_;
  std::map<std::string, absl::Time> parked_;
};

TEST(CloudPlanProperty, NeverOverBudgetNorIntoAGateAndEveryCallIsServed) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    Traffic(seed).Run();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace spoke::ipam
