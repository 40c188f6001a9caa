// What an agent tells of its own past and state.
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "lib/base/version.h"
#include "netagent/agent.h"
#include "netagent/agent_state.h"
#include "netagent/node/findings_report.h"

namespace spoke::netagent {

void Agent::Take(const node_api::NodeDataRequest& request) {
  NodeDataParts parts = {{"state", [this] {
                            return StateText({.identity = identity_,
                                              .version = std::string(base::kVersion),
                                              .not_serving = CniReason(),
                                              .assignments = attachments_.assignments(),
                                              .findings = findings_.latest(),
                                              .maintenance = maintenance_.told()});
                          }}};
  if (read_log_) parts.emplace("log", read_log_);
  session_.Answer(AnswerNodeData(request, parts));
}

absl::StatusOr<AgentReading> Agent::Read(absl::Duration within) {
  struct Answer {
    absl::Mutex mutex;
    std::optional<AgentReading> reading ABSL_GUARDED_BY(mutex);
  };
  // The answer is shared, since either side may give up first.
  const auto answer = std::make_shared<Answer>();
  loop_.Post([this, answer] {
    AgentReading reading{
        .repairs = repairer_.counts(), .lost_dels = lost_dels_.counts(), .adds = adds_.counts()};
    if (clearing_) reading.clearing = clearing_->counts();
    if (cuts_) reading.cuts = cuts_->counts();
    if (traffic_) reading.traffic = traffic_->Read(/*is_scrape=*/true);
    if (counting_) reading.connections = counting_->pods();
    if (shaping_) reading.shaping = shaping_->state();
    if (dns_names_) reading.dns_names = dns_names_->state();
    const absl::MutexLock lock(&answer->mutex);
    answer->reading = std::move(reading);
  });
  const absl::MutexLock lock(&answer->mutex);
  const auto is_there = [&] {
    answer->mutex.AssertHeld();
    return answer->reading.has_value();
  };
  if (!answer->mutex.AwaitWithTimeout(absl::Condition(&is_there), within)) {
    return absl::DeadlineExceededError("the agent is busy");
  }
  return *std::move(answer->reading);
}

}  // namespace spoke::netagent
