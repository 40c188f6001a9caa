#include "netagent/connections/connection_clearing.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace spoke::netagent {

ConnectionClearing::ConnectionClearing(absl::Duration cooldown, const Edges& edges,
                                       Attachments& attachments)
    : edges_(edges), attachments_(attachments), passes_(cooldown) {}

ConnectionClearing::~ConnectionClearing() {
  if (thread_.joinable()) thread_.join();
}

void ConnectionClearing::Tick() {
  const std::set<ip::Address>& waiting = attachments_.assignments().Uncleared();
  const absl::Time now = edges_.clock.Now();
  const auto next = passes_.NextPass(waiting);
  if (!next || *next > now) return;
  passes_.OnBegun(now);
  begun_ = now;
  if (thread_.joinable()) thread_.join();  // It has posted its last words.
  thread_ = std::thread([this, of = waiting] {
    ConntrackTable::Outcome outcome =
        edges_.table.DeleteConnectionsOf(AddressSet(of.begin(), of.end()));
    edges_.post([this, of, outcome = std::move(outcome)] { OnEnded(of, outcome); });
  });
}

void ConnectionClearing::OnEnded(const std::set<ip::Address>& of,
                                 const ConntrackTable::Outcome& outcome) {
  const absl::Time now = edges_.clock.Now();
  passes_.OnEnded(now, outcome.left);
  ++counts_.passes;
  counts_.deleted += outcome.deleted;
  counts_.took += now - begun_;
  if (!outcome.status.ok()) {
    ++counts_.failed;
    if (outcome.status != last_failure_) {
      edges_.log.Warn("connections_not_deleted",
                      {{"error", outcome.status}, {"addresses", outcome.left.size()}});
    }
  } else if (!last_failure_.ok()) {
    edges_.log.Info("connections_deleted", {{"addresses", of.size()}});
  }
  last_failure_ = outcome.status;
  std::set<ip::Address> cleared;
  std::set_difference(of.begin(), of.end(), outcome.left.begin(), outcome.left.end(),
                      std::inserter(cleared, cleared.end()));
  attachments_.OnConnectionsDeleted(cleared);
}

std::optional<absl::Time> ConnectionClearing::NextWake() const {
  return passes_.NextPass(attachments_.assignments().Uncleared());
}

ConnectionClearingCounts ConnectionClearing::counts() const {
  ConnectionClearingCounts counts = counts_;
  counts.waiting = attachments_.assignments().Uncleared().size();
  return counts;
}

}  // namespace spoke::netagent
