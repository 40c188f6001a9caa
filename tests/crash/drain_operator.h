// An operator who drains nodes and lets them work again, all the time and whatever happens to the
// server.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/spoke/v1/admin.grpc.pb.h"

namespace spoke::crash {

// The operator. Thread-safe; works on a thread of its own. A call whose outcome a crash has hidden
// is made again until it is known.
class DrainOperator {
 public:
  // Starts. `admin` is the server's admin socket, as gRPC names it. `nodes` is how many simulated
  // ones exist. `is_there` says whether a node's agent is connected, and can be asked for its
  // addresses; thread-safe.
  using IsThere = std::function<bool(uint32_t node)>;
  DrainOperator(const std::string& admin, uint32_t nodes, uint64_t seed, IsThere is_there);
  DrainOperator(const DrainOperator&) = delete;
  DrainOperator& operator=(const DrainOperator&) = delete;
  // Stops at once.
  ~DrainOperator();

  // Does nothing but let nodes work again from now on.
  void Finish();
  // Returns whether all do, after Finish().
  bool finished() const;

  // Returns the modes that a node can be in, by its name: what was acknowledged, and what has been
  // asked for since. Nodes that were never touched are left out.
  std::map<std::string, std::set<std::string>> PossibleModes() const;

  uint64_t acknowledged() const;
  // Returns an empty text, or what the server has refused, which is a fault.
  std::string refusal() const;

 private:
  struct Step {
    uint32_t node;
    std::string mode;
  };

  void Run();
  // Returns the next step; nullopt: nobody is there.
  std::optional<Step> NextStep();
  // Returns false when it is to be tried again.
  bool Try(const Step& step);

  const std::unique_ptr<v1::AdminService::Stub> stub_;
  const uint32_t nodes_;
  const IsThere is_there_;
  std::mt19937_64 random_;        // The thread's numbers; the next member is the thread's too.
  std::deque<uint32_t> drained_;  // The drained nodes, longest first.

  mutable absl::Mutex mutex_;
  std::map<std::string, std::set<std::string>> modes_ ABSL_GUARDED_BY(mutex_);
  uint64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string refusal_ ABSL_GUARDED_BY(mutex_);
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // The thread is last: it uses all of the above.
};

}  // namespace spoke::crash
