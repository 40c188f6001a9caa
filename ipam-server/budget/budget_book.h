// Grants of budgets: what each node was given, what it may still believe it has, and what it is to
// be given next. Pure: times are handed in, of one monotonic clock.
//
// The law: at every instant, what all nodes may use of a budget is at most its capacity. So a grant
// grows only out of what is certainly free: a smaller grant counts as the larger one before it
// until the node says that it applies it, or until the larger one has run out by the node's own
// rules (held, then halved), as the server can reckon them, with a hundredth more for its clock.
// After a start the server does not know what is granted: all of the capacity counts as taken by
// nodes that have not been heard, until the longest grant there can be has decayed; what a node
// reports as held is carried over from "unknown" to "its own".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/budget/budget_spec.h"
#include "lib/node_api/budgets.h"

namespace spoke::ipam {

// What operators see of a team.
struct TeamStanding {
  std::string team;
  double weight = 1;
  units::BitRate min;
  units::BitRate max;
  units::BitRate usage = {};
  units::BitRate demand = {};
  units::BitRate granted = {};
  units::BitRate fair = {};  // Its share if all were settled.
  units::BitRate throttled = {};
  uint32_t connections = 0;
  uint32_t refused_connections = 0;
  uint32_t nodes = 0;  // The nodes that report it.
};

struct BudgetStanding {
  BudgetSpec spec;
  units::BitRate usage = {};
  units::BitRate granted = {};  // The known grants, at their largest.
  units::BitRate unknown = {};  // Maybe held by nodes that were not heard since the start.
  units::BitRate floors = {};   // The rate set apart for floors.
  absl::Duration learning;      // The time left; zero: over.
  std::vector<TeamStanding> teams;
};

struct NodeBudgetStanding {
  uint64_t node = 0;
  std::string budget;
  std::string team;
  units::BitRate usage = {};
  units::BitRate demand = {};
  units::BitRate granted = {};
  units::BitRate believed = {};  // The most that the node may think it has.
  absl::Duration age;            // The last report's age.
};

class BudgetLedger;
struct LedgerNode;

// Not thread-safe.
class BudgetBook {
 public:
  // A node as the caller numbers it; the same for a node's life, never used again for another.
  using NodeNumber = uint64_t;

  // `started`: since when this server may give grants; the learning of what others gave begins
  // then. Nobody may give grants any more who could before.
  explicit BudgetBook(absl::Time started);
  ~BudgetBook();

  // Takes all nodes that may hold grants from before `started`: those that the store knows, if it
  // is the newest there is. Once each has been heard or is gone, there is nothing left to learn.
  // Call at most once, at any time: until then only time ends the learning.
  void ExpectNodes(std::vector<NodeNumber> nodes);

  // The budgets there are now, each valid. One with a name that is known goes on with all its
  // grants, whatever else is new about it, since nodes know grants by that name; a new one begins
  // with nothing granted, since no node knows of it, unless the server is still learning; one that
  // has gone has nothing granted once nodes have been told. A capacity that has become less holds
  // as soon as grants have been taken back. Times that have become shorter are not relied upon:
  // nodes may go by an older policy.
  void SetBudgets(std::vector<BudgetSpec> specs);

  // A node has begun a stream: sequences begin anew; what it holds it will report. What it was sent
  // before still counts until it applies something of this stream. From here on only reports of
  // this stream may be handed in.
  void OnStream(NodeNumber node);
  // `now`: when it came. A report whose sequence is not above the last one's is old, and is
  // ignored. Returns whether to decide soon, within kQuick: somebody is held back who was not
  // before, or something has come back that others wait for.
  bool OnReport(NodeNumber node, const node_api::BudgetReport& report, absl::Time now);
  // The cloud says the machine is gone: whatever it held is free. Do not call it for one that is
  // merely silent.
  void OnNodeGone(NodeNumber node);

  // Decides anew. Returns what is to be sent, with sequences, in the order of nodes: to those whose
  // grants change by more than a few hundredths, or whose smaller change others wait for; to those
  // whose grant is 2/5 over (or a little earlier, so that not all come at once); and in answer to a
  // stream's first report. What is free goes to nodes that have reported since they were last told,
  // or were told a tick ago; if that is not enough, first to those that have the least part of what
  // they are to have. Silent nodes are sent nothing. What is returned counts as sent, even
  // if the stream has ended meanwhile. Call every kTick, and soon when OnReport() says so, but not
  // more often than every kQuick.
  static constexpr absl::Duration kTick = absl::Seconds(1);
  static constexpr absl::Duration kQuick = absl::Milliseconds(100);
  std::vector<std::pair<NodeNumber, node_api::BudgetGrants>> Decide(absl::Time now);

  // Returns the most that nodes may believe they have, with the floors: the law's left side.
  // Zero: there is no such budget.
  units::BitRate Committed(std::string_view budget, absl::Time now) const;

  std::vector<BudgetStanding> Standings(absl::Time now) const;
  // Returns the nodes' standings in order. Empty `team`: all teams. Nothing without such a budget.
  std::vector<NodeBudgetStanding> NodesOf(std::string_view budget, std::string_view team,
                                          absl::Time now) const;

 private:
  BudgetLedger* Find(std::string_view budget) const;
  LedgerNode& NodeOf(NodeNumber number);
  bool MustHear(const LedgerNode& node, absl::Time now) const;
  static node_api::BudgetGrants Send(LedgerNode& node, absl::Time now);

  absl::Time started_;
  std::optional<std::vector<NodeNumber>> expected_;
  std::vector<std::unique_ptr<BudgetLedger>> ledgers_;
  std::map<NodeNumber, std::unique_ptr<LedgerNode>> nodes_;
};

}  // namespace spoke::ipam
