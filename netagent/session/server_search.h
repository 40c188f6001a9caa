// Decides which of several servers is dialled next, and when. Pure: the caller measures time and
// draws the random numbers, each uniform in [0, 1).
//
// Servers are dialled in rounds, each once a round. The next one is dialled as soon as one has
// failed, or has not answered within its head start. A dial that has not answered goes on, over the
// end of the round too: a server to which all agents come in one moment takes seconds for a
// handshake, and an agent that began anew would make it slower. A machine that is gone, or a
// process that hangs, answers as little.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace spoke::netagent {

// Not thread-safe.
class ServerSearch {
 public:
  // The time for which a server that is dialled is the only one.
  static constexpr absl::Duration kHeadStart = absl::Milliseconds(500);
  // The time within which the next is dialled after one has failed: agents that have lost the same
  // server do not come to the next one in step.
  static constexpr absl::Duration kStep = absl::Milliseconds(50);

  // `servers` is how many there are, from 1; they are numbered from 0 in the order of the list.
  explicit ServerSearch(size_t servers) : dialled_(servers, false) {}

  // Begins a round: `first`, then those behind it in the list, then those before it. Servers whose
  // dial has not been answered are left out, and `without` is as well.
  void BeginRound(size_t first, std::optional<size_t> without, absl::Time now);
  // Returns the server to be dialled now; nullopt: none before NextWake().
  std::optional<size_t> Next(absl::Time now);
  // Returns when Next() or EndRound() has something to do; never without a round.
  absl::Time NextWake() const { return round_ ? due_ : absl::InfiniteFuture(); }
  // Ends the round once each server has failed or had its head start; false: it goes on, or there
  // is none.
  bool EndRound(absl::Time now);

  // Notes that the dial of `server` has failed. Returns false for one that is not dialled.
  bool OnFailed(size_t server, absl::Time now, double random);
  // Forgets the round and all dials; false: there was nothing to forget.
  bool Stop();

  size_t servers() const { return dialled_.size(); }
  bool IsDialled(size_t server) const { return dialled_[server]; }
  bool in_round() const { return round_; }

 private:
  std::vector<bool> dialled_;  // Whether the dial of each server waits for its answer.
  bool round_ = false;
  std::deque<size_t> rest_;     // The servers of the round that are to be dialled.
  std::optional<size_t> last_;  // The one that was dialled last in this round.
  absl::Time due_;
};

}  // namespace spoke::netagent
