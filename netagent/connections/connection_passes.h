// Decides which tracked connections outlive a pod, and when the kernel's table is looked through
// for them. Pure: no I/O, no clock.
//
// The next pod that has an address must not meet its predecessor's connections: the kernel would
// translate by them, let through by them, and count them against the pod's limits. So they are
// deleted during the address's cooldown (attach/assignments.h). The table can be listed only as a
// whole, which takes 0.2 s of a processor for 100,000 entries: so one pass serves every address
// that waits, and there are bounds on how often.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_set>

#include "absl/time/time.h"
#include "lib/ip/address.h"

namespace spoke::netagent {

using AddressSet = std::unordered_set<ip::Address, ip::AddressHash>;

// Whether one of `ends` is in `released`. A connection's ends are source and destination in both
// its directions: so it is found whether the address began it, was reached by it, or was what
// somebody else's address was translated to.
bool IsOfAny(std::span<const ip::Address> ends, const AddressSet& released);

// When to begin passes. Not thread-safe.
class ConnectionPasses {
 public:
  // The limits of the pause from the end of one pass to the beginning of the next. The pause is a
  // quarter of the cooldown, so that whatever is released meanwhile is done in time, or as long as
  // the last pass took, if that is longer.
  static constexpr absl::Duration kShortestPause = absl::Seconds(1);
  static constexpr absl::Duration kLongestPause = absl::Seconds(10);
  // The pause before an address whose connections could not be deleted makes another pass
  // necessary. A pass that others make necessary tries it as well.
  static constexpr absl::Duration kRetryPause = absl::Seconds(10);

  explicit ConnectionPasses(absl::Duration cooldown);

  // When to begin the next pass for the addresses that wait; nullopt: nothing waits, or a pass is
  // under way.
  std::optional<absl::Time> NextPass(const std::set<ip::Address>& waiting) const;

  // Notes that a pass has begun, which serves all that wait now.
  void OnBegun(absl::Time now);
  // Notes that it has ended. `failed` are the addresses it could not do: they go on waiting.
  void OnEnded(absl::Time now, const std::set<ip::Address>& failed);

  bool under_way() const { return begun_.has_value(); }

 private:
  absl::Duration pause_;
  std::optional<absl::Time> begun_;
  absl::Time not_before_ = absl::InfinitePast();
  std::map<ip::Address, absl::Time> retry_at_;
};

}  // namespace spoke::netagent
