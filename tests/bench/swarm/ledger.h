// The one book of all simulated nodes: which node was given which address, and what the server did
// wrong. Thread-safe. Times are nanoseconds of any clock that does not go back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "lib/ip/address.h"
#include "tests/ha/history/history_check.h"

namespace spoke::swarm {

class Ledger {
 public:
  // Whether all that Note() is told is kept, to be judged at the end.
  enum class Memory : uint8_t { kNone, kAll };

  // Makes a ledger. `cooldown` is for how long, in nanoseconds, what one node has given up must not
  // be given to another; 0: not watched.
  explicit Ledger(int64_t cooldown = 0, Memory memory = Memory::kNone)
      : cooldown_(cooldown), memory_(memory) {}

  // Notes that `node` was told that it has `address`. Returns the node that has it already and has
  // not given it up; nothing changes then. Claiming twice for one node has the effect of once.
  // Complains when another node gave it up less than the cooldown ago.
  std::optional<uint32_t> Claim(const ip::Address& address, uint32_t node, int64_t now);

  // Notes that `node` has agreed to give up `address`: from now on another may be given it. Nothing
  // changes when it is not the node's.
  void GiveUp(const ip::Address& address, uint32_t node, int64_t now);

  // Notes what a node saw or did besides: Claim() and GiveUp() note themselves.
  void Note(const ha::Event& event);
  // Returns all that was noted, in the order in which it was; nothing without a memory.
  std::vector<ha::Event> history() const;

  // Returns the number of addresses that some node has.
  size_t size() const;
  // Returns how often an address went to another node than had it before.
  uint64_t moves() const;

  // Notes a fault of the server. `kind` is a stable word; only the first texts are kept.
  void Complain(std::string_view kind, std::string text);

  struct Complaints {
    uint64_t total = 0;
    std::map<std::string, uint64_t> by_kind;
    std::vector<std::string> first;  // The texts, at most kTextsKept, with their kinds.
  };
  static constexpr size_t kTextsKept = 20;
  Complaints complaints() const;

 private:
  struct Owner {
    uint32_t node = 0;  // The node that has it, or had it last.
    bool given_up = false;
    int64_t given_up_at = 0;
  };

  const int64_t cooldown_;
  const Memory memory_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<ip::Address, Owner, ip::AddressHash> owners_ ABSL_GUARDED_BY(mutex_);
  size_t owned_ ABSL_GUARDED_BY(mutex_) = 0;  // The number of owners_ that have not given it up.
  uint64_t moves_ ABSL_GUARDED_BY(mutex_) = 0;
  Complaints complaints_ ABSL_GUARDED_BY(mutex_);
  std::vector<ha::Event> history_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::swarm
