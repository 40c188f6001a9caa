// A ConntrackTable for tests: a list of connections.
#pragma once

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "lib/base/status.h"
#include "netagent/connections/conntrack_table.h"

namespace spoke::netagent {

// Thread-safe.
class FakeConntrackTable final : public ConntrackTable {
 public:
  using Connection = std::array<ip::Address, 4>;

  Outcome DeleteConnectionsOf(const AddressSet& addresses) override {
    const absl::MutexLock lock(&mutex_);
    asked_.push_back({addresses.begin(), addresses.end()});
    Outcome outcome;
    if (!failure_.ok()) {
      outcome.status = failure_;
      outcome.left = {addresses.begin(), addresses.end()};
      return outcome;
    }
    outcome.seen = connections_.size();
    const AddressSet undeletable(undeletable_.begin(), undeletable_.end());
    std::erase_if(connections_, [&](const Connection& connection) {
      if (!IsOfAny(connection, addresses)) return false;
      if (!IsOfAny(connection, undeletable)) {
        ++outcome.deleted;
        return true;
      }
      outcome.status = absl::UnavailableError("the connection is forwarded by hardware");
      for (const ip::Address& end : connection) {
        if (addresses.contains(end)) outcome.left.insert(end);
      }
      return false;
    });
    return outcome;
  }

  // Counts all connections as UDP, answered from port 0.
  absl::Status Count(ConnectionTally& tally) override {
    const absl::MutexLock lock(&mutex_);
    tally.Reset();
    ++counts_;
    RETURN_IF_ERROR(failure_);
    constexpr uint8_t kUdp = 17;
    for (const Connection& connection : connections_) tally.Add(connection, kUdp, 0);
    return absl::OkStatus();
  }

  CutOutcome Cut(const CutRules& rules, Act act) override {
    const absl::MutexLock lock(&mutex_);
    ++(act == Act::kCut ? cuts_ : forecasts_);
    CutOutcome outcome;
    outcome.status = failure_;
    if (!failure_.ok()) return outcome;
    const AddressSet undeletable(undeletable_.begin(), undeletable_.end());
    std::vector<Connection> left;
    for (const Connection& connection : connections_) {
      const TrackedFlow flow{.ends = connection,
                             .mark = cut_.contains(connection) ? claims::kFlowCut : 0};
      FlowFate fate = rules.FateOf(flow);
      rules.Count(flow, fate, outcome.found);
      if (act == Act::kCount) fate = FlowFate::kStays;
      if (fate != FlowFate::kStays && IsOfAny(connection, undeletable)) {
        outcome.status = absl::UnavailableError("the connection is forwarded by hardware");
        fate = FlowFate::kStays;
      }
      outcome.Add(fate);
      if (fate == FlowFate::kCut) cut_.insert(connection);
      if (fate == FlowFate::kReleased) cut_.erase(connection);
      if (fate == FlowFate::kStays || fate == FlowFate::kCut) left.push_back(connection);
    }
    connections_ = std::move(left);
    return outcome;
  }

  void Add(const Connection& connection) {
    const absl::MutexLock lock(&mutex_);
    connections_.push_back(connection);
  }
  // Makes every call fail from now on.
  void Fail(absl::Status failure) {
    const absl::MutexLock lock(&mutex_);
    failure_ = std::move(failure);
  }
  // Makes connections of these addresses stay from now on.
  void Keep(std::set<ip::Address> addresses) {
    const absl::MutexLock lock(&mutex_);
    undeletable_ = std::move(addresses);
  }
  std::vector<Connection> connections() const {
    const absl::MutexLock lock(&mutex_);
    return connections_;
  }
  // The number of calls of Count().
  size_t counts() const {
    const absl::MutexLock lock(&mutex_);
    return counts_;
  }
  // The part of connections() that bears claims::kFlowCut.
  std::set<Connection> cut() const {
    const absl::MutexLock lock(&mutex_);
    return cut_;
  }
  // The number of calls of Cut() that cut.
  int cuts() const {
    const absl::MutexLock lock(&mutex_);
    return cuts_;
  }
  // The number of calls of Cut() that only counted.
  int forecasts() const {
    const absl::MutexLock lock(&mutex_);
    return forecasts_;
  }
  // The addresses of each call.
  std::vector<std::set<ip::Address>> asked() const {
    const absl::MutexLock lock(&mutex_);
    return asked_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::set<Connection> cut_ ABSL_GUARDED_BY(mutex_);
  int cuts_ ABSL_GUARDED_BY(mutex_) = 0;
  int forecasts_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::set<ip::Address> undeletable_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::set<ip::Address>> asked_ ABSL_GUARDED_BY(mutex_);
  size_t counts_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spoke::netagent
