#include "ipam-server/cloud/calls/cloud_plan.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

// Reads ahead of writes: enough that a write is always ready when its limit has room.
constexpr size_t kPreparedAhead = 64;
// The part of the calls in flight that only the lane kBlocking may use.
constexpr size_t kBlockingPart = 8;
// The delay after a refusal that does not say for how long.
constexpr absl::Duration kDefaultRetryAfter = absl::Seconds(10);
// How often throttles at rest are forgotten.
constexpr absl::Duration kForgetEvery = absl::Minutes(1);
// Names are told to people; no cloud has more of them.
constexpr size_t kMostUnknownPolicies = 64;

size_t IndexOf(CloudLane lane) { return static_cast<size_t>(lane); }

CallKind WriteOf(CallKind read) {
  return read == CallKind::kGetInstance ? CallKind::kPutInstance : CallKind::kPutNic;
}

std::string RegionOf(const CallRequest& options) {
  return options.subscription + "/" + options.region;
}

std::string Describe(const ScopedLimit& limit, const CallRequest& options) {
  switch (limit.scope) {
    case LimitScope::kPrincipal:
      return fmt::format("Azure's front-door limit {} of subscription {}", NameOf(limit.limit),
                         options.subscription);
    case LimitScope::kRegion:
      return fmt::format("Azure's limit {} of subscription {} in {}", NameOf(limit.limit),
                         options.subscription, options.region);
    case LimitScope::kResource:
      return fmt::format("Azure's limit {} of {}", NameOf(limit.limit), options.resource);
  }
  return "";
}

}  // namespace

struct CloudPlan::Pass {
  std::vector<AdmittedCall> admitted;
  // Limits that something before waits for.
  std::set<std::pair<Limit, std::string>> held;
  absl::Time wake = absl::InfiniteFuture();
  bool sent_write = false;
  bool prepared_enough = false;
};

CloudPlan::CloudPlan(const CloudPlanOptions& options) : options_(options) {
  CHECK(options.principals > 0, "calls need a principal");
  CHECK(options.share_for_others >= 0 && options.share_for_others <= 0.9,
        "the share for others is validated before");
}

CloudPlan::~CloudPlan() = default;

CloudPlan::ClassKey CloudPlan::ClassOf(const CallRequest& options) {
  return {.kind = options.kind,
          .prepares_write = options.prepares_write,
          .subscription = options.subscription,
          .region = options.region};
}

void CloudPlan::Add(CallRequest options) {
  const uint64_t id = options.id;
  CHECK(!entries_.contains(id) && !flights_.contains(id), "one options an id");
  Entry& entry = entries_[id];
  entry.options = std::move(options);
  if (entry.options.not_before > absl::InfinitePast()) {
    MakeSleep(entry, entry.options.not_before);
  } else {
    MakeReady(entry);
  }
}

bool CloudPlan::Remove(uint64_t id) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return false;
  const Entry& entry = it->second;
  if (entry.ready) {
    auto& classes = ready_.at(IndexOf(entry.options.lane));
    const auto ready = classes.find(ClassOf(entry.options));
    ready->second.erase({entry.options.since, id});
    if (ready->second.empty()) classes.erase(ready);
  } else {
    sleeping_.erase({entry.wakes, id});
  }
  entries_.erase(it);
  return true;
}

void CloudPlan::MakeReady(Entry& entry) {
  entry.ready = true;
  ready_.at(IndexOf(entry.options.lane))[ClassOf(entry.options)].insert(
      {entry.options.since, entry.options.id});
  wake_ = absl::InfinitePast();
}

void CloudPlan::MakeSleep(Entry& entry, absl::Time until) {
  entry.ready = false;
  entry.wakes = until;
  sleeping_.insert({until, entry.options.id});
  wake_ = std::min(wake_, until);
}

void CloudPlan::Wake(absl::Time now) {
  while (!sleeping_.empty() && sleeping_.begin()->first <= now) {
    const uint64_t id = sleeping_.begin()->second;
    sleeping_.erase(sleeping_.begin());
    MakeReady(entries_.at(id));
  }
}

CloudPlan::LimitKey CloudPlan::KeyOf(const ScopedLimit& limit, const CallRequest& options,
                                     size_t principal) const {
  switch (limit.scope) {
    case LimitScope::kPrincipal:
      return {limit, fmt::format("{}/{}", principal, options.subscription)};
    case LimitScope::kRegion:
      return {limit, RegionOf(options)};
    case LimitScope::kResource:
      break;
  }
  return {limit, options.resource};
}

Throttle& CloudPlan::ThrottleOf(const LimitKey& key) {
  std::unique_ptr<Throttle>& throttle = throttles_[key];
  if (throttle == nullptr) throttle = std::make_unique<Throttle>(RateOf(key.limit));
  return *throttle;
}

const Throttle* CloudPlan::FindThrottle(const LimitKey& key) const {
  const auto it = throttles_.find(key);
  return it == throttles_.end() ? nullptr : it->second.get();
}

double CloudPlan::Needed(const LimitRate& rate, CloudLane lane) const {
  if (lane == CloudLane::kBlocking) return 1;
  return std::min(rate.capacity, 1 + rate.capacity * options_.share_for_others);
}

absl::Time CloudPlan::When(const LimitKey& key, CloudLane lane, absl::Time now) const {
  const Throttle* throttle = FindThrottle(key);
  return throttle == nullptr ? now : throttle->When(Needed(throttle->rate(), lane), now);
}

std::pair<size_t, absl::Time> CloudPlan::PickPrincipal(const CallRequest& options,
                                                       absl::Time now) const {
  const ScopedLimit front_door = LimitsOf(options.kind).back();
  size_t best = 0;
  absl::Time soonest = absl::InfiniteFuture();
  double most = -1;
  for (size_t principal = 0; principal < options_.principals; ++principal) {
    const LimitKey key = KeyOf(front_door, options, principal);
    const absl::Time when = When(key, options.lane, now);
    const Throttle* throttle = FindThrottle(key);
    const double left = throttle == nullptr ? RateOf(front_door).capacity : throttle->LeftAt(now);
    if (when < soonest || (when == soonest && left > most)) {
      best = principal;
      soonest = when;
      most = left;
    }
  }
  return {best, soonest};
}

absl::Time CloudPlan::OwnDelay(const CallRequest& options, absl::Time now) const {
  absl::Time until = now;
  const auto gate = [&](const std::string& scope) {
    const CloudGate* closed = gates_.ClosedAt(scope, now);
    if (closed != nullptr) until = std::max(until, closed->closed_until);
  };
  gate(options.resource);
  for (const std::string& scope : options.gates) gate(scope);
  for (const ScopedLimit& limit : LimitsOf(options.kind)) {
    if (limit.scope != LimitScope::kResource) continue;
    until = std::max(until, When(KeyOf(limit, options, 0), options.lane, now));
  }
  return until;
}

bool CloudPlan::EnoughPrepared(CloudLane lane, const ClassKey& key) const {
  ClassKey write = key;
  write.kind = WriteOf(key.kind);
  write.prepares_write = false;
  size_t prepared = 0;
  if (const auto it = preparing_.find(key); it != preparing_.end()) prepared += it->second;
  for (const CloudLane other : kCloudLanes) {
    if (other > lane) break;
    const auto& classes = ready_.at(IndexOf(other));
    if (const auto it = classes.find(write); it != classes.end()) prepared += it->second.size();
  }
  return prepared >= (lane == CloudLane::kBlocking ? 2 * kPreparedAhead : kPreparedAhead);
}

void CloudPlan::Send(const CallRequest& options, size_t principal, absl::Time now, Pass& pass) {
  Flight& flight = flights_[options.id];
  flight.options = options;
  for (const ScopedLimit& limit : LimitsOf(options.kind)) {
    LimitKey key = KeyOf(limit, options, principal);
    const Throttle::Ticket ticket = ThrottleOf(key).Take(1, now);
    flight.taken.emplace_back(std::move(key), ticket);
  }
  if (options.prepares_write) ++preparing_[ClassOf(options)];
  pass.sent_write |= options.kind == CallKind::kPutInstance || options.kind == CallKind::kPutNic;
  pass.admitted.push_back({.id = options.id, .principal = principal});
  Remove(uint64_t{options.id});
}

// Sends the oldest call of the class, or lets it sleep. False: no call of this class can go.
bool CloudPlan::AdmitHead(CloudLane lane, const ClassKey& key, absl::Time now, Pass& pass) {
  const uint64_t id = ready_.at(IndexOf(lane)).at(key).begin()->second;
  const CallRequest options = entries_.at(id).options;
  if (const absl::Time until = OwnDelay(options, now); until > now) {
    Remove(id);
    Entry& entry = entries_[id];
    entry.options = options;
    MakeSleep(entry, until);
    return true;
  }
  if (options.prepares_write && EnoughPrepared(lane, key)) {
    pass.prepared_enough = true;
    return false;
  }
  const auto [principal, door_opens] = PickPrincipal(options, now);
  bool free = true;
  for (const ScopedLimit& limit : LimitsOf(options.kind)) {
    if (limit.scope == LimitScope::kResource) continue;
    const bool door = limit.scope == LimitScope::kPrincipal;
    const std::pair<Limit, std::string> shared{limit.limit,
                                               door ? options.subscription : RegionOf(options)};
    const absl::Time when = door ? door_opens : When(KeyOf(limit, options, 0), lane, now);
    if (when <= now && !pass.held.contains(shared)) continue;
    free = false;
    if (when <= now) continue;
    pass.held.insert(shared);
    pass.wake = std::min(pass.wake, when);
  }
  if (free) Send(options, principal, now, pass);
  return free;
}

void CloudPlan::RunLane(CloudLane lane, absl::Time now, Pass& pass) {
  auto& classes = ready_.at(IndexOf(lane));
  std::set<ClassKey> stuck;
  const size_t most = lane == CloudLane::kBlocking
                          ? options_.most_in_flight
                          : options_.most_in_flight - options_.most_in_flight / kBlockingPart;
  while (flights_.size() < most) {
    const std::pair<const ClassKey, ReadySet>* oldest = nullptr;
    for (const auto& entry : classes) {
      if (stuck.contains(entry.first)) continue;
      if (oldest == nullptr || *entry.second.begin() < *oldest->second.begin()) oldest = &entry;
    }
    if (oldest == nullptr) return;
    const ClassKey key = oldest->first;
    if (!AdmitHead(lane, key, now, pass)) stuck.insert(key);
  }
}

std::vector<AdmittedCall> CloudPlan::Next(absl::Time now) {
  Wake(now);
  if (now >= forget_at_) ForgetResting(now);
  Pass pass;
  for (const CloudLane lane : kCloudLanes) RunLane(lane, now, pass);
  // A write that went makes room for a read that was looked at before it.
  wake_ = pass.sent_write && pass.prepared_enough ? now : pass.wake;
  if (!sleeping_.empty()) wake_ = std::min(wake_, sleeping_.begin()->first);
  return std::move(pass.admitted);
}

void CloudPlan::Observe(const Flight& flight, const CallAnswer& answer, absl::Time now) {
  for (const auto& [key, ticket] : flight.taken) {
    std::optional<double> remaining;
    if (key.limit.scope == LimitScope::kPrincipal) remaining = answer.front_door_remaining;
    for (const PolicyBudget& budget : answer.policies) {
      if (LimitNamed(budget.policy) == key.limit) remaining = budget.remaining;
    }
    ThrottleOf(key).Answered(ticket, remaining, now);
  }
  for (const PolicyBudget& budget : answer.policies) {
    if (LimitNamed(budget.policy).has_value()) continue;
    if (unknown_.size() < kMostUnknownPolicies || unknown_.contains(budget.policy)) {
      unknown_[budget.policy] = budget.remaining;
    }
  }
}

// The error names what was exceeded; or else a header says that nothing of it is left. What we
// do not know by its name is taken for the call's own limit of the subscription.
std::vector<CloudPlan::LimitKey> CloudPlan::RefusedLimits(const Flight& flight,
                                                          const CallAnswer& answer) const {
  const bool door = answer.refusal == CallAnswer::Refusal::kFrontDoor;
  std::vector<std::string> names = answer.refused_by;
  for (const PolicyBudget& budget : answer.policies) {
    if (answer.refused_by.empty() && budget.remaining <= 0) names.push_back(budget.policy);
  }
  std::vector<LimitKey> refused;
  for (const auto& taken : flight.taken) {
    const LimitKey& key = taken.first;
    const bool named = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return LimitNamed(name) == key.limit;
    });
    if (door ? key.limit.scope == LimitScope::kPrincipal : named) refused.push_back(key);
  }
  if (!refused.empty()) return refused;
  for (const auto& [key, ticket] : flight.taken) {
    if (key.limit.scope == LimitScope::kRegion) refused.push_back(key);
  }
  return refused;
}

void CloudPlan::Refuse(const Flight& flight, const CallAnswer& answer, absl::Time now,
                       double jitter) {
  const absl::Duration wait =
      std::max(absl::ZeroDuration(), answer.retry_after.value_or(kDefaultRetryAfter));
  const absl::Duration margin = jitter * std::max(absl::Seconds(1), wait / 10);
  if (answer.refusal == CallAnswer::Refusal::kResource) {
    gates_.Close(flight.options.resource, {.first = wait + margin, .most = wait + margin},
                 "another operation on " + flight.options.resource, now, jitter);
    return;
  }
  for (const LimitKey& key : RefusedLimits(flight, answer)) {
    ThrottleOf(key).Refuse(wait, margin, now);
  }
}

void CloudPlan::Answer(uint64_t id, const CallAnswer& answer, absl::Time now, double jitter) {
  const auto it = flights_.find(id);
  CHECK(it != flights_.end(), "a call that was admitted is answered, once");
  const Flight flight = std::move(it->second);
  flights_.erase(it);
  if (flight.options.prepares_write) {
    const auto preparing = preparing_.find(ClassOf(flight.options));
    if (--preparing->second == 0) preparing_.erase(preparing);
  }
  Observe(flight, answer, now);
  if (answer.refusal != CallAnswer::Refusal::kNone) Refuse(flight, answer, now, jitter);
  wake_ = std::min(wake_, now);
}

absl::Time CloudPlan::Park(std::string_view scope, const ParkTime& park, std::string why,
                           absl::Time now, double jitter) {
  return gates_.Close(scope, park, std::move(why), now, jitter);
}

void CloudPlan::Unpark(std::string_view scope) { gates_.Open(scope); }

void CloudPlan::ForgetResting(absl::Time now) {
  absl::erase_if(throttles_, [&](const auto& throttle) { return throttle.second->AtRest(now); });
  forget_at_ = now + kForgetEvery;
}

std::map<std::string, double> CloudPlan::LimitsLeft(absl::Time now) const {
  std::map<std::string, double> left;
  for (int i = 0; i <= static_cast<int>(kLastLimit); ++i) {
    left.emplace(NameOf(static_cast<Limit>(i)), 1);
  }
  for (const auto& [key, throttle] : throttles_) {
    if (key.limit.scope == LimitScope::kResource) continue;
    double& least = left.at(std::string(NameOf(key.limit.limit)));
    least = std::min(least, throttle->LeftAt(now) / throttle->rate().capacity);
  }
  return left;
}

CallPace CloudPlan::PaceOf(CallKind kind, CloudLane lane, const std::string& subscription,
                           const std::string& region, absl::Time now) const {
  CallRequest options;
  options.kind = kind;
  options.lane = lane;
  options.subscription = subscription;
  options.region = region;
  CallPace pace{.ready = -1, .per_second = 0, .open_from = now, .limit = ""};
  for (const ScopedLimit& limit : LimitsOf(kind)) {
    if (limit.scope == LimitScope::kResource) continue;
    const bool door = limit.scope == LimitScope::kPrincipal;
    const LimitRate rate = RateOf(limit);
    double ready = 0;
    double per_second = 0;
    absl::Time open = absl::InfiniteFuture();
    for (size_t principal = 0; principal < (door ? options_.principals : 1); ++principal) {
      const Throttle* throttle = FindThrottle(KeyOf(limit, options, principal));
      const double left = throttle == nullptr ? rate.capacity : throttle->LeftAt(now);
      ready += std::max(0.0, left - Needed(rate, lane) + 1);
      per_second += rate.PerSecond();
      open = std::min(open, throttle == nullptr ? now : std::max(now, throttle->closed_until()));
    }
    pace.open_from = std::max(pace.open_from, open);
    pace.ready = pace.ready < 0 ? ready : std::min(pace.ready, ready);
    if (pace.per_second == 0 || per_second < pace.per_second) {
      pace.per_second = per_second;
      pace.limit = Describe(limit, options);
    }
  }
  return pace;
}

}  // namespace spoke::ipam
