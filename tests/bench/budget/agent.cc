#include "tests/bench/budget/agent.h"

#include <algorithm>
#include <utility>

namespace spoke::budget_sim {
namespace {

// The numbers of netagent/shaping/shaping_meter.h and netagent/shaping/shaping.h.
constexpr double kHeadroom = 1.1;
constexpr double kGrowth = 4;
constexpr double kLeastWanted = 1e6;
constexpr absl::Duration kLook = absl::Seconds(1);
constexpr absl::Duration kFirstLook = absl::Milliseconds(200);
constexpr absl::Duration kSecondLook = absl::Milliseconds(300);
constexpr int kLooksAtGrowth = 2;
constexpr double kMuchLess = 0.5;
constexpr double kLessOfGrowth = 0.95;

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
    if (i >= loads_.size()) continue;  // The team has no pods here, and could have at any time.
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

bool Agent::Look(const AgentHabits& habits, absl::Duration elapsed) {
  const int looks = std::exchange(looks_at_growth_, std::max(looks_at_growth_ - 1, 0));
  next_look_ = elapsed + (looks_at_growth_ > 0 ? kSecondLook : kLook);
  const double part = looks == 1 ? kLessOfGrowth : kMuchLess;
  const double of_held = looks == 1 ? part * kHeadroom : part;
  bool tell = looks == kLooksAtGrowth && habits.tells_more;
  for (TeamLoad& load : loads_) {
    const bool was_held_back = load.was_held_back;
    Estimate(load, habits.window, elapsed);
    if (load.was_held_back && !was_held_back) tell = true;
    const bool less =
        load.demand < of_held * static_cast<double>(load.held) && load.demand < part * load.told;
    if (habits.tells_falls && less) tell = true;
  }
  return tell;
}

void Agent::Estimate(TeamLoad& load, absl::Duration window, absl::Duration elapsed) {
  const double use = load.Use();
  std::erase_if(load.samples, [&](const auto& sample) { return sample.at <= elapsed - window; });
  load.samples.push_back({elapsed, use});
  load.demand = 0;
  for (const auto& sample : load.samples) {
    load.demand = std::max(load.demand, kHeadroom * sample.use);
  }
  if (load.HeldBack()) {
    load.demand = std::max({load.demand, kGrowth * use, kLeastWanted});
  } else if (load.was_held_back && use > load.last_use) {
    load.demand = std::max(load.demand, kHeadroom * use + (use - load.last_use));
  }
  load.last_use = use;
  load.was_held_back = load.HeldBack();
}

node_api::BudgetReport Agent::Report(absl::Duration elapsed) {
  node_api::BudgetReport report{.sequence = ++reports_, .applied = holder_->applied()};
  const std::vector<TeamHold> holds = holder_->At(Local(elapsed), policy_, here_);
  for (size_t i = 0; i < holds.size(); ++i) {
    node_api::BudgetUse use{
        .budget = kBudget, .team = holds[i].team, .held = units::BitRate(holds[i].held)};
    if (i < loads_.size()) {
      use.usage = units::BitRate(static_cast<uint64_t>(loads_[i].Use()));
      loads_[i].told = loads_[i].demand;
      use.demand = units::BitRate(static_cast<uint64_t>(loads_[i].demand));
      use.throttled = units::BitRate(static_cast<uint64_t>(loads_[i].options - loads_[i].Use()));
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

bool Agent::OnGrants(const node_api::BudgetGrants& grants, const AgentHabits& habits,
                     absl::Duration elapsed) {
  const bool first = holder_->applied() == 0;
  if (!holder_->OnGrants(grants, Local(elapsed))) return false;
  std::vector<uint64_t> before;
  for (const TeamLoad& load : loads_) before.push_back(load.held);
  Refresh(elapsed);
  bool tell = first && habits.tells_first;
  for (size_t i = 0; i < loads_.size(); ++i) {
    if (loads_[i].held < before[i] && habits.tells_less) tell = true;
    if (loads_[i].held <= before[i]) continue;
    if (looks_at_growth_ < kLooksAtGrowth) next_look_ = elapsed + kFirstLook;
    looks_at_growth_ = kLooksAtGrowth;
  }
  return tell;
}

}  // namespace spoke::budget_sim
