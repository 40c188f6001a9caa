// All simulated agents, and the times when each of them connects.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "netagent/session/reconnect.h"
#include "tests/bench/swarm/agent.h"
#include "tests/bench/swarm/budget_reports.h"
#include "tests/bench/swarm/latencies.h"
#include "tests/bench/swarm/ledger.h"

namespace spoke::swarm {

// The swarm. Thread-safe. One thread of its own opens the streams, and one destroys those that have
// ended; gRPC's read and write them.
class Swarm final : public AgentEvents {
 public:
  struct Options {
    Agent::Target target;
    uint32_t agents = 0;
    uint32_t first = 0;  // The number of the first node, where several swarms share a cluster.
    SimNode::Reporting reporting;
    SimNode::DeadNic dead_nic;
    // Agents come back exactly as real ones do. With several servers, of which one leads and takes
    // connections, they do what real ones do in a simpler way: see kNextServer and kSlow.
    netagent::ReconnectSettings reconnect;
    // The server's cooldown, to be watched; zero: not watched.
    absl::Duration cooldown;
    uint64_t seed = 0;
    // The period in which each reports what it uses of budgets; zero: never.
    absl::Duration budget_refresh;
    Ledger::Memory memory = Ledger::Memory::kNone;
  };
  // The time within which the next server follows one that has not welcomed an agent, until each
  // has been tried; and in which one that has something to say begins.
  static constexpr absl::Duration kNextServer = absl::Milliseconds(50);
  // The pause, up to three times as long, before an agent that has something to say tries all of
  // them again.
  static constexpr absl::Duration kHurryPause = absl::Milliseconds(100);
  // The time after which an agent that waits for an answer looks for another server that takes
  // connections. It looks at the port, and moves, but not to one that agents have left and that has
  // welcomed nobody since; a real one keeps its stream until the other has finished the handshake.
  static constexpr absl::Duration kSlow = absl::Seconds(1);
  // With several servers, how many streams may be on the way to be welcomed. A real agent has a
  // processor of its own for its handshake; here each would wait at every step for those of all
  // agents, so that none was through before nearly all were.
  static constexpr size_t kMostDialling = 64;

  explicit Swarm(const Options& options);
  Swarm(const Swarm&) = delete;
  Swarm& operator=(const Swarm&) = delete;
  // Ends all streams and waits for them.
  ~Swarm() override;

  // Starts to connect, and to connect again whenever a stream ends.
  void Start();

  // Opens no stream until Release(), however long one has been due: for a test that knows that
  // there is no server, and has no time for attempts in vain.
  void Hold();
  void Release();

  size_t size() const { return agents_.size(); }
  Agent& agent(size_t index) { return *agents_[index].agent; }
  const Ledger& ledger() const { return ledger_; }

  // Has a pod come to the agent's node, and go as soon as that is acknowledged. False: there is no
  // address for it.
  bool RunPod(size_t index);

  // Counts, from now on, only streams that are welcomed later as synced.
  void ForgetSyncs();
  uint32_t synced() const { return synced_.load(); }
  uint32_t connected() const { return connected_.load(); }
  bool is_connected(size_t index) const { return agents_[index].welcomed != 0; }

  // Returns how much later than it was due a first attempt was begun, at most: what this side could
  // not keep up with. In nanoseconds.
  int64_t start_lag() const { return start_lag_.load(); }

  // The progress of each agent since Start() or ForgetSyncs(). Times are NowNs(); 0: not yet.
  struct Progress {
    int64_t first_attempt = 0;
    int64_t last_attempt = 0;
    int64_t welcomed = 0;
    int64_t synced = 0;
  };
  std::vector<Progress> progress() const;

  // Begins to measure how long agents wait for acknowledgements, from now on: something is about to
  // happen to the servers. Returns NowNs().
  int64_t Strike();
  // In nanoseconds.
  struct Wait {
    // From Strike() to the first acknowledgement of a write that was sent after it; 0: none yet.
    int64_t next = 0;
    // The longest that something new waited to be acknowledged, of what has been since: after
    // Strike(), and after it came up. 0: nothing has.
    int64_t longest = 0;
  };
  std::vector<Wait> waits() const;
  // Returns the least `next` of all agents, and how many agents have one.
  int64_t first_wait() const { return first_wait_.load(); }
  uint32_t answered() const { return answered_.load(); }

  uint64_t attempts() const { return attempts_.load(); }
  // Returns how streams ended, by gRPC's message, with what differs from stream to stream left out.
  std::map<std::string, uint64_t> ends() const;

  // Returns the number of reports about budgets that were sent.
  uint64_t budget_reports() const { return budget_reports_.sent(); }

  Histogram& latencies() { return latencies_; }

  void OnEnded(Agent& agent, std::unique_ptr<Stream> stream, const grpc::Status& why) override;
  void OnWelcomed(Agent& agent, absl::Duration reconnect_within) override;
  void OnSynced(Agent& agent) override;
  void OnLatency(int64_t nanoseconds) override { latencies_.Add(nanoseconds); }
  void OnAcknowledged(Agent& agent, const Acknowledged& what) override;

 private:
  struct Entry {
    Entry(std::unique_ptr<Agent> the_agent, const netagent::ReconnectSettings& settings)
        : agent(std::move(the_agent)), reconnect(settings) {}

    std::unique_ptr<Agent> agent;
    std::atomic<int64_t> first_attempt{0};
    std::atomic<int64_t> last_attempt{0};
    std::atomic<int64_t> welcomed{0};
    std::atomic<int64_t> synced{0};
    std::atomic<int64_t> next_wait{0};
    std::atomic<int64_t> longest_wait{0};
    // --- Guarded by mutex_. ---
    size_t refused = 0;     // The servers that have not welcomed it since the last pause.
    bool dialling = false;  // Its stream has been begun, and has neither been welcomed nor ended.
    bool moving = false;    // Its stream ends since it moves to another server.
    int64_t due_at = -1;    // When it is to connect; -1: it has, or is about to.
    netagent::Reconnect reconnect;
  };
  struct Due {
    int64_t at;
    size_t index;
    bool operator>(const Due& other) const { return at > other.at; }
  };

  size_t IndexOf(const Agent& agent) const { return agent.index() - options_.first; }
  Entry& EntryOf(const Agent& agent) { return agents_[IndexOf(agent)]; }

  void Run();
  // Waits until something is due; false when it is time to go.
  bool Next(std::vector<Due>& connect);
  // Destroys streams that have ended, until all have and Run() is over. That costs as much as a
  // handshake does, which a real agent bears on a machine of its own, so it has the lowest
  // priority.
  void DestroyEnded();
  void Connect(const Due& due);
  // Whether the server that the agent turns to takes connections, or is the only one. Called on
  // thread_ alone.
  bool IsWorthADial(const Agent& agent);
  void SetDue(size_t index, int64_t at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether another stream may be begun: see kMostDialling.
  bool MayDial() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void StopDialling(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MoveSlowAgents();
  // Has the agents move that wait since before `slow`.
  void MoveThoseWaitingSince(int64_t slow);
  // Returns a server for an agent of `present` to move to; nullopt: there is none.
  std::optional<size_t> FindAnother(size_t present, std::vector<std::optional<bool>>& takes);
  // How long the agent waits before it tries again, after an attempt that ended so.
  absl::Duration DelayAfter(Entry& entry, const netagent::StreamEnd& end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  Ledger ledger_;
  Histogram latencies_;
  std::deque<Entry> agents_;
  BudgetReports budget_reports_;
  std::atomic<uint32_t> synced_{0};
  std::atomic<uint32_t> connected_{0};
  std::atomic<uint64_t> attempts_{0};
  std::atomic<int64_t> start_lag_{0};
  std::atomic<int64_t> struck_{0};  // When Strike() was called; 0: never.
  std::atomic<int64_t> first_wait_{0};
  std::atomic<uint32_t> answered_{0};
  // The servers that agents have moved away from, and that have welcomed nobody since: one that
  // stands still takes connections as well, since the kernel does.
  std::vector<std::atomic<bool>> silent_;

  mutable absl::Mutex mutex_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Stream>> ended_ ABSL_GUARDED_BY(mutex_);
  bool all_ended_ ABSL_GUARDED_BY(mutex_) = false;  // No stream follows those in ended_.
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;  // The streams that OnEnded() has not been called for.
  size_t dialling_ ABSL_GUARDED_BY(mutex_) = 0;  // The entries of which that is true.
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> ends_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // When it was last looked whether each server takes connections, and whether it did. What comes
  // of a dial in vain is known without its cost: a real agent bears that on a machine of its own.
  struct Look {
    int64_t at = 0;
    bool takes = false;
  };
  std::vector<Look> looks_;
  // The threads are last: they use all of the above.
  std::thread mover_;
  std::thread destroyer_;
  std::thread thread_;
};

}  // namespace spoke::swarm
