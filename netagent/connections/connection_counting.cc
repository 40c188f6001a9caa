#include "netagent/connections/connection_counting.h"

#include <algorithm>
#include <utility>

namespace spoke::netagent {

ConnectionCounting::~ConnectionCounting() {
  if (thread_.joinable()) thread_.join();
}

void ConnectionCounting::Tick() {
  const absl::Time now = edges_.clock.Now();
  const auto glance = passes_.NextGlance();
  if (!glance || *glance > now) return;
  // Where the kernel tracks no connections there is nothing to read, and nothing to count.
  const TableUse use = edges_.read_use().value_or(TableUse());
  if (!passes_.Glance(now, use, edges_.shares())) return;
  passes_.OnBegun(now, use);
  if (thread_.joinable()) thread_.join();  // It has posted its last words.
  const auto tally = std::make_shared<ConnectionTally>(edges_.pods());
  thread_ = std::thread([this, tally] {
    const absl::Status status = edges_.table.Count(*tally);
    edges_.post([this, tally, status] { OnEnded(tally, status); });
  });
}

void ConnectionCounting::OnEnded(const std::shared_ptr<const ConnectionTally>& tally,
                                 const absl::Status& status) {
  passes_.OnEnded(edges_.clock.Now());
  if (!status.ok()) {
    // The results of the last pass hold on.
    if (status != last_failure_) {
      edges_.log.Warn("connections_not_counted", {{"error", status}});
    }
    last_failure_ = status;
    return;
  }
  last_failure_ = absl::OkStatus();
  const std::optional<ConnectionShares> shares = edges_.shares();
  passes_.OnTally(*tally, shares);
  counted_ = tally->pods();
  if (!shares) return;
  OverShare over = FindOver(counted_, *shares, over_);
  if (over == over_) return;
  SayWhoIsOver(over, *shares);
  over_ = std::move(over);
  edges_.on_over(over_);
}

void ConnectionCounting::SayWhoIsOver(const OverShare& over, const ConnectionShares& shares) {
  const auto has_target = [](const OverShare& all, uint32_t link) {
    return std::any_of(all.with_target.begin(), all.with_target.end(),
                       [&](const auto& key) { return key.link == link; });
  };
  for (const PodConnections& pod : counted_) {
    const bool all = over.links.contains(pod.link) && !over_.links.contains(pod.link);
    const bool target = has_target(over, pod.link) && !has_target(over_, pod.link);
    if (!all && !target) continue;
    edges_.log.Warn("pod_over_share", {{"namespace", pod.pod_namespace},
                                       {"pod", pod.pod_name},
                                       {"connections", pod.connections},
                                       {"translated_ports", pod.translated_ports},
                                       {"share", all ? shares.connections : shares.ports},
                                       {"of", all ? "connections" : "ports"}});
  }
}

absl::Time ConnectionCounting::NextWake() const {
  return passes_.NextGlance().value_or(absl::InfiniteFuture());
}

}  // namespace spoke::netagent
