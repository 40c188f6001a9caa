// Keeps up what each pod may have of the connections that the kernel tracks, as far as rules hold
// it.
#include <utility>

#include "lib/base/status.h"
#include "netagent/traffic/share_rules.h"
#include "netagent/traffic/traffic.h"

namespace spoke::netagent {

bool Traffic::ReadShares() {
  if (!read_shares_) return false;
  const auto shares = read_shares_();
  // Once the rules ask about connections the kernel tracks them, whether anybody else needs it or
  // not, and a table that is empty for a moment must not take the rules away.
  if (!shares || shares == shares_) return false;
  shares_ = shares;
  return true;
}

void Traffic::LookAtShares() {
  const std::optional<ConnectionShares> before = shares_;
  if (!ReadShares()) return;
  const absl::Status status = Put(in_force_);
  if (status.ok()) return;
  shares_ = before;
  log_.Warn("traffic_look_failed", {{"error", status}});
}

void Traffic::OnOverShare(OverShare over) {
  over_ = std::move(over);
  if (!started_ || !held_.empty() || !rules_made_with_.shares) return;
  nft::Transaction transaction;
  AppendOver(over_, transaction);
  const absl::Status status = Commit(transaction);
  if (status.ok()) return;
  log_.Warn("traffic_look_failed", {{"error", base::Annotate(status, "bound pods' connections")}});
  suspect_ = true;
  generation_.reset();
  next_look_ = clock_.Now();
}

}  // namespace spoke::netagent
