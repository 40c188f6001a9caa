// Whether the server may decide anything, or whether its store may be older than what nodes were
// told: after a restored backup, a lost store, or when a second server runs on another store. What
// such a store calls free may be in use, so that nothing is decided from it before the nodes have
// spoken. Pure.
//
// A store has an identity and an epoch, which rises with each commit, but for those while nobody is
// told anything: an old store must not come up to what nodes were told of a newer one. Nodes are
// told both as their mark, signed, and show it when they connect. The server keeps its own beside
// its store.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/ledger/node_record.h"

namespace spoke::ipam {

// How far a store had come.
struct StoreMark {
  std::string store_id;
  uint64_t epoch = 0;
  uint64_t nodes = 0;  // The nodes that had addresses then.

  bool operator==(const StoreMark&) const = default;
};

// What the store holds of this.
struct RecoveryState {
  struct Cause {
    std::string reason;  // A sentence.
    absl::Time since;
    uint64_t nodes = 0;  // The nodes that had addresses, at least.

    bool operator==(const Cause&) const = default;
  };

  std::string store_id;
  uint64_t epoch = 0;
  // Stores that a recovery has taken over: their marks say nothing new. The newest last.
  std::vector<std::string> former;
  std::optional<Cause> cause;  // A recovery is under way.
  // The time until which nodes whose marks cannot be verified are taken, on an operator's word.
  absl::Time unverified_until = absl::InfinitePast();
  // The leadership in which the store was last taken for the newest there is; 0: in none, or this
  // one has not come to that yet.
  int64_t opened_under = 0;
  // When a recovery was last over; InfinitePast: there was none. Since then machines may come that
  // this store never knew, though their agents have had addresses.
  absl::Time recovered = absl::InfinitePast();
  // It was read from a backup, which says of itself that it is one: see store/record_codec.h.
  bool backup = false;

  bool operator==(const RecoveryState&) const = default;
};

// What lies beside the store when a server starts.
struct Witness {
  std::optional<StoreMark> last;  // The mark that a server last wrote here.
  // It was written in this boot of the machine, and no other server can have written the store
  // since.
  bool same_boot = false;
  bool first_start = false;  // Nothing that could be shown was ever signed here.
};

// Not thread-safe; the loop owns it.
class Recovery {
 public:
  enum class Phase : uint8_t {
    kOpen,        // The store is taken to be the newest there is.
    kProving,     // Nothing speaks against it, and nodes have some time to do so.
    kRecovering,  // The store may be old: every node has to speak, or an operator.
  };

  // What nobody contradicts for so long holds.
  static constexpr absl::Duration kProvingTime = absl::Minutes(1);
  // For so long at the least either takes, whoever has spoken: within it agents that had lost their
  // server are back, also those that an old store does not know, or whose name another has.
  static constexpr absl::Duration kLeastTime = absl::Seconds(15);
  static constexpr absl::Duration kUnverifiedTime = absl::Hours(1);
  // A node that was refused tries again within less; one that does not is gone.
  static constexpr absl::Duration kRefusedTime = absl::Minutes(10);
  static constexpr size_t kMostFormer = 8;

  Recovery() = default;
  explicit Recovery(RecoveryState state) : state_(std::move(state)) {
    if (state_.cause) phase_ = Phase::kRecovering;
  }

  // Compares the store that was loaded with what lies beside it. `leadership`: under which the
  // store is written from now on; 0: it has no leaders. Call once, at start.
  void Begin(const Witness& witness, absl::Time now, int64_t leadership = 0);

  // A node shows what it was told. True: that begins a recovery.
  bool OnMark(const StoreMark& shown, absl::Time now);
  // A node shows what cannot be verified, for the reason `why`. False: it is taken all the same.
  bool Refuse(const std::string& node, const std::string& why, absl::Time now);
  // Notes that it shows nothing of that kind any more.
  void Accept(const std::string& node) { refused_.erase(node); }
  // Forgets the refused nodes that have not been there for kRefusedTime.
  void ForgetRefused(absl::Time now);

  // The node has said all that it has.
  void OnSpoken(const NodeKey& node);
  // A node that the store knows shows nothing that it was told: it was reimaged, or has lost it.
  // What nobody contradicts is nothing that it confirms. Call while proving.
  void OnForgotten(const NodeKey& node) { forgotten_.insert(node); }
  // The cloud has it no more: it will never speak.
  void OnGone(const NodeKey& node);

  // Whether nothing is in the way any more. `known`: the nodes that have addresses in the store.
  bool MayOpen(const std::vector<NodeKey>& known, absl::Time now) const;
  // Whether it may not open yet, whoever is known: a look at nodes is of no use before.
  bool IsEarly(absl::Time now) const;
  // Whether it may not open as long as `node` has addresses: nor need others be looked at.
  bool WaitsFor(const NodeKey& node, absl::Time now) const;
  // Whether it has yet to speak.
  bool IsAwaited(const NodeKey& node) const;
  // How many of `known`, and of those that must be there beyond them, have not spoken.
  uint64_t Silent(const std::vector<NodeKey>& known) const;
  // Ends proving or recovery.
  void Open(absl::Time now);
  // The store was read anew, and is behind what was decided: an end that it does not have has not
  // been. Nodes have to speak again, and have as much time for it as at the start: while the store
  // could not be written nobody heard them. A store that is behind what was committed was restored
  // under this server, which begins a recovery; `nodes` had addresses before.
  void OnReload(const RecoveryState& stored, uint64_t nodes, absl::Time now);
  // The store's mark; `nodes` have addresses.
  StoreMark Mark(uint64_t nodes) const { return {state_.store_id, state_.epoch, nodes}; }
  // An operator takes nodes in whose marks cannot be verified, for a while.
  void AcceptUnverified(absl::Time now);

  Phase phase() const { return phase_; }
  bool open() const { return phase_ == Phase::kOpen; }
  // Returns the reason; empty when open.
  std::string Reason() const;
  const std::set<NodeKey>& spoken() const { return spoken_; }
  const std::set<NodeKey>& forgotten() const { return forgotten_; }
  struct Refusal {
    std::string why;
    absl::Time at;  // The last one of the node.
  };
  // The refused nodes by name.
  const std::map<std::string, Refusal>& refused() const { return refused_; }
  const RecoveryState& state() const { return state_; }
  // Returns the state that the next commit stores.
  RecoveryState Next() const;
  void Committed() { committed_ = state_.epoch = Next().epoch; }

 private:
  void Recover(std::string reason, uint64_t nodes, absl::Time now);
  uint64_t Expected() const;  // How many nodes there must be, at least.

  RecoveryState state_;
  Phase phase_ = Phase::kOpen;
  int64_t leadership_ = 0;
  uint64_t committed_ = 0;      // The epoch of the last commit of this server; 0: none yet.
  absl::Time proven_at_;        // Set while proving.
  absl::Time recovers_since_;   // Set while recovering: nodes have been asked since then.
  uint64_t highest_seen_ = 0;   // The epoch shown for our own store.
  std::set<std::string> seen_;  // Other stores whose marks were shown.
  std::set<NodeKey> spoken_;
  std::set<NodeKey> forgotten_;
  std::set<NodeKey> gone_;
  std::map<std::string, Refusal> refused_;
};

constexpr std::string_view NameOf(Recovery::Phase phase) {
  switch (phase) {
    case Recovery::Phase::kOpen:
      return "open";
    case Recovery::Phase::kProving:
      return "proving";
    case Recovery::Phase::kRecovering:
      return "recovering";
  }
  return "open";
}

}  // namespace spoke::ipam
