// When nothing can be stored: memory goes back to what the store says, and all begin again.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/loop/fleet_loop.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kProbePeriod = absl::Seconds(1);
constexpr absl::Duration kLongestProbePeriod = absl::Seconds(30);

}  // namespace

// Memory is ahead of the store now, so it goes back to what the store says, and every agent whose
// message was not answered begins again. Until a commit goes through, agents wait and operators can
// only look.
void FleetLoop::Fail(const absl::Status& why, Batch& batch) {
  if (writable_) edges_.log.Error("store_commit_failed", {{"error", why}});
  SetWritable(why);
  // A store that fails soon after a probe went through is not asked for 7,500 sessions a second.
  const bool again = batch.now - last_recovery_ < kLongestProbePeriod;
  probe_period_ = again ? std::min(2 * probe_period_, kLongestProbePeriod) : kProbePeriod;
  next_probe_ = batch.now + probe_period_;
  SetProblem("store", fmt::format("nothing can be stored: {}", base::MessageOf(why)));
  // It may have happened all the same, or in part: see Store::Commit().
  const bool in_doubt = absl::IsUnavailable(why) || writer_.last_in_parts();
  const absl::Status refused = absl::UnavailableError(
      fmt::format("nothing can be stored now, and {}: {}",
                  in_doubt ? "it is not known whether this was; look before you repeat it"
                           : "nothing was changed",
                  base::MessageOf(why)));
  for (const auto& done : batch.done) done(refused);
  std::set<SessionId> unanswered(batch.read_next.begin(), batch.read_next.end());
  for (const auto& [session, answer] : batch.answers) unanswered.insert(session);
  for (const SessionId session : unanswered) {
    const auto node = nodes_by_session_.find(session);
    if (node == nodes_by_session_.end()) continue;
    EndSession(session, NodeKey(node->second), refused);
    edges_.agents.Close(session, refused);
  }
  // What the cloud was to be asked, or has answered, is asked again once that can be stored.
  for (const NodeKey& key : batch.effects.attach) cloud_retries_[key] = batch.now;
  for (const NodeKey& key : batch.effects.changed) cloud_retries_[key] = batch.now;
  // Perhaps it was stored and only the answer is lost: then who was to be told must be told.
  tell_anew_.merge(batch.effects.desired);
  tell_anew_.merge(batch.effects.resend);
  tell_anew_.insert(batch.effects.changed.begin(), batch.effects.changed.end());
  // What was listed is compared anew with the next listing.
  listed_.reset();
  BeginReload(batch.now);
  Answer(batch);
}

// Reads the store in the background, which takes a while with many nodes: meanwhile the loop turns,
// and answers no query, since memory is ahead of the store.
void FleetLoop::BeginReload(absl::Time now) {
  reload_due_ = true;
  reloading_ = std::make_shared<Reloading>();
  InBackground([reloading = reloading_, &store = edges_.store, settings = settings_, now] {
    absl::StatusOr<LoadedState> loaded = LoadState(store, settings, now);
    absl::MutexLock lock(&reloading->mutex);
    reloading->loaded = std::make_unique<absl::StatusOr<LoadedState>>(std::move(loaded));
  });
  FinishReload();
}

// Puts what was read in place of what memory has, if it has been read by now.
void FleetLoop::FinishReload() {
  if (reloading_ == nullptr) return;
  std::unique_ptr<absl::StatusOr<LoadedState>> loaded;
  {
    absl::MutexLock lock(&reloading_->mutex);
    loaded = std::move(reloading_->loaded);
  }
  if (loaded == nullptr) return;
  reloading_.reset();
  if (!loaded->ok()) {
    edges_.log.Error("store_reload_failed", {{"error", loaded->status()}});
    SetProblem("memory", fmt::format("what is shown may never have been stored: {}",
                                     base::MessageOf(loaded->status())));
    return;
  }
  reload_due_ = false;
  SetProblem("memory", "");
  LoadedState& found = **loaded;
  TakeUnstored(found.state.fleet, state_.fleet);        // No agent of those says it again.
  Recovery recovery = std::move(state_.recovery);       // How it stands is in no store.
  const uint64_t cuts_accepted = state_.cuts_accepted;  // It is in no store either.
  recovery.OnReload(found.state.recovery.state(), with_addresses_.size(), edges_.clock.Now());
  std::swap(state_, found.state);
  state_.recovery = std::move(recovery);
  state_.cuts_accepted = cuts_accepted;
  FindWithAddresses();
  token_.clear();
  if (!state_.recovery.open()) {
    state_.fleet.hold.active = true;
    AskAllInventories();
  }
  writer_.Reset(std::move(found.revisions), found.newest_chunk);
  changed_by_loading_ = std::move(found.changed);
  // Freeing what memory had takes a while as well.
  InBackground([former = std::shared_ptr(std::move(loaded))]() mutable { former.reset(); });
}

// Asks all that are connected. A store that was restored under this server may not know some of
// them: what those hold is nobody's before they have said hello again.
void FleetLoop::AskAllInventories() {
  std::vector<NodeKey> unknown;
  for (auto& [key, session] : sessions_) {
    if (state_.fleet.ledger.Find(key) == nullptr) {
      unknown.push_back(key);
    } else {
      edges_.agents.Send(session.id, node_api::InventoryRequest{++session.last_request});
    }
  }
  for (const NodeKey& key : unknown) GreetAnew(key, "the store does not know this node any more");
}

void FleetLoop::InBackground(std::function<void()> work) {
  if (edges_.background != nullptr) {
    edges_.background->Run(std::move(work));
  } else {
    work();
  }
}

void FleetLoop::TryToRecover(Batch& batch) {
  if (reloading_ != nullptr) return;
  if (!std::exchange(probed_, false)) {
    if (batch.now < next_probe_) return;
    next_probe_ = batch.now + probe_period_;
    if (const absl::Status probed = writer_.Probe(); !probed.ok()) {
      SetProblem("store", fmt::format("nothing can be stored: {}", base::MessageOf(probed)));
      SetWritable(probed);
      return;
    }
    if (reload_due_) BeginReload(batch.now);
    probed_ = reloading_ != nullptr;  // Then it goes on from here once that is done.
    if (probed_) return;
  }
  if (reload_due_) return;
  SetWritable(absl::OkStatus());
  last_recovery_ = batch.now;
  SetProblem("store", "");
  // Their pods cannot wait for the next review.
  for (const auto& [key, demand] : state_.fleet.demands) batch.effects.plan.insert(key);
}

// Why it cannot be written may change while it cannot.
void FleetLoop::SetWritable(const absl::Status& why_not) {
  const bool could = std::exchange(writable_, why_not.ok());
  if (edges_.on_writable && !(could && writable_)) edges_.on_writable(why_not);
}

}  // namespace spoke::ipam
