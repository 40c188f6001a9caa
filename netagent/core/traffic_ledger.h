// Who was who: pods that are here and pods that have gone but not yet been settled, and what all
// that was counted adds up to. Pure.
//
// Not thread-safe; Traffic owns it. The counts themselves are in the kernel.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "netagent/core/traffic_class.h"
#include "netagent/core/traffic_plan.h"
#include "netagent/core/traffic_pod.h"
#include "netagent/core/traffic_totals.h"

namespace spoke::netagent {

// By their namespaces' names; "" where that is not known.
using AddressOwners = std::map<ip::Address, std::string>;

class TrafficLedger {
 public:
  // A pod that has gone keeps its own figures for so many reads, and no longer than this.
  static constexpr int kReadsAfterEnd = 2;
  static constexpr absl::Duration kKeptAfterEnd = absl::Minutes(5);
  // More that have gone are settled at once, the oldest first.
  static constexpr size_t kMaxEnded = 1024;

  void Began(const TrafficPod& pod);
  // OK when there is none.
  void Ended(const std::string& host_link, absl::Time now);
  // `pod`, the last that ended, has not ended after all.
  void Restore(const TrafficPod& pod);

  const TrafficPod* Find(const std::string& host_link) const;
  const std::map<std::string, TrafficPod>& live() const { return live_; }

  // Addresses of pods that have gone and whose counts are to be settled now; and those that must be
  // before `pod` can begin, together with all other addresses of the same pods.
  AddressOwners Due(absl::Time now) const;
  AddressOwners InTheWayOf(const TrafficPod& pod) const;
  // Their counts are in the counters of their namespaces.
  void Settled(const AddressOwners& addresses);
  // Whether `address` is of a pod that is here or not settled yet.
  bool Knows(const ip::Address& address) const;
  // When Due() has something next; the future without end when nothing waits.
  absl::Time NextDue() const;

  // What `readings` add up to; the fields that are not sums are the caller's. With `groups` of old
  // policies too. A scrape counts as a read.
  TrafficTotals Total(const TrafficReadings& readings,
                      const std::map<std::string, ClassNumber>& groups, bool is_scrape);

 private:
  struct Gone {
    TrafficPod pod;
    absl::Time at;
    int reads = 0;
  };
  bool IsDue(const Gone& gone, absl::Time now) const;

  std::map<std::string, TrafficPod> live_;
  std::vector<Gone> gone_;  // The oldest first.
};

// "cluster", "group:NAME"; "other" of a number without a name.
std::string ClassName(ClassNumber number, const std::map<std::string, ClassNumber>& groups);

}  // namespace spoke::netagent
