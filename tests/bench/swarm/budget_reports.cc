#include "tests/bench/swarm/budget_reports.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace spoke::swarm {

void BudgetReports::Start(std::vector<Agent*> agents) {
  thread_ = std::thread([this, agents = std::move(agents)] { Run(agents); });
}

void BudgetReports::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void BudgetReports::Run(const std::vector<Agent*>& agents) {
  using Due = std::pair<int64_t, size_t>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due;
  std::uniform_real_distribution<double> jitter(0.9, 1.1);
  std::uniform_real_distribution<double> first(0.0, 1.0);
  const auto period = static_cast<double>(refresh_ns_);
  const int64_t started = NowNs();
  for (size_t i = 0; i < agents.size(); ++i) {
    due.push({started + static_cast<int64_t>(period * first(random_)), i});
  }
  while (!due.empty()) {
    const auto [at, index] = due.top();
    const int64_t wait = std::max<int64_t>(0, at - NowNs());
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopped_), absl::Nanoseconds(wait))) return;
    }
    due.pop();
    if (agents[index]->ReportBudgets()) ++sent_;
    // The next time does not count from `at`: what was late is not made up for by a burst.
    due.push({NowNs() + static_cast<int64_t>(period * jitter(random_)), index});
  }
}

}  // namespace spoke::swarm
