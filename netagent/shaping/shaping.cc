#include "netagent/shaping/shaping.h"

#include <algorithm>
#include <set>

#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

constexpr int kLooksAtGrowth = 2;
// A team that could use less than this part of what it holds, and of what it has told, soon says
// so.
constexpr double kMuchLess = 0.5;
// The same part where a grant has just grown, since that was a guess.
constexpr double kLessOfGrowth = 0.95;

// Returns the groups as the class map would number them, for a policy that is not in force.
std::map<std::string, ClassNumber> GroupsOf(const Policy& policy) {
  constexpr std::string_view kPrefix = "DestinationGroup/";
  std::map<std::string, ClassNumber> groups;
  for (const auto& [key, entry] : policy.entries) {
    if (!std::holds_alternative<policy::DestinationGroup>(entry.value)) continue;
    groups.emplace(key.substr(kPrefix.size()),
                   kFirstGroup + static_cast<ClassNumber>(groups.size()));
  }
  return groups;
}

}  // namespace

Shaping::Shaping(const Edges& edges) : edges_(edges) {}

absl::Status Shaping::Check(const Policy& policy) {
  return ShapingRules::Resolve(policy, GroupsOf(policy)).status();
}

absl::Status Shaping::OnPolicy(const Policy& policy, const ClassMap& classes) {
  ASSIGN_OR_RETURN(ShapingRules rules, ShapingRules::Resolve(policy, classes.groups()));
  rules_ = std::move(rules);
  classes_ = classes;
  // Names have changed, perhaps; who learns them says anew what he knows.
  std::erase_if(learned_, [&](const auto& entry) {
    return std::none_of(rules_.host_names().begin(), rules_.host_names().end(),
                        [&](const auto& name) { return name.second == entry.second; });
  });
  if (started_) PutInForce();
  if (streaming_ && !rules_.budgets().empty()) next_report_ = edges_.clock.Now();
  return absl::OkStatus();
}

void Shaping::Start(const std::vector<TrafficPod>& pods) {
  for (const TrafficPod& pod : pods) pods_.insert_or_assign(pod.host_link, pod);
  started_ = true;
  PutInForce();
}

bool Shaping::Concerns(const TrafficPod& pod) const {
  return rules_.limits_pods() || pod.internet != cni::InternetOptions{} ||
         !pod.bandwidth.egress_rate.is_zero();
}

absl::Status Shaping::Attach(const TrafficPod& pod) {
  pods_.insert_or_assign(pod.host_link, pod);
  if (!started_ || !Concerns(pod)) return absl::OkStatus();
  if (pod.internet == cni::InternetOptions{} && pod.bandwidth.egress_rate.is_zero()) {
    const absl::Duration pause = std::clamp(kPause * plan_took_, kSoon, kLook);
    put_at_ = std::min(put_at_, edges_.clock.Now() + pause);
    return absl::OkStatus();
  }
  PutInForce();
  if (in_kernel_ || pod.bandwidth.egress_rate.is_zero()) return absl::OkStatus();
  return absl::UnavailableError("the limit of what the pod sends is not in force: " + missing_);
}

absl::Status Shaping::Detach(const std::string& host_link) {
  const auto found = pods_.find(host_link);
  if (found == pods_.end()) return absl::OkStatus();
  // Nothing passes by the link any more, so its classes may stay until the next plan.
  unread_ = unread_ || Concerns(found->second);
  pods_.erase(found);
  return absl::OkStatus();
}

void Shaping::OnStream() {
  holder_.OnStream();
  sequence_ = 0;
  streaming_ = true;
  // The report goes out within a second, and not all nodes' at once. It goes out without budgets
  // too: a server that has just started waits to hear from each node what it holds.
  next_report_ = edges_.clock.Now() + kLook * (static_cast<double>(edges_.random() % 1000) / 1000);
}

void Shaping::OnGrants(const node_api::BudgetGrants& grants) {
  // What was sent in the stream before counts as held until the server hears of something of this
  // one, whatever the node really holds.
  const bool first = holder_.applied() == 0;
  if (!holder_.OnGrants(grants, edges_.monotonic())) return;
  std::map<std::pair<std::string, std::string>, units::BitRate> before;
  for (const GrantInForce& grant : grants_) before[{grant.budget, grant.team}] = grant.held;
  PutInForce();
  bool less = false;
  bool grown = false;
  for (const GrantInForce& grant : grants_) {
    const units::BitRate held = std::exchange(before[{grant.budget, grant.team}], units::BitRate());
    less = less || grant.held < held;
    grown = grown || grant.held > held;
  }
  if (grown && in_kernel_) {
    // The look is put off once, since what is read sooner is mostly of the time before: what grows
    // again and again must be looked at too.
    if (looks_at_growth_ < kLooksAtGrowth) next_look_ = edges_.clock.Now() + kFirstLook;
    looks_at_growth_ = kLooksAtGrowth;
  }
  // Others wait for what was taken away; what has been given is told of once it is used.
  if (first || less || std::any_of(before.begin(), before.end(), [](const auto& b) {
        return !b.second.is_zero();
      })) {
    Report();
  }
}

void Shaping::OnLearned(std::map<ip::Address, ClassNumber> learned) {
  if (learned == learned_) return;
  learned_ = std::move(learned);
  if (started_) PutInForce();
}

std::vector<std::pair<std::string, std::string>> Shaping::TeamsHere() const {
  std::set<std::string> teams;
  for (const auto& [link, pod] : pods_) teams.insert(rules_.TeamOf(pod.pod_namespace));
  std::set<std::pair<std::string, std::string>> here;
  for (const ResolvedBudget& budget : rules_.budgets()) {
    for (const std::string& team : teams) here.emplace(budget.name, budget.TeamIn(team));
  }
  return {here.begin(), here.end()};
}

void Shaping::PutInForce() {
  const absl::Time began = edges_.monotonic();
  PlanAndApply();
  plan_took_ = edges_.monotonic() - began;
}

void Shaping::PlanAndApply() {
  const absl::Time now = edges_.clock.Now();
  put_at_ = absl::InfiniteFuture();
  // What pods that have gone had counted would go with their classes.
  if (unread_) ReadCounts();
  grants_ = holder_.At(edges_.monotonic(), rules_.budgets(), TeamsHere());
  std::vector<TrafficPod> pods;
  pods.reserve(pods_.size());
  for (const auto& [link, pod] : pods_) pods.push_back(pod);
  ShapingPlan plan = PlanShaping({.rules = rules_,
                                  .classes = classes_,
                                  .pods = pods,
                                  .grants = grants_,
                                  .learned = learned_,
                                  .demand = meter_.Demand()},
                                 plan_);
  plan_ = std::move(plan);
  const bool idle = plan_.tables.flows.empty();
  // Where a policy limits pods, the first of them does not wait for the queues either.
  const bool limits = rules_.limits_pods();
  if (!idle && !limits) kept_until_ = now + kKeptFor;
  const bool kept = !idle || limits || now < kept_until_;
  if (!kept) plan_.tables = {};
  plan_.tables.ready = kept;
  if (in_kernel_ != plan_.tables) {
    const absl::Status status = kept ? edges_.shaper.Apply(plan_.tables) : edges_.shaper.Remove();
    if (!status.ok()) return OnRefusal(status);
    in_kernel_ = plan_.tables;
    if (!std::exchange(missing_, "").empty()) edges_.log.Info("shaping_works_again", {});
  }
  // A look that is due before is not put off, or whoever changes something often would prevent all.
  if (!idle || !rules_.budgets().empty()) {
    next_look_ = std::min(next_look_, now + kLook);
  } else {
    next_look_ = kept && !limits ? kept_until_ : absl::InfiniteFuture();
  }
  if (!kept) {
    next_repair_ = absl::InfiniteFuture();
  } else if (next_repair_ == absl::InfiniteFuture()) {
    next_repair_ = now + kRepair;
  }
}

void Shaping::OnRefusal(const absl::Status& status) {
  in_kernel_.reset();
  const bool lacks = absl::IsUnimplemented(status) || absl::IsPermissionDenied(status);
  next_look_ = edges_.clock.Now() + (lacks ? kRetry : kLook);
  const std::string why(status.message());
  if (std::exchange(missing_, why) == why) return;
  edges_.log.Warn("shaping_refused", {{"error", status}, {"flows", plan_.tables.flows.size()}});
}

void Shaping::ReadCounts() {
  unread_ = false;
  if (!in_kernel_) return;
  const auto reading = edges_.shaper.Read();
  if (reading.ok()) {
    meter_.OnReading(*reading, plan_, grants_, edges_.monotonic());
  } else {
    edges_.log.Warn("shaping_unreadable", {{"error", reading.status()}});
  }
}

void Shaping::Look() {
  const int looks = std::exchange(looks_at_growth_, std::max(looks_at_growth_ - 1, 0));
  next_look_ = edges_.clock.Now() + (looks_at_growth_ > 0 ? kSecondLook : kLook);
  ReadCounts();
  PutInForce();
  if (looks == kLooksAtGrowth || meter_.newly_held_back() || WantsLess(looks == 1)) {
    report_soon_ = true;
  }
}

bool Shaping::WantsLess(bool has_grown) const {
  const double part = has_grown ? kLessOfGrowth : kMuchLess;
  // Whoever is not held back is left what it uses while others wait, without the headroom.
  const double of_held = has_grown ? part * kHeadroom : part;
  const std::vector<node_api::BudgetUse> uses = meter_.Uses(plan_, grants_);
  return std::any_of(uses.begin(), uses.end(), [&](const node_api::BudgetUse& use) {
    const auto told = told_.find({use.budget, use.team});
    if (told == told_.end()) return false;
    const auto demand = static_cast<double>(use.demand.count());
    return demand < of_held * static_cast<double>(use.held.count()) &&
           demand < part * static_cast<double>(told->second.count());
  });
}

void Shaping::Report() {
  if (!streaming_) return;
  const absl::Time now = edges_.clock.Now();
  holder_.OnReportSent(++sequence_, edges_.monotonic());
  std::vector<node_api::BudgetUse> uses = meter_.Uses(plan_, grants_);
  told_.clear();
  for (const node_api::BudgetUse& use : uses) told_[{use.budget, use.team}] = use.demand;
  edges_.server.ReportBudgets({.sequence = sequence_,
                               .applied = in_kernel_ ? holder_.applied() : 0,
                               .uses = std::move(uses)});
  last_report_ = now;
  report_soon_ = false;
  if (rules_.budgets().empty()) {
    next_report_ = absl::InfiniteFuture();
    return;
  }
  absl::Duration refresh = absl::Seconds(60);
  for (const ResolvedBudget& budget : rules_.budgets()) {
    refresh = std::min(refresh, budget.refresh);
  }
  // The period is a tenth longer or shorter, so that nodes that began together do not stay
  // together.
  const double part = 0.9 + static_cast<double>(edges_.random() % 1000) / 5000;
  next_report_ = now + std::max(refresh * part, kEarliest);
}

void Shaping::Repair() {
  next_repair_ = edges_.clock.Now() + kRepair;
  const auto mended = edges_.shaper.Repair();
  if (!mended.ok()) {
    edges_.log.Warn("shaping_not_repaired", {{"error", mended.status()}});
    in_kernel_.reset();
    next_look_ = edges_.clock.Now();
    return;
  }
  if (*mended == 0) return;
  repaired_ += *mended;
  edges_.log.Warn("shaping_repaired", {{"things", *mended}});
}

void Shaping::Tick() {
  if (!started_) return;
  const absl::Time now = edges_.clock.Now();
  // A clock that was put back must not silence it.
  if (next_look_ != absl::InfiniteFuture()) next_look_ = std::min(next_look_, now + kRetry);
  if (next_repair_ != absl::InfiniteFuture()) next_repair_ = std::min(next_repair_, now + kRepair);
  if (put_at_ != absl::InfiniteFuture()) put_at_ = std::min(put_at_, now + kLook);
  if (now >= next_repair_) Repair();
  if (now >= next_look_) Look();
  if (now >= put_at_) PutInForce();
  if (report_soon_) next_report_ = std::min(next_report_, last_report_ + kEarliest);
  if (next_report_ != absl::InfiniteFuture()) next_report_ = std::min(next_report_, now + kRetry);
  if (now >= next_report_) Report();
}

absl::Time Shaping::NextWake() const {
  return std::min({put_at_, next_look_, next_repair_, next_report_});
}

ShapingState Shaping::state() const {
  ShapingState state{.missing = missing_,
                     .grants = {},
                     .totals = meter_.totals(),
                     .repaired = repaired_,
                     .flows = plan_.tables.flows.size(),
                     .learned_addresses = learned_.size()};
  const std::vector<node_api::BudgetUse> uses = meter_.Uses(plan_, grants_);
  for (size_t i = 0; i < grants_.size(); ++i) {
    ShapingState::Grant row{.grant = grants_[i]};
    for (const ResolvedBudget& budget : rules_.budgets()) {
      if (budget.name != row.grant.budget) continue;
      row.direction = budget.direction;
      row.shadow = budget.shadow;
    }
    if (i < uses.size()) {
      row.demand = uses[i].demand;
      row.usage = uses[i].usage;
    }
    state.grants.push_back(std::move(row));
  }
  return state;
}

}  // namespace spoke::netagent
