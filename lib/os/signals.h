// Signals as something to wait for, instead of something that interrupts.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <initializer_list>

#include "lib/os/unique_fd.h"

namespace spoke::os {

// Blocks `signals` in the calling thread and in every thread started after. Make one in main(),
// before the first thread; SIGPIPE is ignored from then on as well.
class SignalWaiter {
 public:
  SignalWaiter(std::initializer_list<int> signals) {
    sigemptyset(&set_);
    for (const int signal : signals) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
  }

  // As long as it lives the signals do on its thread what they do without a waiter: end the
  // program, unless it is the first of its PID namespace.
  class LetThrough {
   public:
    explicit LetThrough(const SignalWaiter& waiter) : set_(waiter.set_) {
      pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
    }
    ~LetThrough() { pthread_sigmask(SIG_BLOCK, &set_, nullptr); }
    LetThrough(const LetThrough&) = delete;
    LetThrough& operator=(const LetThrough&) = delete;

   private:
    sigset_t set_;
  };

  // Returns a descriptor that can be polled: it is readable while one of them is pending. Wait()
  // still takes it.
  UniqueFd Descriptor() const { return UniqueFd(::signalfd(-1, &set_, SFD_CLOEXEC)); }

  // Waits, and returns the number of the first of them to arrive.
  int Wait() const {
    int signal = 0;
    while (sigwait(&set_, &signal) != 0) {
    }
    return signal;
  }

 private:
  sigset_t set_{};
};

}  // namespace spoke::os
