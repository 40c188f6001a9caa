#include "netagent/session/outbox.h"

#include <utility>

namespace spoke::netagent {
namespace {

constexpr int kInUse = 0;
constexpr int kReleased = 1;
constexpr int kCooled = 2;

}  // namespace

node_api::AssignmentReport& Outbox::Gather(const ip::Address& address, int rank) {
  auto* last = items_.empty() ? nullptr : std::get_if<Gathered>(&items_.back());
  const auto follows = [&] {
    const auto said = last->last.find(address);
    return said == last->last.end() || said->second < rank;
  };
  if (last == nullptr || last->entries == kMaxReportEntries || !follows()) {
    last = &std::get<Gathered>(items_.emplace_back(Gathered{}));
  }
  last->last.insert_or_assign(address, rank);
  ++last->entries;
  ++waiting_entries_;
  return last->report;
}

bool Outbox::Add(const node_api::AssignmentReport& report) {
  for (const node_api::Assignment& assignment : report.in_use) {
    Gather(assignment.address, kInUse).in_use.push_back(assignment);
  }
  for (const node_api::Release& release : report.released) {
    Gather(release.address, kReleased).released.push_back(release);
  }
  for (const ip::Address& address : report.cooled) {
    Gather(address, kCooled).cooled.push_back(address);
  }
  return waiting_entries_ <= kMaxWaitingEntries;
}

template <typename Answer>
bool Outbox::AddAnswer(const Answer& answer) {
  if (waiting_answers_ == kMaxWaitingAnswers) return false;
  items_.emplace_back(answer);
  ++waiting_answers_;
  return true;
}

bool Outbox::Add(const node_api::ReclaimAnswer& answer) { return AddAnswer(answer); }
bool Outbox::Add(const node_api::Inventory& inventory) { return AddAnswer(inventory); }
bool Outbox::Add(const node_api::AttachTracesAnswer& answer) { return AddAnswer(answer); }
bool Outbox::Add(const node_api::ProbeAnswer& answer) { return AddAnswer(answer); }

bool Outbox::Add(const node_api::PolicyTrialAnswer& answer) { return AddAnswer(answer); }
bool Outbox::Add(const node_api::NodeDataAnswer& answer) { return AddAnswer(answer); }

bool Outbox::HasItem() const {
  if (items_.empty()) return false;
  return !unacknowledged_ || !std::holds_alternative<Gathered>(items_.front());
}

bool Outbox::HasNext() const {
  return desired_ack_ || policy_ack_ || demand_ || !conflicts_.empty() || budgets_ || findings_ ||
         maintenance_ || traffic_ || HasItem();
}

std::optional<node_api::AgentMessage> Outbox::Next() {
  if (!HasNext()) return std::nullopt;
  if (desired_ack_) return *std::exchange(desired_ack_, std::nullopt);
  if (policy_ack_) return *std::exchange(policy_ack_, std::nullopt);
  if (demand_) return *std::exchange(demand_, std::nullopt);
  if (!conflicts_.empty()) return conflicts_.extract(conflicts_.begin()).mapped();
  if (budgets_) return *std::exchange(budgets_, std::nullopt);
  if (maintenance_) return *std::exchange(maintenance_, std::nullopt);
  if (findings_) return *std::exchange(findings_, std::nullopt);
  if (!HasItem()) return *std::exchange(traffic_, std::nullopt);
  Item item = std::move(items_.front());
  items_.pop_front();
  if (auto* gathered = std::get_if<Gathered>(&item)) {
    waiting_entries_ -= gathered->entries;
    unacknowledged_ = true;
    gathered->report.sequence = ++last_sequence_;
    return std::move(gathered->report);
  }
  --waiting_answers_;
  if (auto* answer = std::get_if<node_api::ReclaimAnswer>(&item)) return std::move(*answer);
  if (auto* inventory = std::get_if<node_api::Inventory>(&item)) return std::move(*inventory);
  if (auto* probes = std::get_if<node_api::ProbeAnswer>(&item)) return std::move(*probes);
  if (auto* trial = std::get_if<node_api::PolicyTrialAnswer>(&item)) return std::move(*trial);
  if (auto* data = std::get_if<node_api::NodeDataAnswer>(&item)) return std::move(*data);
  return std::move(std::get<node_api::AttachTracesAnswer>(item));
}

bool Outbox::HasOnlyAReport() const {
  return HasItem() && !desired_ack_ && !policy_ack_ && !demand_ && conflicts_.empty() &&
         items_.size() == 1 && std::holds_alternative<Gathered>(items_.front());
}

void Outbox::OnReportAck(uint64_t sequence) {
  if (sequence >= last_sequence_) unacknowledged_ = false;
}

}  // namespace spoke::netagent
