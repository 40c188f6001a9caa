#include "tests/bench/budget/agent.h"

#include <algorithm>
#include <utility>

namespace spoke::budget_sim {
namespace {

constexpr double kHeadroom = 1.1;
constexpr double kGrowth = 4;

}  // namespace

void Agent::Restart() {
  holder_ = MakeSimHolder();
  reports_ = 0;
}

absl::Time Agent::Local(absl::Duration elapsed) const {
  return absl::UnixEpoch() + offset_ + elapsed * (1 + drift_);
}

void Agent::AddTeam(std::string team, size_t index) {
  here_.push_back(team);
  loads_.push_back({.team = std::move(team), .index = index});
}

uint64_t Agent::Refresh(absl::Duration elapsed) {
  uint64_t usable = 0;
  use_ = 0;
  const std::vector<TeamHold> holds = holder_->At(Local(elapsed), policy_, here_);
  for (size_t i = 0; i < holds.size(); ++i) {
    usable += holds[i].rate;
    if (i >= loads_.size()) continue;  // Has no pods here, and could have at any time.
    loads_[i].rate = static_cast<double>(holds[i].rate);
    loads_[i].held = holds[i].held;
    use_ += loads_[i].Use();
  }
  return usable;
}

absl::Duration Agent::UntilChange(absl::Duration elapsed) const {
  const absl::Time now = Local(elapsed);
  return (holder_->NextChange(now, policy_) - now) / (1 + drift_);
}

bool Agent::Look(const AgentHabits& habits) {
  bool tell = grown_ && habits.tells_more;
  grown_ = false;
  for (TeamLoad& load : loads_) {
    load.samples[load.next_sample] = load.Use();
    load.next_sample = (load.next_sample + 1) % std::min(habits.window, load.samples.size());
    const bool held_back = load.HeldBack();
    const double most = *std::max_element(load.samples.begin(), load.samples.end());
    load.demand = held_back ? kGrowth * load.Use() : kHeadroom * most;
    if (held_back && !load.was_held_back) tell = true;
    load.was_held_back = held_back;
    const bool fallen = load.demand < static_cast<double>(load.held) / 2;
    if (habits.tells_falls && fallen && !load.told_fall) tell = true;
    load.told_fall = fallen;
  }
  return tell;
}

ipam::BudgetReport Agent::Report(absl::Duration elapsed) {
  ipam::BudgetReport report{.sequence = ++reports_, .applied = holder_->applied()};
  const std::vector<TeamHold> holds = holder_->At(Local(elapsed), policy_, here_);
  for (size_t i = 0; i < holds.size(); ++i) {
    ipam::BudgetUse use{.budget = kBudget, .team = holds[i].team, .held = holds[i].held};
    if (i < loads_.size()) {
      use.usage = static_cast<uint64_t>(loads_[i].Use());
      use.demand = static_cast<uint64_t>(loads_[i].demand);
      use.throttled = static_cast<uint64_t>(loads_[i].wish - loads_[i].Use());
    }
    report.uses.push_back(use);
  }
  holder_->OnReportSent(report.sequence, Local(elapsed));
  return report;
}

void Agent::OnStream() {
  holder_->OnStream();
  reports_ = 0;
}

bool Agent::OnLeases(const ipam::BudgetLeases& leases, const AgentHabits& habits,
                     absl::Duration elapsed) {
  if (!holder_->OnLeases(leases, Local(elapsed))) return false;
  std::vector<uint64_t> before;
  for (const TeamLoad& load : loads_) before.push_back(load.held);
  Refresh(elapsed);
  bool tell = false;
  for (size_t i = 0; i < loads_.size(); ++i) {
    if (loads_[i].held < before[i] && habits.tells_less) tell = true;
    if (loads_[i].held > before[i]) grown_ = true;
  }
  return tell;
}

}  // namespace spoke::budget_sim
