// A journal in memory, for tests.
#pragma once

#include <vector>

#include "netagent/journal/journal.h"

namespace spoke::netagent {

// Keeps what is written, as tmpfs would, across "restarts" of the agent; fails when told to.
struct FakeTmpfs {
  std::vector<Event> events;
  int fail_after = -1;  // The number of appends that still work; negative: all.
};

// Borrows its tmpfs. Not thread-safe.
class FakeJournal final : public Journal {
 public:
  explicit FakeJournal(FakeTmpfs& tmpfs) : tmpfs_(tmpfs) {}
  absl::Status Append(const Event& event) override {
    if (tmpfs_.fail_after == 0) return absl::ResourceExhaustedError("tmpfs is full");
    if (tmpfs_.fail_after > 0) --tmpfs_.fail_after;
    tmpfs_.events.push_back(event);
    return absl::OkStatus();
  }
  absl::Status Compact(const std::vector<Event>& events) override {
    tmpfs_.events = events;
    return absl::OkStatus();
  }
  size_t size() const override { return tmpfs_.events.size(); }

 private:
  FakeTmpfs& tmpfs_;
};

}  // namespace spoke::netagent
