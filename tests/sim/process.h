// A program that runs on a machine, and can end at any instruction.
//
// A death in the middle of a call is the exception Died, which only the simulation throws, at the
// steps where a program touches what outlives it, and which nothing but Process catches. What the
// program had scheduled goes with it; its objects are destroyed once its calls have been left.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "tests/sim/basis.h"
#include "tests/sim/machine.h"

namespace spoke::sim {

struct Died {};

class Process {
 public:
  Process(Basis& basis, Machine& machine, std::string who)
      : basis_(basis), machine_(machine), who_(std::move(who)) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  virtual ~Process() = default;

  const std::string& who() const { return who_; }
  bool alive() const { return life_ != nullptr; }

  // Ends it now. Whoever holds it hears of that by OnDeath(), and destroys it in an event.
  void Kill() {
    if (!alive()) return;
    life_.reset();
    OnDeath();
  }
  // It is not scheduled on any processor until then; what comes meanwhile waits.
  void PauseFor(absl::Duration time) { paused_until_ = basis_.schedule.now() + time; }
  bool paused() const { return basis_.schedule.now() < paused_until_; }

  // Lets it die at the `nth` step from now on (1 is the next).
  void DieAtStep(int nth) { steps_left_ = nth; }
  // It is about to touch what outlives it, or just has.
  void Step(std::string_view step) {
    if (steps_left_ == 0 || --steps_left_ > 0) return;
    basis_.trace.Tell(who_, "dies at step {}", step);
    throw Died();
  }
  bool dies_next() const { return steps_left_ == 1; }

  // Runs `work` as this process, at once or when it is not paused any more.
  void Enter(std::function<void()> work) {
    if (!alive()) return;
    if (paused()) {
      After(paused_until_ - basis_.schedule.now(), std::move(work));
      return;
    }
    try {
      work();
    } catch (const Died&) {
      Kill();
    }
  }
  // Runs `work` as this process after so much true time, if it still lives then.
  void After(absl::Duration wait, std::function<void()> work) {
    basis_.schedule.After(wait, [this, life = std::weak_ptr<int>(life_), work = std::move(work)] {
      if (!life.expired()) Enter(work);
    });
  }

 protected:
  virtual void OnDeath() = 0;

  Basis& basis_;
  Machine& machine_;

 private:
  const std::string who_;
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
  absl::Time paused_until_ = absl::InfinitePast();
  int steps_left_ = 0;  // 0: it does not die.
};

}  // namespace spoke::sim
