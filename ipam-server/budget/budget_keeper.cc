#include "ipam-server/budget/budget_keeper.h"

namespace spoke::ipam {

void BudgetKeeper::Start(AgentLink& agents, telemetry::Log& log) {
  thread_ = std::thread([this, &agents, &log] { Run(agents, log); });
}

void BudgetKeeper::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void BudgetKeeper::ExpectNodes(const std::vector<NodeKey>& nodes) {
  absl::MutexLock lock(&mutex_);
  std::vector<BudgetBook::NodeNumber> numbers;
  for (const NodeKey& node : nodes) numbers.push_back(NumberOf(node));
  book_.ExpectNodes(std::move(numbers));
}

void BudgetKeeper::SetBudgets(std::vector<BudgetSpec> specs) {
  absl::MutexLock lock(&mutex_);
  floor_nodes_.clear();
  for (const BudgetSpec& spec : specs) floor_nodes_[spec.name] = spec.floor_nodes;
  std::erase_if(floor_short_, [&](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !floor_nodes_.contains(entry.first);
  });
  book_.SetBudgets(std::move(specs));
}

BudgetBook::NodeNumber BudgetKeeper::NumberOf(const NodeKey& node) {
  const auto [it, inserted] = numbers_.try_emplace(node, last_number_ + 1);
  if (inserted) nodes_.emplace(++last_number_, Node{.key = node});
  return it->second;
}

void BudgetKeeper::OnReport(const NodeKey& node, SessionId session,
                            const node_api::BudgetReport& report) {
  absl::MutexLock lock(&mutex_);
  const BudgetBook::NodeNumber number = NumberOf(node);
  Node& known = nodes_.at(number);
  if (session < known.last_session) return;  // Another has taken over.
  if (session > known.last_session) {
    known.last_session = session;
    book_.OnStream(number);
  }
  known.session = session;
  if (book_.OnReport(number, report, clock_.Now())) urgent_ = true;
  ++counts_.reports;
}

void BudgetKeeper::OnStreamEnd(const NodeKey& node, SessionId session) {
  absl::MutexLock lock(&mutex_);
  const auto it = numbers_.find(node);
  if (it == numbers_.end()) return;
  Node& known = nodes_.at(it->second);
  if (known.session == session) known.session = 0;
}

void BudgetKeeper::OnNodeGone(const NodeKey& node) {
  absl::MutexLock lock(&mutex_);
  const auto it = numbers_.find(node);
  if (it == numbers_.end()) return;
  book_.OnNodeGone(it->second);
  nodes_.erase(it->second);
  numbers_.erase(it);
}

std::vector<BudgetStanding> BudgetKeeper::Standings() const {
  absl::MutexLock lock(&mutex_);
  return book_.Standings(clock_.Now());
}

std::vector<std::pair<std::string, NodeBudgetStanding>> BudgetKeeper::NodesOf(
    std::string_view budget, std::string_view team) const {
  std::vector<std::pair<std::string, NodeBudgetStanding>> named;
  absl::MutexLock lock(&mutex_);
  for (NodeBudgetStanding& standing : book_.NodesOf(budget, team, clock_.Now())) {
    const auto node = nodes_.find(standing.node);
    if (node == nodes_.end()) continue;
    named.emplace_back(node->second.key.name, std::move(standing));
  }
  return named;
}

BudgetCounts BudgetKeeper::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

void BudgetKeeper::Run(AgentLink& agents, telemetry::Log& log) {
  while (Wait()) {
    if (heartbeat_ != nullptr) heartbeat_->Beat();
    Decide(agents, log);
  }
}

// Waits until the next decision is due; returns false when it is time to go.
bool BudgetKeeper::Wait() {
  absl::MutexLock lock(&mutex_);
  const auto stopped = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopped_; };
  const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopped_ || urgent_; };
  // The least distance of two decisions comes first, in which more reports may come.
  mutex_.AwaitWithTimeout(absl::Condition(&stopped), pace_.quick);
  mutex_.AwaitWithTimeout(absl::Condition(&due), pace_.tick - pace_.quick);
  return !stopped_;
}

void BudgetKeeper::Decide(AgentLink& agents, telemetry::Log& log) {
  std::vector<std::pair<SessionId, node_api::BudgetGrants>> out;
  std::vector<ShortFloor> short_floors;
  {
    absl::MutexLock lock(&mutex_);
    urgent_ = false;
    for (auto& [number, grants] : book_.Decide(clock_.Now())) {
      const auto node = nodes_.find(number);
      if (node == nodes_.end() || node->second.session == 0) continue;
      out.emplace_back(node->second.session, std::move(grants));
    }
    counts_.grants += out.size();
    short_floors = NewShortFloors();
  }
  for (auto& [session, grants] : out) agents.Send(session, std::move(grants));
  for (const ShortFloor& found : short_floors) {
    log.Warn(
        "budget_floor_short",
        {{"budget", found.budget}, {"nodes", found.nodes}, {"floor_nodes", found.floor_nodes}});
  }
}

// Each is said once, and again when it was over meanwhile.
std::vector<BudgetKeeper::ShortFloor> BudgetKeeper::NewShortFloors() {
  std::vector<ShortFloor> found;
  for (const auto& [budget, floor_nodes] : floor_nodes_) {
    const bool is_short = nodes_.size() > floor_nodes;
    bool& said = floor_short_[budget];
    if (is_short && !said) found.push_back({budget, nodes_.size(), floor_nodes});
    said = is_short;
  }
  return found;
}

}  // namespace spoke::ipam
