#include "tests/bench/budget/world.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"

namespace spoke::budget_sim {
namespace {

constexpr double kLeastDelay = 0.02;
constexpr uint64_t kCapacityAnAgent = 20'000'000;
// The least time between two reports.
constexpr absl::Duration kEarliest = absl::Milliseconds(250);

bool Later(const auto& a, const auto& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }

ipam::BudgetSpec SpecOf(const WorldOptions& options) {
  ipam::BudgetSpec spec{.name = kBudget,
                        .capacity = units::BitRate(options.agents * kCapacityAnAgent)};
  spec.floor_nodes = options.agents + options.agents / 10 + 1;
  for (size_t i = 0; i + 1 < options.teams; ++i) {
    ipam::BudgetTeam team{.name = fmt::format("team{:04}", i)};
    team.weight = 1 + static_cast<double>(i % 4);
    const uint64_t part = spec.capacity.count() / options.teams;
    if (i % 10 == 3) team.min = units::BitRate(part / 2);
    if (i % 10 == 7) team.max = units::BitRate(part * 2);
    spec.teams.push_back(team);
  }
  spec.teams.insert(spec.teams.begin(), {.name = ipam::kOtherTeams});
  return spec;
}

}  // namespace

World::World(const WorldOptions& options, std::function<double()> cpu_clock)
    : options_(options),
      cpu_clock_(std::move(cpu_clock)),
      random_(options.seed),
      spec_(SpecOf(options)),
      bound_(spec_.capacity.count()) {
  for (size_t i = 0; i < options.agents; ++i) {
    agents_.emplace_back((2 * Fraction() - 1) * options.drift, Between(0, 1e6));
    agents_[i].policy() = PolicyOf();
    std::vector<size_t> teams;
    while (teams.size() < std::min(options.teams_an_agent, options.teams)) {
      // Some teams are on many nodes, some on few.
      const double skewed = Fraction() * Fraction();
      const auto team = static_cast<size_t>(skewed * static_cast<double>(options.teams));
      if (std::find(teams.begin(), teams.end(), team) == teams.end()) teams.push_back(team);
    }
    for (const size_t team : teams) agents_[i].AddTeam(spec_.teams[team].name, team);
  }
  links_.resize(options.agents);
  for (size_t i = 0; i < options.agents; ++i) {
    LookAt(i, Between(0, 1));
    Add(Between(0, 5), i, 0, Connect{});
    Refresh(i);
  }
  StartServer();
}

NodePolicy World::PolicyOf() const {
  return {.floor = FloorOfNode(spec_).count(), .hold = spec_.hold, .half_life = spec_.half_life};
}

absl::Duration World::Delay() {
  return Between(kLeastDelay, absl::ToDoubleSeconds(options_.most_delay));
}

void World::Add(absl::Duration at, size_t agent, uint64_t stream, What what) {
  events_.push_back({at, ++order_, agent, stream, std::move(what)});
  std::push_heap(events_.begin(), events_.end(), Later<Event, Event>);
}

void World::RunUntil(absl::Duration end, const std::function<void()>& each_tick) {
  while (elapsed_ < end) {
    const absl::Duration tick = elapsed_ + kTick;
    while (!events_.empty() && events_.front().at <= tick) {
      std::pop_heap(events_.begin(), events_.end(), Later<Event, Event>);
      Event event = std::move(events_.back());
      events_.pop_back();
      elapsed_ = std::max(elapsed_, event.at);
      Handle(event);
    }
    elapsed_ = tick;
    const uint64_t decisions = counts_.decisions;
    if (book_ != nullptr && (soon_ || elapsed_ - decided_ >= ipam::BudgetBook::kTick)) Decide();
    Check(counts_.decisions > decisions);
    each_tick();
  }
}

void World::Handle(Event& event) {
  Link& link = links_[event.agent];
  if (link.gone) return;
  if (auto* report = std::get_if<ReportArrives>(&event.what)) {
    if (book_ == nullptr || link.at_server != event.stream || link.cut) return;
    ++counts_.reports;
    if (book_->OnReport(event.agent, report->report, Now())) soon_ = true;
  } else if (std::holds_alternative<Hello>(event.what)) {
    if (book_ != nullptr && !link.cut) OnHello(event.agent, event.stream);
  } else {
    HandleAt(event, agents_[event.agent], link);
  }
}

// Handles what happens at the node.
void World::HandleAt(Event& event, Agent& agent, Link& link) {
  if (std::holds_alternative<Look>(event.what)) {
    if (event.at != link.next_look) return;  // The look has got another time.
    if (agent.Look(options_.habits, elapsed_)) ReportSoon(event.agent);
    if (elapsed_ >= link.next_report) Report(event.agent);
    LookAt(event.agent, agent.next_look());
  } else if (std::holds_alternative<ReportDue>(event.what)) {
    if (elapsed_ >= link.next_report) Report(event.agent);
  } else if (std::holds_alternative<Connect>(event.what)) {
    OnConnect(event.agent);
  } else if (std::holds_alternative<Expire>(event.what)) {
    link.change = absl::InfiniteDuration();
    Refresh(event.agent);
  } else if (auto* policy = std::get_if<PolicyArrives>(&event.what)) {
    agent.policy() = policy->policy;
    Refresh(event.agent);
  } else if (std::holds_alternative<Break>(event.what)) {
    if (event.stream != link.streams) return;
    link.broken = true;
    Add(elapsed_ + Between(0.1, 1), event.agent, 0, Connect{});
  } else if (auto* grants = std::get_if<GrantsArrive>(&event.what)) {
    if (event.stream != link.streams || link.cut) return;
    const bool tell = agent.OnGrants(grants->grants, options_.habits, elapsed_);
    Refresh(event.agent);
    LookAt(event.agent, agent.next_look());
    if (tell) Report(event.agent);
  }
}

void World::OnConnect(size_t i) {
  Link& link = links_[i];
  if (!link.broken) return;
  if (book_ == nullptr || link.cut) {
    Add(elapsed_ + Between(1, 5), i, 0, Connect{});
    return;
  }
  ++counts_.streams;
  ++link.streams;
  link.broken = false;
  link.up_free = link.down_free = elapsed_;
  agents_[i].OnStream();
  SendUp(i, Hello{});
  Report(i);
}

// Whichever comes last replaces what was before, even if the node began it earlier.
void World::OnHello(size_t i, uint64_t stream) {
  Link& link = links_[i];
  if (link.at_server > stream) BreakStream(i, link.at_server, Delay());
  link.at_server = stream;
  book_->OnStream(i);
}

void World::BreakStream(size_t i, uint64_t stream, absl::Duration after) {
  if (stream == links_[i].streams) links_[i].broken = true;
  Add(elapsed_ + after, i, stream, Break{});
}

bool World::Pass(Link& link, absl::Duration& free, absl::Duration& at) {
  if (link.broken || link.cut || Fraction() < options_.loss) return false;
  at = std::max(free, elapsed_ + Delay());
  free = at;
  return true;
}

void World::SendUp(size_t i, What what) {
  Link& link = links_[i];
  if (link.broken) return;
  absl::Duration at;
  if (Pass(link, link.up_free, at)) {
    Add(at, i, link.streams, std::move(what));
  } else {
    BreakStream(i, link.streams, link.cut ? Between(20, 25) : Delay());
  }
}

void World::LookAt(size_t i, absl::Duration at) {
  if (at == links_[i].next_look) return;
  links_[i].next_look = at;
  Add(at, i, 0, Look{});
}

void World::ReportSoon(size_t i) {
  Link& link = links_[i];
  link.next_report = std::min(link.next_report, std::max(elapsed_, link.last_report + kEarliest));
  if (link.next_report > elapsed_) Add(link.next_report, i, 0, ReportDue{});
}

void World::Report(size_t i) {
  Link& link = links_[i];
  link.last_report = elapsed_;
  link.next_report = elapsed_ + spec_.refresh * (0.9 + 0.2 * Fraction());
  if (link.broken) return;
  SendUp(i, ReportArrives{agents_[i].Report(elapsed_)});
}

void World::Refresh(size_t i) {
  Link& link = links_[i];
  const uint64_t usable = agents_[i].Refresh(elapsed_);
  usable_ += usable - link.usable;
  use_ += agents_[i].use() - link.use;
  link.usable = usable;
  link.use = agents_[i].use();
  const absl::Duration change = agents_[i].UntilChange(elapsed_);
  if (change == absl::InfiniteDuration()) return;
  const absl::Duration at = elapsed_ + change + absl::Microseconds(1);
  if (at >= link.change) return;  // It will be looked at before.
  link.change = at;
  Add(at, i, 0, Expire{});
}

void World::Decide() {
  soon_ = false;
  decided_ = elapsed_;
  const double before = cpu_clock_ ? cpu_clock_() : 0;
  auto messages = book_->Decide(Now());
  const double took = (cpu_clock_ ? cpu_clock_() : 0) - before;
  counts_.decide_seconds += took;
  counts_.decide_worst_seconds = std::max(counts_.decide_worst_seconds, took);
  ++counts_.decisions;
  for (auto& [node, grants] : messages) {
    ++counts_.messages;
    Link& link = links_[node];
    if (link.gone || link.at_server != link.streams) continue;
    absl::Duration at;
    if (Pass(link, link.down_free, at)) {
      Add(at, node, link.at_server, GrantsArrive{std::move(grants)});
    } else if (!link.broken) {
      BreakStream(node, link.at_server, link.cut ? Between(20, 25) : Delay());
    }
  }
}

void World::Check(bool decided) {
  ++counts_.ticks;
  if (usable_ > bound_) ++counts_.over_capacity_ticks;
  if (book_ == nullptr || !decided) return;
  const uint64_t committed = book_->Committed(kBudget, Now()).count();
  if (committed <= spec_.capacity.count()) bound_ = spec_.capacity.count();
  if (committed > bound_) ++counts_.over_committed_ticks;
  if (usable_ > committed) ++counts_.below_usable_ticks;
}

void World::OnOptions() {
  for (size_t i = 0; i < agents_.size(); ++i) {
    if (!links_[i].gone) Refresh(i);
  }
}

FairUse World::Fair() const {
  std::vector<Options> options;
  for (size_t i = 0; i < agents_.size(); ++i) {
    for (const TeamLoad& load : agents_[i].loads()) {
      options.push_back({load.index, links_[i].gone ? 0.0 : load.options});
    }
  }
  const auto reserve = static_cast<double>(spec_.capacity.count()) * spec_.floor_part;
  return ExactFairUse(spec_, static_cast<double>(spec_.capacity.count()) - reserve, options);
}

void World::KillServer() {
  book_ = nullptr;
  for (size_t i = 0; i < links_.size(); ++i) {
    links_[i].at_server = 0;
    if (!links_[i].broken) BreakStream(i, links_[i].streams, Between(0, 0.5));
  }
}

void World::StartServer() {
  book_ = std::make_unique<ipam::BudgetBook>(Now());
  std::vector<ipam::BudgetBook::NodeNumber> nodes;
  for (size_t i = 0; i < links_.size(); ++i) {
    if (!links_[i].gone) nodes.push_back(i);
  }
  book_->ExpectNodes(nodes);
  book_->SetBudgets({spec_});
}

void World::Partition(size_t first, size_t count, bool cut) {
  for (size_t i = first; i < first + count; ++i) {
    links_[i].cut = cut;
    if (cut && !links_[i].broken) BreakStream(i, links_[i].streams, Between(20, 25));
  }
}

void World::RestartAgent(size_t agent) {
  if (links_[agent].gone) return;
  agents_[agent].Restart();
  Refresh(agent);
  if (!links_[agent].broken) BreakStream(agent, links_[agent].streams, Between(1, 3));
}

void World::RemoveNode(size_t agent) {
  Link& link = links_[agent];
  link.gone = true;
  usable_ -= link.usable;
  use_ -= link.use;
  link.usable = 0;
  link.use = 0;
  if (book_ != nullptr) book_->OnNodeGone(agent);
}

void World::SetCapacity(uint64_t capacity) {
  bound_ = std::max(bound_, capacity);
  spec_.capacity = units::BitRate(capacity);
  if (book_ != nullptr) book_->SetBudgets({spec_});
  for (size_t i = 0; i < agents_.size(); ++i) {
    Add(elapsed_ + Delay(), i, 0, PolicyArrives{PolicyOf()});
  }
}

void World::SetTimes(absl::Duration grant, absl::Duration hold) {
  spec_.grant = grant;
  spec_.hold = hold;
  if (book_ != nullptr) book_->SetBudgets({spec_});
  for (size_t i = 0; i < agents_.size(); ++i) {
    Add(elapsed_ + Delay(), i, 0, PolicyArrives{PolicyOf()});
  }
}

}  // namespace spoke::budget_sim
