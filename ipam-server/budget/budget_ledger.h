// The grants of one budget: who may believe to hold what of it, what nodes want, and what each is
// to have next. Pure. Parts of BudgetBook, which see; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "ipam-server/budget/allocation.h"
#include "ipam-server/budget/budget_spec.h"
#include "ipam-server/budget/grant_belief.h"
#include "lib/node_api/budgets.h"

namespace spoke::ipam {

struct LedgerEntry;

// Messages are numbered on over all streams of a node here; in a stream they begin with 1.
struct LedgerNode {
  uint64_t number = 0;
  uint64_t sent = 0;         // The last message.
  uint64_t stream_base = 0;  // The last one before this stream.
  uint64_t applied = 0;      // The last one that the node says it applies.
  uint64_t reported = 0;     // Sequence of this stream's last report; 0: none yet.
  uint64_t answered = 0;     // The one that the last message answered.
  absl::Time reported_at = absl::InfinitePast();
  absl::Time sent_at = absl::InfinitePast();
  absl::Time granted_from = absl::InfinitePast();  // When the report came that was answered.
  bool due = false;                                // Its grants are to be sent.
  std::vector<LedgerEntry*> entries;               // The entries of all budgets.
};

struct LedgerTeam {
  BudgetTeam spec;
  bool retired = false;  // The budget names it no more, but nodes may still hold grants of it.
  size_t index = 0;      // Its place in the spec's teams, if not retired.
  units::FractionalBitRate fair;  // The last plan's fair share.
};

// One team on one node.
struct LedgerEntry {
  LedgerNode* node = nullptr;
  LedgerTeam* team = nullptr;
  class BudgetLedger* ledger = nullptr;
  size_t slot = 0;  // Its place in the ledger's entries.
  GrantBelief belief;

  // The values of the node's last report.
  bool reported = false;
  bool held_back = false;
  units::BitRate usage;
  units::BitRate demand;
  units::BitRate throttled;
  uint32_t connections = 0;
  uint32_t refused_connections = 0;

  // The values of the last message.
  units::BitRate sent_rate;
  uint32_t sent_connections = 0;

  // The values of the plan that is being made.
  bool live = false;         // The node was heard lately.
  bool can_be_told = false;  // The node can be sent something now.
  units::BitRate believed;
  uint32_t believed_connections = 0;
  units::BitRate target;  // When all that has to be taken back has been.
  units::BitRate grant;   // The grant now.
  uint32_t target_connections = 0;
  uint32_t grant_connections = 0;
};

class BudgetLedger {
 public:
  // `unheard`: nodes that may hold grants from before `started`, when they are known.
  struct Learning {
    absl::Time started;
    std::optional<absl::flat_hash_set<uint64_t>> unheard;
  };
  BudgetLedger(BudgetSpec spec, Learning learning);
  // Takes the nodes that may hold grants from before the start, if they were not known then.
  void ExpectNodes(const std::vector<uint64_t>& nodes);

  const BudgetSpec& spec() const { return spec_; }
  bool retired() const { return retired_; }
  void SetSpec(BudgetSpec spec);
  // Ends the budget: there is none any more, and it takes everything back.
  void Retire() { retired_ = true; }
  // Returns whether nobody can have anything of it any more.
  bool over() const { return retired_ && entries_.empty(); }

  // What a report says of this budget. Returns whether to decide soon.
  bool OnReport(LedgerNode& node, const std::vector<node_api::BudgetUse>& uses, absl::Time now);
  // The node applies this message. Returns whether to decide soon.
  bool OnApplied(LedgerEntry& entry, uint64_t message, absl::Time now);
  // The message `sent` to the entry's node has its grant.
  void OnSent(LedgerEntry& entry);
  void OnNodeGone(LedgerNode& node);  // Frees whatever it held.

  // Sets the grants, and `due` of nodes that should hear of theirs. Removes what nobody holds.
  void Plan(absl::Time now);

  // The capacity without what is set apart for floors.
  units::BitRate Grantable() const;
  units::BitRate Floors() const;
  units::BitRate UnknownAt(absl::Time now) const;
  absl::Duration LearningAt(absl::Time now) const;
  units::BitRate BelievedOf(const LedgerEntry& entry, absl::Time now) const;
  units::BitRate BelievedAt(absl::Time now) const;  // The sum of all known nodes.
  const std::vector<std::unique_ptr<LedgerTeam>>& teams() const { return teams_; }
  const std::vector<std::unique_ptr<LedgerEntry>>& entries() const { return entries_; }

 private:
  struct Sums {
    units::BitRate believed;
    units::BitRate stuck;  // The part that silent nodes believe.
    uint64_t believed_connections = 0;
    uint64_t stuck_connections = 0;
  };
  LedgerTeam* FindTeam(std::string_view name) const;
  LedgerEntry* FindEntry(const LedgerNode& node, std::string_view team) const;
  LedgerEntry* EntryOf(LedgerNode& node, std::string_view team);
  void Remove(LedgerEntry& entry);
  void Learn(const LedgerNode& node, units::BitRate held, absl::Time now);
  absl::Time HeldUntil(absl::Time from) const;
  bool TakeUse(LedgerEntry& entry, const node_api::BudgetUse& use);
  void TakeHeld(LedgerEntry& entry, units::BitRate held, uint32_t connections, absl::Time now);
  bool IsHeard(const LedgerNode& node, absl::Time now) const;
  static bool CanBeTold(const LedgerNode& node, absl::Time now);

  // Steps of Plan(), in this order. Bare numbers are bits a second while they are shared out.
  Sums Look(absl::Time now);
  void SetTargets(units::FractionalBitRate pool);
  double RestoreHeadroom(double rest, std::vector<double>& room);
  void LendRest(double rest, const std::vector<double>& room);
  void SetConnectionTargets(const Sums& sums, double unknown_part);
  void SetGrants(const Sums& sums, units::BitRate unknown);
  void GrantFree(units::BitRate free);
  void ChooseDue(units::BitRate free, absl::Time now);
  void TakeBack(units::BitRate needed, absl::Time now);
  static void SetDue(LedgerNode& node, absl::Time now);

  BudgetSpec spec_;
  bool retired_ = false;
  // Nodes may go by an older policy than ours, so the longest times there were.
  absl::Duration grant_;
  absl::Duration hold_;
  absl::Duration half_life_;
  units::BitRate most_capacity_;
  Learning learning_;
  units::BitRate unknown_;  // Its value at the start, without what was heard of since.
  absl::flat_hash_set<uint64_t> heard_;
  bool waited_for_ = false;  // Something that is being taken back is wanted by others.
  std::vector<std::unique_ptr<LedgerTeam>>
      teams_;  // The first are those of the spec, in its order.
  std::vector<std::unique_ptr<LedgerEntry>> entries_;
};

}  // namespace spoke::ipam
