#include "netagent/attach/waiting_line.h"

#include <algorithm>
#include <utility>

namespace spoke::netagent {

bool WaitingLine::Join(Waiter waiter) {
  if (by_arrival_.size() >= kMaxWaiters) return false;
  const uint64_t arrival = arrivals_ + 1;
  if (!arrival_of_.emplace(waiter.id, arrival).second) return false;
  arrivals_ = arrival;
  by_arrival_.emplace(arrival, std::move(waiter));
  return true;
}

void WaitingLine::Leave(uint64_t id) {
  const auto arrival = arrival_of_.find(id);
  if (arrival == arrival_of_.end()) return;
  by_arrival_.erase(arrival->second);
  arrival_of_.erase(arrival);
}

std::vector<Waiter> WaitingLine::InOrder() const {
  std::vector<Waiter> waiters;
  waiters.reserve(by_arrival_.size());
  for (const auto& [arrival, waiter] : by_arrival_) waiters.push_back(waiter);
  return waiters;
}

std::vector<Waiter> WaitingLine::TakeOverdue(absl::Time now) {
  std::vector<Waiter> overdue;
  for (const auto& [arrival, waiter] : by_arrival_) {
    if (waiter.deadline <= now) overdue.push_back(waiter);
  }
  for (const Waiter& waiter : overdue) Leave(waiter.id);
  return overdue;
}

std::optional<absl::Time> WaitingLine::NextDeadline() const {
  std::optional<absl::Time> next;
  for (const auto& [arrival, waiter] : by_arrival_) {
    next = next ? std::min(*next, waiter.deadline) : waiter.deadline;
  }
  return next;
}

std::map<std::string, uint32_t> WaitingLine::Demand() const {
  std::map<std::string, uint32_t> demand;
  for (const auto& [arrival, waiter] : by_arrival_) {
    if (!waiter.picky) ++demand[waiter.pod_namespace];
  }
  return demand;
}

}  // namespace spoke::netagent
