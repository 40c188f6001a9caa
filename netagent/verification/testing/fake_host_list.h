// A HostList for tests that says when a reading ends and how.
#pragma once

#include <utility>

#include "netagent/verification/host_list.h"

namespace spoke::netagent {

// Not thread-safe.
class FakeHostList final : public HostList {
 public:
  bool Read(Done done) override {
    if (done_ != nullptr) return false;
    ++readings;
    done_ = std::move(done);
    return true;
  }
  // Ends the reading that is under way.
  void Finish(absl::StatusOr<std::set<ip::Address>> outcome) {
    std::exchange(done_, nullptr)(std::move(outcome));
  }
  bool reading() const { return done_ != nullptr; }

  int readings = 0;

 private:
  Done done_;
};

}  // namespace spoke::netagent
