#include "ipam-server/ledger/recovery.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"

namespace spoke::ipam {

void Recovery::Begin(const Witness& witness, absl::Time now, int64_t leadership) {
  leadership_ = leadership;
  if (std::exchange(state_.backup, false)) {
    Recover("the store is a backup that was restored", witness.last ? witness.last->nodes : 0, now);
  }
  if (phase_ == Phase::kRecovering) {
    recovers_since_ = now;
    return;
  }
  if (witness.last && witness.last->store_id != state_.store_id &&
      std::find(state_.former.begin(), state_.former.end(), witness.last->store_id) ==
          state_.former.end()) {
    seen_.insert(witness.last->store_id);
    return Recover("the store is another one than this server had before: it was lost or replaced",
                   witness.last->nodes, now);
  }
  if (witness.last && witness.last->epoch > state_.epoch) {
    highest_seen_ = witness.last->epoch;
    return Recover(fmt::format("the store is older than what this server last wrote (epoch {} "
                               "after {}): a backup was restored",
                               state_.epoch, witness.last->epoch),
                   witness.last->nodes, now);
  }
  if (witness.first_start || (witness.last && witness.same_boot)) return;
  phase_ = Phase::kProving;
  proven_at_ = now + kProvingTime;
}

bool Recovery::OnMark(const StoreMark& shown, absl::Time now) {
  const bool known =
      std::find(state_.former.begin(), state_.former.end(), shown.store_id) != state_.former.end();
  if (known || (shown.store_id == state_.store_id && shown.epoch <= state_.epoch)) return false;
  std::string reason = fmt::format(
      "a node was told more than the store knows (epoch {} after {}): a backup was restored, or "
      "another server has worked on a copy",
      state_.epoch, shown.epoch);
  if (shown.store_id == state_.store_id) {
    highest_seen_ = std::max(highest_seen_, shown.epoch);
  } else {
    seen_.insert(shown.store_id);
    reason =
        "a node was told its addresses from another store: this one was lost and made anew, or "
        "a second server runs on it";
  }
  const bool begins = phase_ != Phase::kRecovering;
  Recover(std::move(reason), shown.nodes, now);
  return begins;
}

bool Recovery::Refuse(const std::string& node, const std::string& why, absl::Time now) {
  if (now < state_.unverified_until) {
    Accept(node);
    return false;
  }
  refused_.insert_or_assign(node, Refusal{.why = why, .at = now});
  return true;
}

void Recovery::ForgetRefused(absl::Time now) {
  // A clock that was set back must not make them stay.
  std::erase_if(refused_, [now](const auto& entry) {
    return now - entry.second.at >= kRefusedTime || now < entry.second.at;
  });
}

void Recovery::AcceptUnverified(absl::Time now) {
  state_.unverified_until = now + kUnverifiedTime;
  refused_.clear();
}

void Recovery::Recover(std::string reason, uint64_t nodes, absl::Time now) {
  if (phase_ != Phase::kRecovering) {
    spoken_.clear();  // A hello does not say all that a node holds.
    gone_.clear();    // Those of an earlier recovery are none that must be there.
    recovers_since_ = now;
  }
  phase_ = Phase::kRecovering;
  if (!state_.cause) state_.cause = RecoveryState::Cause{.reason = std::move(reason), .since = now};
  state_.cause->nodes = std::max(state_.cause->nodes, nodes);
}

void Recovery::OnSpoken(const NodeKey& node) {
  spoken_.insert(node);
  gone_.erase(node);
}

void Recovery::OnGone(const NodeKey& node) {
  if (!spoken_.contains(node)) gone_.insert(node);
}

bool Recovery::IsAwaited(const NodeKey& node) const {
  return !spoken_.contains(node) && !gone_.contains(node);
}
uint64_t Recovery::Expected() const { return state_.cause ? state_.cause->nodes : 0; }

uint64_t Recovery::Silent(const std::vector<NodeKey>& known) const {
  const auto silent = static_cast<uint64_t>(std::count_if(
      known.begin(), known.end(), [&](const NodeKey& node) { return IsAwaited(node); }));
  const uint64_t there = spoken_.size() + gone_.size() + silent;
  return silent + (Expected() > there ? Expected() - there : 0);
}

bool Recovery::IsEarly(absl::Time now) const {
  switch (phase_) {
    case Phase::kOpen:
      return true;
    case Phase::kProving:
      return now < proven_at_ - (kProvingTime - kLeastTime);
    case Phase::kRecovering:
      return now < recovers_since_ + kLeastTime || spoken_.empty() ||
             spoken_.size() + gone_.size() < Expected();
  }
  return false;
}

bool Recovery::WaitsFor(const NodeKey& node, absl::Time now) const {
  switch (phase_) {
    case Phase::kOpen:
      return false;
    case Phase::kProving:
      return now < proven_at_ && IsAwaited(node);
    case Phase::kRecovering:
      return IsAwaited(node);
  }
  return false;
}

bool Recovery::MayOpen(const std::vector<NodeKey>& known, absl::Time now) const {
  switch (phase_) {
    case Phase::kOpen:
      return false;
    case Phase::kProving:
      // Where nobody is known, nobody's silence means anything.
      return now >= proven_at_ ||
             (!IsEarly(now) && !known.empty() && forgotten_.empty() && Silent(known) == 0);
    case Phase::kRecovering:
      return !IsEarly(now) && Silent(known) == 0;
  }
  return false;
}

// What was shown is from now on old.
void Recovery::Open(absl::Time now) {
  if (phase_ == Phase::kRecovering) state_.recovered = now;
  phase_ = Phase::kOpen;
  state_.cause.reset();
  state_.epoch = std::max(state_.epoch, highest_seen_) + 1;
  for (const std::string& store : seen_) state_.former.push_back(store);
  seen_.clear();
  if (state_.former.size() > kMostFormer) {
    state_.former.erase(state_.former.begin(),
                        state_.former.end() - static_cast<std::ptrdiff_t>(kMostFormer));
  }
}

void Recovery::OnReload(const RecoveryState& stored, uint64_t nodes, absl::Time now) {
  state_.epoch = stored.epoch;
  spoken_.clear();
  forgotten_.clear();
  if (phase_ == Phase::kProving) proven_at_ = now + kProvingTime;
  if (stored.cause) {
    phase_ = Phase::kRecovering;
    state_.cause = stored.cause;
    recovers_since_ = now;
  }
  if (stored.backup) {
    Recover("the store is a backup that was restored while the server ran", nodes, now);
  }
  if (stored.epoch >= committed_) return;
  highest_seen_ = std::max(highest_seen_, committed_);
  Recover(fmt::format("the store is older than what this server has written (epoch {} after {}): a "
                      "backup was restored while the server ran",
                      stored.epoch, committed_),
          nodes, now);
}

std::string Recovery::Reason() const {
  switch (phase_) {
    case Phase::kOpen:
      return "";
    case Phase::kProving:
      return "the machine has booted, the server has moved, or others have led, since this server "
             "last wrote the store: nodes have a minute to say whether they were told more";
    case Phase::kRecovering:
      return state_.cause->reason;
  }
  return "";
}

RecoveryState Recovery::Next() const {
  RecoveryState next = state_;
  if (open()) ++next.epoch;
  next.opened_under = open() ? leadership_ : 0;
  return next;
}

}  // namespace spoke::ipam
