// Simulates a server's book, thousands of nodes and a bad network between them, on one simulated
// clock. What a seed decides happens again with the same seed.
//
// A message takes from 20 to 500 ms, or to what is asked for. One that is lost ends its stream:
// nothing that is sent in it later arrives, and the node begins another after a while. Streams do
// not wait for each other, so that what is left of an old one may come after the new one has begun.
// Clocks of nodes are up to half a hundredth fast or slow.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/budget/budget_book.h"
#include "tests/bench/budget/agent.h"
#include "tests/bench/budget/fair_use.h"

namespace spoke::budget_sim {

struct WorldOptions {
  size_t agents = 7500;
  size_t teams = 100;
  size_t teams_an_agent = 3;
  uint64_t seed = 1;
  double loss = 0.01;
  absl::Duration most_delay = absl::Milliseconds(500);  // Of a message; not below 20 ms.
  double drift = 0.005;
  AgentHabits habits;
};

// The counts of a run so far.
struct WorldCounts {
  uint64_t ticks = 0;
  // The ticks at which more was usable at nodes than the capacity.
  uint64_t over_capacity_ticks = 0;
  uint64_t over_committed_ticks = 0;  // The ticks at which the book's own sum was more than that.
  uint64_t below_usable_ticks = 0;    // The ticks at which it was less than what was usable.
  uint64_t reports = 0;
  uint64_t messages = 0;
  uint64_t streams = 0;
  double decide_seconds = 0;  // The CPU time; by `cpu_clock`.
  double decide_worst_seconds = 0;
  uint64_t decisions = 0;
};

// The world. Not thread-safe.
class World {
 public:
  static constexpr absl::Duration kTick = absl::Milliseconds(100);

  // Makes a world. `cpu_clock` returns seconds of CPU so far, for measuring; may be empty.
  World(const WorldOptions& options, std::function<double()> cpu_clock);

  absl::Duration elapsed() const { return elapsed_; }
  const WorldCounts& counts() const { return counts_; }
  const ipam::BudgetSpec& spec() const { return spec_; }
  ipam::BudgetBook& book() { return *book_; }
  std::vector<Agent>& agents() { return agents_; }
  std::mt19937_64& random() { return random_; }
  double use() const { return use_; }
  uint64_t usable() const { return usable_; }

  // Runs until then, and calls `each_tick` after every tick.
  void RunUntil(absl::Duration end, const std::function<void()>& each_tick);

  // Takes note that the rates that pods would use have been changed.
  void OnOptions();
  FairUse Fair() const;

  void KillServer();
  void StartServer();
  // Cuts these nodes off from the server from now on, or joins them again.
  void Partition(size_t first, size_t count, bool cut);
  void RestartAgent(size_t agent);
  // Removes the VM, and the server hears of it.
  void RemoveNode(size_t agent);
  void SetCapacity(uint64_t capacity);
  void SetTimes(absl::Duration grant, absl::Duration hold);

 private:
  struct Look {};
  struct ReportDue {};
  struct Connect {};
  struct Expire {};
  struct Break {};
  struct PolicyArrives {
    NodePolicy policy;
  };
  struct Hello {};
  struct ReportArrives {
    node_api::BudgetReport report;
  };
  struct GrantsArrive {
    node_api::BudgetGrants grants;
  };
  using What = std::variant<Look, ReportDue, Connect, Expire, Break, PolicyArrives, Hello,
                            ReportArrives, GrantsArrive>;
  struct Event {
    absl::Duration at;
    uint64_t order = 0;
    size_t agent = 0;
    uint64_t stream = 0;  // The stream of the node; 0: not of a stream.
    What what;
  };
  // The network's and the world's side of an agent.
  struct Link {
    bool gone = false;
    bool cut = false;
    uint64_t streams = 0;  // The streams begun.
    bool broken = true;    // Whether what is sent in the newest does not arrive.
    uint64_t at_server = 0;
    absl::Duration up_free;  // No message overtakes another of its stream.
    absl::Duration down_free;
    absl::Duration next_report;
    absl::Duration last_report = -absl::InfiniteDuration();
    absl::Duration next_look = -absl::InfiniteDuration();
    uint64_t usable = 0;
    double use = 0;
    absl::Duration change = absl::InfiniteDuration();
  };

  double Fraction() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  absl::Duration Between(double least, double most) {
    return absl::Seconds(least + Fraction() * (most - least));
  }
  absl::Duration Delay();  // The time that a message takes.
  absl::Time Now() const { return absl::UnixEpoch() + absl::Hours(1) + elapsed_; }
  NodePolicy PolicyOf() const;
  void Add(absl::Duration at, size_t agent, uint64_t stream, What what);
  void Handle(Event& event);
  void HandleAt(Event& event, Agent& agent, Link& link);
  void OnConnect(size_t i);
  void OnHello(size_t i, uint64_t stream);
  void BreakStream(size_t i, uint64_t stream, absl::Duration after);
  // Sends a message. Returns whether it is on its way.
  bool Pass(Link& link, absl::Duration& free, absl::Duration& at);
  void LookAt(size_t i, absl::Duration at);
  void ReportSoon(size_t i);  // Reports, but not too soon after the last one.
  void Report(size_t i);
  void SendUp(size_t i, What what);
  void Refresh(size_t i);
  void Decide();
  // The book's own sum grows only when it decides.
  void Check(bool decided);

  WorldOptions options_;
  std::function<double()> cpu_clock_;
  std::mt19937_64 random_;
  ipam::BudgetSpec spec_;
  // The bound: the capacity, or what it was until grants have been taken back.
  uint64_t bound_ = 0;
  std::unique_ptr<ipam::BudgetBook> book_;
  std::vector<Agent> agents_;
  std::vector<Link> links_;
  std::vector<Event> events_;  // The events, a heap.
  uint64_t order_ = 0;
  absl::Duration elapsed_;
  absl::Duration decided_ = -absl::Hours(1);
  bool soon_ = false;
  double use_ = 0;
  uint64_t usable_ = 0;
  WorldCounts counts_;
};

}  // namespace spoke::budget_sim
