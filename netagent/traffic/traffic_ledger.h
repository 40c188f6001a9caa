// Knows who was who: pods that are here and pods that have gone, and what all that was counted adds
// up to. Pure.
//
// A pod that has gone is settled: what the kernel's sets counted for its addresses is added to the
// counters of its namespace, so that the addresses can be another pod's. Its own figures stay here
// until they have been read.
//
// Not thread-safe; Traffic owns it. All other counts are in the kernel.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "netagent/classes/traffic_class.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/traffic/traffic_plan.h"
#include "netagent/traffic/traffic_totals.h"

namespace spoke::netagent {

// The names of the addresses' namespaces; "" where that is not known.
using AddressOwners = std::map<ip::Address, std::string>;

class TrafficLedger {
 public:
  // The most reads, and the longest time, for which a pod that has gone keeps its own figures.
  static constexpr int kReadsAfterEnd = 2;
  static constexpr absl::Duration kKeptAfterEnd = absl::Minutes(5);
  // The most ended pods that are kept; beyond it the oldest go first.
  static constexpr size_t kMaxEnded = 1024;
  // The time after a pod's end when it is settled; pods that end within it are settled together: to
  // settle is to read all that the kernel has counted. It is much less than an address's cooldown,
  // since a pod that gets one before has to wait for it.
  static constexpr absl::Duration kSettleAfter = absl::Milliseconds(500);

  void Began(const TrafficPod& pod);
  // Notes the pod's end. Does nothing when there is no such pod.
  void Ended(const std::string& host_link, absl::Time now);
  // Brings `pod`, the last that ended, back: it has not ended after all.
  void Restore(const TrafficPod& pod);

  const TrafficPod* Find(const std::string& host_link) const;
  const std::map<std::string, TrafficPod>& live() const { return live_; }

  // Return the addresses of all pods that have gone and are not settled; and those that must be
  // settled before `pod` can begin, together with all other addresses of the same pods.
  AddressOwners Unsettled() const;
  AddressOwners InTheWayOf(const TrafficPod& pod) const;
  // Notes that the counts of these, as `readings` had them, are in the counters of their
  // namespaces.
  void Settled(const AddressOwners& addresses, const TrafficReadings& readings,
               const std::map<std::string, ClassNumber>& groups);
  // Drops the figures of pods that have been shown enough.
  void Forget(absl::Time now);
  // Returns whether `address` is of a pod that is here or not settled yet.
  bool Knows(const ip::Address& address) const;
  // Returns when the first of Unsettled() is to be settled; the infinite future when there is none.
  absl::Time NextDue() const;

  // Returns what `readings` add up to; the fields that are not sums are the caller's. `groups` has
  // those of old policies too. A scrape counts as a read.
  TrafficTotals Total(const TrafficReadings& readings,
                      const std::map<std::string, ClassNumber>& groups, bool is_scrape);

 private:
  struct Gone {
    TrafficPod pod;
    absl::Time at;
    int reads = 0;
    // The volumes that it counted, once it is settled.
    std::optional<CountByClass> settled = std::nullopt;
  };

  std::map<std::string, TrafficPod> live_;
  std::vector<Gone> gone_;  // The pods that have gone, the oldest first.
};

// Returns a class's name: "cluster", "group:NAME"; "other" for a number without a name.
std::string ClassName(ClassNumber number, const std::map<std::string, ClassNumber>& groups);

}  // namespace spoke::netagent
