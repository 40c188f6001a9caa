// Things of the cloud that nothing is to be asked of for a while: a VM, a scale set, a subnet that
// is full. Each time the same thing is closed again the wait doubles. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace spoke::ipam {

// How long for, at first and at most.
struct ParkTime {
  absl::Duration first;
  absl::Duration most;
};
// We may not, and an operator has to see to it. Retrying such calls is what once used up a whole
// subscription's budget (github.com/cilium/cilium/issues/19695).
inline constexpr ParkTime kForbiddenPark = {absl::Minutes(5), absl::Minutes(30)};
inline constexpr ParkTime kSubnetFullPark = {absl::Minutes(2), absl::Minutes(30)};
// The park after Azure refuses until something else has changed. With what is cleaned up after an
// operation that failed, at most six writes an hour.
inline constexpr ParkTime kRefusedPark = {absl::Minutes(10), absl::Minutes(30)};
inline constexpr ParkTime kRejectedPark = {absl::Minutes(1), absl::Minutes(30)};
inline constexpr ParkTime kConflictPark = {absl::Seconds(5), absl::Seconds(40)};
inline constexpr ParkTime kFailedPark = {absl::Seconds(1), absl::Minutes(2)};

struct CloudGate {
  absl::Time closed_until;
  int closings = 0;  // Closings in a row.
  std::string why;   // The reason, for people.
};

// Not thread-safe. It keeps no more than was closed lately.
class CloudGates {
 public:
  // Returns until when it is closed. `jitter` in [0, 1) makes it up to a tenth longer.
  absl::Time Close(std::string_view scope, const ParkTime& park, std::string why, absl::Time now,
                   double jitter);
  // Notes that it worked: the next wait is the first again.
  void Open(std::string_view scope);
  // Returns the gate that is closed; nullptr: open.
  const CloudGate* ClosedAt(std::string_view scope, absl::Time now) const;
  size_t size() const { return gates_.size(); }

 private:
  void Forget(absl::Time now);

  std::map<std::string, CloudGate, std::less<>> gates_;
  size_t forget_at_ = 1024;
};

}  // namespace spoke::ipam
