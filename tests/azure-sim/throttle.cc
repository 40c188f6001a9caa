#include "tests/azure-sim/throttle.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fmt/core.h"

namespace spoke::azure_sim {
namespace {

bool IsNetwork(Policy policy) {
  return policy == Policy::kNetworkRead || policy == Policy::kNetworkWrite;
}

absl::Duration WholeSeconds(absl::Duration duration) {
  return std::max(absl::Ceil(duration, absl::Seconds(1)), absl::Seconds(1));
}

std::string KeyOf(std::string_view what, std::string_view a, std::string_view b) {
  std::string key;
  key.reserve(what.size() + a.size() + b.size() + 2);
  key.append(what).append("|").append(a).append("|").append(b);
  return key;
}

}  // namespace

void Throttle::Refill(State* state, const Bucket& bucket, const Step& step, absl::Time now) {
  const int64_t interval = absl::FDivDuration(now - absl::UnixEpoch() - step.phase, step.length) < 0
                               ? 0
                               : static_cast<int64_t>(std::floor(absl::FDivDuration(
                                     now - absl::UnixEpoch() - step.phase, step.length)));
  if (state->tokens < 0) {
    state->tokens = bucket.most;
  } else if (interval > state->interval) {
    state->tokens =
        std::min(bucket.most,
                 state->tokens + bucket.refill * static_cast<double>(interval - state->interval));
  }
  if (interval != state->interval) state->measured = 0;
  state->interval = interval;
}

void Throttle::RefillContinuously(State* state, double per_second, double most, absl::Time now) {
  if (state->tokens < 0) {
    state->tokens = most;
  } else if (now > state->last) {
    state->tokens =
        std::min(most, state->tokens + per_second * absl::ToDoubleSeconds(now - state->last));
  }
  state->last = now;
}

void Throttle::Close(State* state, absl::Duration retry_after, absl::Time now) {
  state->closed_until = now + retry_after;
}

Grant Throttle::AskProvider(Policy policy, const Scope& scope, double units, absl::Time now) {
  if (!limits_.enabled) return {};
  return AskStepwise(policy, scope, units, now);
}

Grant Throttle::AskStepwise(Policy policy, const Scope& scope, double units, absl::Time now) {
  const bool network = IsNetwork(policy);
  const Step step = network ? Step{limits_.network_window, limits_.network_phase}
                            : Step{absl::Minutes(1), limits_.compute_phase};
  struct Asked {
    const Bucket* bucket;
    State* state;
    const char* suffix;
  };
  std::array<Asked, 2> asked{};
  size_t count = 0;
  const std::string name(NameOf(policy));
  if (limits_[policy].subscription.most > 0) {
    asked[count++] = {&limits_[policy].subscription,
                      &states_[KeyOf(name, scope.subscription, scope.region)],
                      network ? "" : "SubscriptionMaximum"};
  }
  if (limits_[policy].resource.most > 0 && !scope.resource.empty()) {
    asked[count++] = {&limits_[policy].resource, &states_[KeyOf(name, scope.resource, "")],
                      "Resource"};
  }

  Grant grant;
  bool early = false;
  for (size_t i = 0; i < count; ++i) {
    State* state = asked[i].state;
    Refill(state, *asked[i].bucket, step, now);
    state->measured += units;
    early = early || now < state->closed_until;
    if (!grant.allowed || state->tokens >= units) continue;
    grant.allowed = false;
    grant.limit = name + asked[i].suffix;
    grant.limit_most = asked[i].bucket->most;
    grant.measured = state->measured;
    grant.interval_start = absl::UnixEpoch() + step.phase + step.length * state->interval;
    grant.interval_end = grant.interval_start + step.length;
    const double refill = std::max(asked[i].bucket->refill, 1e-9);
    // A call that no bucket could ever hold is told the next refill, as if it could.
    const double intervals = std::clamp(std::ceil((units - state->tokens) / refill), 1.0, 1000.0);
    grant.retry_after = WholeSeconds(grant.interval_end + step.length * (intervals - 1) - now);
    Close(state, grant.retry_after, now);
  }
  if (early) ++sent_into_closed_gate_;
  for (size_t i = 0; i < count; ++i) {
    if (grant.allowed) asked[i].state->tokens -= units;
    grant.remaining.emplace_back(name + asked[i].suffix,
                                 static_cast<int64_t>(asked[i].state->tokens));
  }
  return grant;
}

Grant Throttle::AskFrontDoor(std::string_view subscription, std::string_view principal,
                             Direction direction, absl::Time now) {
  if (!limits_.enabled) return {};
  constexpr std::array<std::string_view, 3> kWords = {"reads", "writes", "deletes"};
  const std::string_view word = kWords[static_cast<size_t>(direction)];
  const FrontDoorBucket& bucket = direction == Direction::kRead    ? limits_.reads
                                  : direction == Direction::kWrite ? limits_.writes
                                                                   : limits_.deletes;
  State& own = states_[KeyOf(word, subscription, principal)];
  State& global = states_[KeyOf(word, subscription, "*all*")];
  RefillContinuously(&own, bucket.per_second, bucket.most, now);
  RefillContinuously(&global, bucket.per_second * limits_.global_factor,
                     bucket.most * limits_.global_factor, now);
  Grant grant;
  for (State* state : {&own, &global}) {
    const bool early = now < state->closed_until;
    if (early && grant.allowed) ++sent_into_closed_gate_;  // It is counted once for each call.
    // The front door refuses who did not wait, though the bucket may have filled since.
    if (!grant.allowed || (state->tokens >= 1 && !early)) continue;
    const double rate = bucket.per_second * (state == &global ? limits_.global_factor : 1.0);
    grant.allowed = false;
    grant.limit = fmt::format("subscription-{}", word);
    grant.limit_most = bucket.most;
    grant.retry_after =
        WholeSeconds(absl::Seconds(std::max(0.0, 1.0 - state->tokens) / std::max(rate, 1e-9)));
    Close(state, grant.retry_after, now);
  }
  if (grant.allowed) {
    own.tokens -= 1;
    global.tokens -= 1;
  }
  grant.remaining.emplace_back(fmt::format("subscription-{}", word),
                               static_cast<int64_t>(own.tokens));
  grant.remaining.emplace_back(fmt::format("subscription-global-{}", word),
                               static_cast<int64_t>(global.tokens));
  return grant;
}

}  // namespace spoke::azure_sim
