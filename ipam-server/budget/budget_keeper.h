// Keeps the book of budgets: takes what nodes report, decides each second, and sends grants.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ipam-server/budget/budget_book.h"
#include "ipam-server/ledger/node_record.h"
#include "ipam-server/loop/fleet_loop.h"
#include "lib/os/clock.h"
#include "lib/os/heartbeat.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

// Counts since the start.
struct BudgetCounts {
  uint64_t reports = 0;  // The reports taken.
  uint64_t grants = 0;   // Messages sent; each has all grants of its node.
};

// Thread-safe. Reports come on the threads of their streams and pass the loop by: they change
// nothing that is stored, and 7,500 nodes send 1,500 of them each second. What is decided is sent
// once the lock is free again.
//
// Only the server that has the store may give grants, and it is there to be made after the store
// was opened: what a server before it has granted is unknown from then on. See BudgetBook.
class BudgetKeeper {
 public:
  struct Pace {
    absl::Duration tick = BudgetBook::kTick;
    absl::Duration quick = BudgetBook::kQuick;
  };

  // Borrows the clock, which must not be set back (os::MonotonicClock), and `heartbeat`, which is
  // beaten at each turn, once a tick at least; nullptr: nobody listens to it.
  explicit BudgetKeeper(const os::Clock& clock, os::Heartbeat* heartbeat = nullptr)
      : BudgetKeeper(clock, Pace(), heartbeat) {}
  BudgetKeeper(const os::Clock& clock, const Pace& pace, os::Heartbeat* heartbeat = nullptr)
      : pace_(pace), clock_(clock), heartbeat_(heartbeat), book_(clock.Now()) {}
  BudgetKeeper(const BudgetKeeper&) = delete;
  BudgetKeeper& operator=(const BudgetKeeper&) = delete;
  ~BudgetKeeper() { Stop(); }

  // Begins to decide, on a thread of its own: every tick, and within `quick` of a report that
  // cannot wait, as of somebody who is held back and was not before. Borrows both until Stop().
  void Start(AgentLink& agents, telemetry::Log& log);
  // Stops the thread: nothing is sent once it returns. A second call does nothing.
  void Stop();

  // Takes the nodes that a server before this one may have given grants, those that another has
  // replaced among them: the cloud has not said that they are gone. See BudgetBook::ExpectNodes().
  void ExpectNodes(const std::vector<NodeKey>& nodes);

  // Takes all budgets there are now.
  void SetBudgets(std::vector<BudgetSpec> specs);

  // What `node` said in `session`. The first report of a session begins it for the book; one of an
  // older session than the node's latest is nothing. A node that never reports costs nothing.
  void OnReport(const NodeKey& node, SessionId session, const node_api::BudgetReport& report);
  // Notes that nothing more can be sent in `session`. What the node holds stays its own, as long as
  // its own rules let it.
  void OnStreamEnd(const NodeKey& node, SessionId session);
  // The cloud says that the machine is gone: what it held is free. Do not call it for one that is
  // merely silent.
  void OnNodeGone(const NodeKey& node);

  std::vector<BudgetStanding> Standings() const;
  // The nodes that report `team` of `budget`, with their names; in no order.
  std::vector<std::pair<std::string, NodeBudgetStanding>> NodesOf(std::string_view budget,
                                                                  std::string_view team) const;
  BudgetCounts counts() const;

  // Takes one decision as the thread does, for tests that do without the thread.
  void Decide(AgentLink& agents, telemetry::Log& log);

 private:
  struct Node {
    NodeKey key;
    SessionId session = 0;       // The latest; 0: it has ended.
    SessionId last_session = 0;  // The latest ever.
  };
  // A budget whose floors were not meant for as many nodes as there are.
  struct ShortFloor {
    std::string budget;
    uint64_t nodes = 0;
    uint64_t floor_nodes = 0;
  };

  void Run(AgentLink& agents, telemetry::Log& log);
  bool Wait();
  BudgetBook::NodeNumber NumberOf(const NodeKey& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<ShortFloor> NewShortFloors() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Pace pace_;
  const os::Clock& clock_;
  os::Heartbeat* const heartbeat_;
  mutable absl::Mutex mutex_;
  BudgetBook book_ ABSL_GUARDED_BY(mutex_);
  // The nodes by number, which is counted up, so that none is ever given to two nodes.
  absl::flat_hash_map<BudgetBook::NodeNumber, Node> nodes_ ABSL_GUARDED_BY(mutex_);
  std::map<NodeKey, BudgetBook::NodeNumber> numbers_ ABSL_GUARDED_BY(mutex_);
  BudgetBook::NodeNumber last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, uint64_t> floor_nodes_ ABSL_GUARDED_BY(mutex_);  // Keyed by budget.
  std::map<std::string, bool> floor_short_ ABSL_GUARDED_BY(mutex_);      // Whether it was said.
  BudgetCounts counts_ ABSL_GUARDED_BY(mutex_);
  bool urgent_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace spoke::ipam
