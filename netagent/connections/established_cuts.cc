#include "netagent/connections/established_cuts.h"

#include <utility>

namespace spoke::netagent {

EstablishedCuts::~EstablishedCuts() {
  if (thread_.joinable()) thread_.join();
}

void EstablishedCuts::Cut(CutRules rules) {
  if (rules.empty() && !may_have_cut_) {
    to_cut_.reset();
    return;
  }
  to_cut_ = std::move(rules);
  cut_at_ = absl::InfinitePast();
  anew_ = true;
  Tick();
}

void EstablishedCuts::Count(CutRules rules, CountDone done) {
  if (to_count_.size() >= kMaxWaiting) {
    edges_.post([done = std::move(done)] {
      done(absl::ResourceExhaustedError("too many counts of connections wait; try again"));
    });
    return;
  }
  to_count_.push_back({std::move(rules), std::move(done)});
  Tick();
}

void EstablishedCuts::Tick() {
  if (busy_) return;
  if (to_cut_ && cut_at_ <= edges_.clock.Now()) {
    anew_ = false;
    Begin(*to_cut_, ConntrackTable::Act::kCut,
          [this](const ConntrackTable::CutOutcome& outcome) { OnCut(outcome); });
  } else if (!to_count_.empty()) {
    Counting next = std::move(to_count_.front());
    to_count_.pop_front();
    Begin(std::move(next.rules), ConntrackTable::Act::kCount,
          [done = std::move(next.done)](const ConntrackTable::CutOutcome& outcome) {
            done(outcome.status.ok() ? absl::StatusOr<CutsByRule>(outcome.found) : outcome.status);
          });
  }
}

void EstablishedCuts::Begin(CutRules rules, ConntrackTable::Act act,
                            std::function<void(const ConntrackTable::CutOutcome&)> ended) {
  busy_ = true;
  if (thread_.joinable()) thread_.join();  // It has posted its last words.
  thread_ = std::thread([this, act, rules = std::move(rules), ended = std::move(ended)] {
    ConntrackTable::CutOutcome outcome = edges_.table.Cut(rules, act);
    edges_.post([this, ended, outcome = std::move(outcome)] {
      busy_ = false;
      ended(outcome);
      Tick();
    });
  });
}

void EstablishedCuts::OnCut(const ConntrackTable::CutOutcome& outcome) {
  counts_.peer_spoke += outcome.ended;
  counts_.egress += outcome.marked;
  if (outcome.ended + outcome.marked + outcome.released > 0) {
    edges_.log.Info("connections_cut", {{"peer_spoke", outcome.ended},
                                        {"egress", outcome.marked},
                                        {"released", outcome.released},
                                        {"of", outcome.found.connections}});
  }
  if (!outcome.status.ok()) {
    ++counts_.failed;
    if (outcome.status != last_failure_) {
      edges_.log.Warn("connections_not_cut", {{"error", outcome.status}});
    }
    last_failure_ = outcome.status;
    // A look that found too many is no failure to wait after.
    const bool at_once = absl::IsResourceExhausted(outcome.status) && outcome.ended > 0;
    if (!anew_) cut_at_ = edges_.clock.Now() + (at_once ? absl::ZeroDuration() : kRetryPause);
    return;
  }
  last_failure_ = outcome.status;
  if (anew_) return;
  may_have_cut_ = to_cut_ && !to_cut_->empty();
  to_cut_.reset();
}

std::optional<absl::Time> EstablishedCuts::NextWake() const {
  if (busy_) return std::nullopt;
  if (!to_count_.empty()) return absl::InfinitePast();
  if (to_cut_) return cut_at_;
  return std::nullopt;
}

}  // namespace spoke::netagent
