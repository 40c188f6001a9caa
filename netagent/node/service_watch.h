// Asks the services that the node depends on (lib/node_checks/services), once a minute on a thread
// of its own: who is silent keeps neither the loop nor the other checks waiting.
#pragma once

#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/node_checks/services/service_answers.h"

namespace spoke::netagent {

// Thread-safe, except Start().
class ServiceWatch {
 public:
  static constexpr absl::Duration kPause = absl::Minutes(1);
  // The server is asked for its time at one look of so many, and at each as long as it has not said
  // it: it has thousands of agents, and clocks that are kept do not run away.
  static constexpr int kLooksAClock = 5;

  // The functions are called on one thread at a time, `interrupt` on another at the end: after it
  // the others have to return soon.
  struct Edges {
    std::function<node_checks::ServiceAnswers()> probe;
    std::function<std::optional<node_checks::ClockDifference>()> ask_clock;
    std::function<void()> interrupt;
  };
  struct Latest {
    std::optional<node_checks::ServiceAnswers> services;  // nullopt: the first look is not over.
    std::optional<node_checks::ClockDifference> clock;    // nullopt: the server has not said.
  };

  explicit ServiceWatch(Edges edges) : edges_(std::move(edges)) {}
  ServiceWatch(const ServiceWatch&) = delete;
  ServiceWatch& operator=(const ServiceWatch&) = delete;
  ~ServiceWatch();

  // Looks, and then again after each pause. Call it once.
  void Start();

  // Looks now: Start()'s thread does.
  void Look();

  Latest latest() const;

 private:
  void Run();

  const Edges edges_;
  int looks_ = 0;  // Looks since the server said its time. The looking thread's.
  mutable absl::Mutex mutex_;
  Latest latest_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace spoke::netagent
