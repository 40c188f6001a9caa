// Which call to the cloud goes next. Pure: time and randomness are arguments.
//
// Calls wait here in three lanes. One goes when every limit it meets surely has room, no gate it
// must pass is closed, and nothing before it waits for the same limit: a more important lane goes
// first, and in a lane the oldest. A share of each limit is left to others who use the same
// subscriptions, which only the lane kBlocking may take of.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/calls/call_limits.h"
#include "ipam-server/cloud/calls/cloud_gates.h"
#include "ipam-server/cloud/calls/cloud_lane.h"
#include "ipam-server/cloud/calls/throttle.h"

namespace spoke::ipam {

struct CallRequest {
  uint64_t id = 0;  // The caller's; unique among those that wait or are under way.
  CallKind kind = CallKind::kGetInstance;
  CloudLane lane = CloudLane::kWarmUp;
  absl::Time since;  // When the request it serves began.
  absl::Time not_before = absl::InfinitePast();
  // The places where its limits count. All in lower case.
  std::string subscription;
  std::string region;
  std::string resource;
  std::vector<std::string> gates;  // Scopes of Park() that must be open.
  // Reads what a later write is made from. Such reads wait while enough writes are ready to go, or
  // what they read would be out of date by the time it is used.
  bool prepares_write = false;
};

struct AdmittedCall {
  uint64_t id = 0;
  size_t principal = 0;
};

// What the answer to a call says about limits.
struct CallAnswer {
  // What is left, by the names that policies have in headers; of the principal's front door.
  std::vector<PolicyBudget> policies = {};
  std::optional<double> front_door_remaining = {};
  enum class Refusal : uint8_t {
    kNone,
    kPolicy,     // The resource provider's: `refused_by`, or else the call's own.
    kFrontDoor,  // Resource Manager's.
    kResource,   // Another operation is at work on it; no limit was reached.
  };
  Refusal refusal = Refusal::kNone;
  std::vector<std::string> refused_by = {};
  std::optional<absl::Duration> retry_after = {};
};

struct CloudPlanOptions {
  double share_for_others = 0.1;  // The share of each limit, 0 to 0.9.
  size_t principals = 1;
  size_t most_in_flight = 400;
};

// How fast calls of one kind go, for forecasts.
struct CallPace {
  double ready = 0;       // The calls at once.
  double per_second = 0;  // The rate after that.
  absl::Time open_from;   // When both begin.
  std::string limit;      // The tightest limit, in words.
};

// Not thread-safe.
class CloudPlan {
 public:
  explicit CloudPlan(const CloudPlanOptions& options);
  CloudPlan(const CloudPlan&) = delete;
  CloudPlan& operator=(const CloudPlan&) = delete;
  ~CloudPlan();

  void Add(CallRequest options);
  // Whether it waited; one that does not is left alone.
  bool Remove(uint64_t id);

  // The calls to be sent now, whose budgets are taken from. Each is to be answered by Answer().
  std::vector<AdmittedCall> Next(absl::Time now);
  // When Next() may have something: InfiniteFuture if only an answer or Add() can bring it about.
  absl::Time NextWake() const { return wake_; }

  // The call has been answered, or will never be (a CallAnswer that says nothing).
  // `jitter` in [0, 1).
  void Answer(uint64_t id, const CallAnswer& answer, absl::Time now, double jitter);

  // Closes a scope for calls that name it in `gates`. Returns until when.
  absl::Time Park(std::string_view scope, const ParkTime& park, std::string why, absl::Time now,
                  double jitter);
  void Unpark(std::string_view scope);
  const CloudGate* ParkedAt(std::string_view scope, absl::Time now) const {
    return gates_.ClosedAt(scope, now);
  }

  CallPace PaceOf(CallKind kind, CloudLane lane, const std::string& subscription,
                  const std::string& region, absl::Time now) const;

  // Returns the share, 0 to 1, that is surely left of each limit that many calls share, under
  // Azure's name, where least is left of it. All limits are there.
  std::map<std::string, double> LimitsLeft(absl::Time now) const;

  size_t waiting() const { return entries_.size(); }
  size_t in_flight() const { return flights_.size(); }
  size_t throttles() const { return throttles_.size(); }
  // Names of policies that the cloud told of and that are none of ours, with what was left.
  const std::map<std::string, double>& unknown_policies() const { return unknown_; }

 private:
  struct LimitKey {
    ScopedLimit limit;
    std::string of;

    bool operator==(const LimitKey&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const LimitKey& key) {
      return H::combine(std::move(h), key.limit.limit, key.limit.scope, key.of);
    }
  };
  // Calls that meet the same shared limits.
  struct ClassKey {
    CallKind kind;
    bool prepares_write;
    std::string subscription;
    std::string region;

    auto operator<=>(const ClassKey&) const = default;
  };
  using ReadySet = std::set<std::pair<absl::Time, uint64_t>>;  // Ordered by age.
  struct Entry {
    CallRequest options;
    bool ready = false;
    absl::Time wakes;  // When it wakes, unless ready.
  };
  struct Flight {
    CallRequest options;
    std::vector<std::pair<LimitKey, Throttle::Ticket>> taken;
  };
  struct Pass;

  static ClassKey ClassOf(const CallRequest& options);
  LimitKey KeyOf(const ScopedLimit& limit, const CallRequest& options, size_t principal) const;
  Throttle& ThrottleOf(const LimitKey& key);
  const Throttle* FindThrottle(const LimitKey& key) const;
  // What must be left for a call of the lane to go.
  double Needed(const LimitRate& rate, CloudLane lane) const;
  absl::Time When(const LimitKey& key, CloudLane lane, absl::Time now) const;
  // The principal whose front door has most left, and when it lets a call through.
  std::pair<size_t, absl::Time> PickPrincipal(const CallRequest& options, absl::Time now) const;

  void MakeReady(Entry& entry);
  void MakeSleep(Entry& entry, absl::Time until);
  void Wake(absl::Time now);
  void RunLane(CloudLane lane, absl::Time now, Pass& pass);
  bool AdmitHead(CloudLane lane, const ClassKey& key, absl::Time now, Pass& pass);
  bool EnoughPrepared(CloudLane lane, const ClassKey& key) const;
  // Returns until when this call alone is kept back, by a gate or a limit of its resource; `now`:
  // it is not.
  absl::Time OwnDelay(const CallRequest& options, absl::Time now) const;
  void Send(const CallRequest& options, size_t principal, absl::Time now, Pass& pass);
  void Observe(const Flight& flight, const CallAnswer& answer, absl::Time now);
  std::vector<LimitKey> RefusedLimits(const Flight& flight, const CallAnswer& answer) const;
  void Refuse(const Flight& flight, const CallAnswer& answer, absl::Time now, double jitter);
  void ForgetResting(absl::Time now);

  const CloudPlanOptions options_;
  CloudGates gates_;
  std::array<std::map<ClassKey, ReadySet>, 3> ready_;
  std::set<std::pair<absl::Time, uint64_t>> sleeping_;
  absl::flat_hash_map<uint64_t, Entry> entries_;
  absl::flat_hash_map<uint64_t, Flight> flights_;
  absl::flat_hash_map<LimitKey, std::unique_ptr<Throttle>> throttles_;
  std::map<ClassKey, size_t> preparing_;  // Calls sent and not answered.
  std::map<std::string, double> unknown_;
  absl::Time wake_ = absl::InfiniteFuture();
  absl::Time forget_at_ = absl::InfinitePast();
};

}  // namespace spoke::ipam
