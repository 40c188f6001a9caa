// The rules of a node, written down once more and as generously as they can be read: a rate is
// halved for the first time a whole half-life after the hold.
#include <algorithm>
#include <map>

#include "tests/bench/budget/grant_holder.h"

namespace spoke::budget_sim {
namespace {

constexpr size_t kRemembered = 64;
constexpr int64_t kHalvings = 40;

class SimHolder : public GrantHolder {
 public:
  void OnStream() override {
    applied_ = 0;
    sent_.clear();
  }

  void OnReportSent(uint64_t sequence, absl::Time now) override {
    sent_[sequence] = now;
    if (sent_.size() > kRemembered) sent_.erase(sent_.begin());
  }

  bool OnGrants(const node_api::BudgetGrants& grants, absl::Time /*now*/) override {
    const auto sent = sent_.find(grants.answers);
    if (grants.sequence <= applied_ || sent == sent_.end()) return false;
    applied_ = grants.sequence;
    held_.clear();
    for (const node_api::BudgetGrant& grant : grants.grants) {
      if (grant.budget == kBudget) held_[grant.team] = {grant, sent->second};
    }
    return true;
  }

  uint64_t applied() const override { return applied_; }

  std::vector<TeamHold> At(absl::Time now, const NodePolicy& policy,
                           const std::vector<std::string>& here) const override {
    std::vector<TeamHold> holds;
    for (const std::string& team : here) {
      const auto found = held_.find(team);
      TeamHold hold{.team = team, .rate = policy.floor / here.size()};
      if (found != held_.end()) {
        hold.held = RateOf(found->second, now, policy);
        hold.connections = found->second.grant.connections;
      }
      hold.rate = std::max(hold.rate, hold.held);
      holds.push_back(hold);
    }
    for (const auto& [team, held] : held_) {
      if (std::find(here.begin(), here.end(), team) != here.end()) continue;
      const uint64_t rate = RateOf(held, now, policy);
      if (rate > 0) holds.push_back({team, rate, rate, held.grant.connections});
    }
    return holds;
  }

  absl::Time NextChange(absl::Time now, const NodePolicy& policy) const override {
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [team, held] : held_) {
      const absl::Time decays = held.from + held.grant.duration + policy.hold;
      const int64_t halvings = now < decays ? 0 : (now - decays) / policy.half_life;
      if (halvings < kHalvings) next = std::min(next, decays + (halvings + 1) * policy.half_life);
    }
    return next;
  }

 private:
  struct Held {
    node_api::BudgetGrant grant;
    absl::Time from;
  };

  static uint64_t RateOf(const Held& held, absl::Time now, const NodePolicy& policy) {
    const absl::Time decays = held.from + held.grant.duration + policy.hold;
    if (now < decays) return held.grant.rate.count();
    const int64_t halvings = (now - decays) / policy.half_life;
    return halvings >= kHalvings ? 0 : held.grant.rate.count() >> static_cast<unsigned>(halvings);
  }

  uint64_t applied_ = 0;
  std::map<uint64_t, absl::Time> sent_;
  std::map<std::string, Held> held_;
};

}  // namespace

std::unique_ptr<GrantHolder> MakeSimHolder() { return std::make_unique<SimHolder>(); }

}  // namespace spoke::budget_sim
