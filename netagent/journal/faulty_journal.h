// A journal that fails, or dies, where a test says.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "netagent/journal/journal.h"

namespace spoke::netagent {

// Not thread-safe.
class FaultyJournal final : public Journal {
 public:
  // Called before each write, by the step's name: "journal.begun", "journal.built",
  // "journal.released", "journal.other", "journal.compact". What it returns fails that step, which
  // then does not happen. It may also end the process. If it is empty, nothing is ever injected.
  using FaultPoint = std::function<absl::Status(std::string_view step)>;

  FaultyJournal(std::unique_ptr<Journal> journal, FaultPoint fault_point)
      : journal_(std::move(journal)), fault_point_(std::move(fault_point)) {}

  absl::Status Append(const Event& event) override {
    if (absl::Status fault = Reach(StepOf(event)); !fault.ok()) return fault;
    return journal_->Append(event);
  }
  absl::Status Compact(const std::vector<Event>& events) override {
    if (absl::Status fault = Reach("journal.compact"); !fault.ok()) return fault;
    return journal_->Compact(events);
  }
  size_t size() const override { return journal_->size(); }

 private:
  static std::string_view StepOf(const Event& event) {
    if (std::holds_alternative<AssignmentBegun>(event)) return "journal.begun";
    if (std::holds_alternative<AssignmentBuilt>(event)) return "journal.built";
    if (std::holds_alternative<AssignmentReleased>(event)) return "journal.released";
    return "journal.other";
  }
  absl::Status Reach(std::string_view step) const {
    return fault_point_ ? fault_point_(step) : absl::OkStatus();
  }

  const std::unique_ptr<Journal> journal_;
  const FaultPoint fault_point_;
};

}  // namespace spoke::netagent
