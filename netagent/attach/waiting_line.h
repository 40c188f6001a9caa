// Who waits for an address, in the order of arrival, and until when. Pure: no I/O, no clock.
//
// It says who is next, not whether there is something for them: a pod whose pools are empty does
// not hold up one behind it that is assigned from another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace spoke::netagent {

struct Waiter {
  uint64_t id = 0;  // The caller's.
  std::string pod_namespace;
  absl::Time deadline;  // When it has to be told that nothing has come.
  // It waits for one address that is here, such as one that cools: more of them would not help.
  bool picky = false;

  bool operator==(const Waiter&) const = default;
};

// Not thread-safe. Times are of any one clock.
class WaitingLine {
 public:
  // A node has at most some hundreds of pods, and each that waits holds two descriptors.
  static constexpr size_t kMaxWaiters = 256;

  // At the end of the line. False: the line is full, or somebody of that id is in it.
  [[nodiscard]] bool Join(Waiter waiter);

  // Leaves the line, from wherever. One that is not in it changes nothing.
  void Leave(uint64_t id);

  // The first is next.
  std::vector<Waiter> InOrder() const;

  // Those whose deadline has come, in order; they have left the line.
  std::vector<Waiter> TakeOverdue(absl::Time now);
  // When TakeOverdue() has something to do next; nullopt: nobody waits.
  std::optional<absl::Time> NextDeadline() const;

  // How many pods of which namespace wait for addresses that are not here.
  std::map<std::string, uint32_t> Demand() const;

  size_t size() const { return by_arrival_.size(); }
  bool empty() const { return by_arrival_.empty(); }

 private:
  std::map<uint64_t, Waiter> by_arrival_;    // By a number that rises.
  std::map<uint64_t, uint64_t> arrival_of_;  // By id.
  uint64_t arrivals_ = 0;
};

}  // namespace spoke::netagent
