// What may be due for all nodes at once, and is done for some of them in each turn, so that what
// agents and operators say does not wait for all of it.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/ledger/decisions/expire.h"
#include "ipam-server/ledger/decisions/holdings.h"
#include "ipam-server/ledger/decisions/listing.h"
#include "ipam-server/ledger/decisions/nic.h"
#include "ipam-server/ledger/decisions/plan.h"
#include "ipam-server/ledger/scarcity.h"
#include "ipam-server/loop/fleet_loop.h"
#include "lib/base/fnv1a.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

// The time within which every node is looked at once for what it should give back.
constexpr absl::Duration kReviewPeriod = absl::Seconds(60);
// The same while pods wait for addresses that other nodes may have to spare.
constexpr absl::Duration kScarceReviewPeriod = absl::Seconds(10);
constexpr absl::Duration kTick = absl::Milliseconds(100);
// The least change of the time of day that is worth a word.
constexpr absl::Duration kClockTolerance = absl::Minutes(1);

// The nodes of one turn that are looked at for what they should give back.
constexpr size_t kReviewsPerTurn = 128;
// The nodes of one turn whose waiting pods are looked at.
constexpr size_t kWaitingPerTurn = 64;
// The nodes of one turn that get what a reservation for many promised, and their addresses.
constexpr size_t kPlansPerTurn = 128;
constexpr size_t kAssignmentsPerTurn = 768;
// The nodes of one turn whose NIC the cloud is asked to change.
constexpr size_t kRequestsPerTurn = 128;
// The NICs of a listing that one turn compares.
constexpr size_t kListedPerTurn = 128;
// The agents of one turn that are sent a new policy; fewer, when it takes long to find out which.
constexpr size_t kPolicyPerTurn = 256;
constexpr size_t kPolicyChoicesPerTurn = 65'536;

// Returns a number in [0, 1), the same for a node every time, and spread evenly over nodes.
double JitterOf(const NodeKey& key) {
  // absl::Hash would differ from one start to the next.
  return static_cast<double>(base::Fnv1a(key.name) >> 11U) /
         static_cast<double>(uint64_t{1} << 53U);
}

size_t EntriesOf(const Fleet& fleet, const NodeKey& key) {
  const NodeRecord* record = fleet.ledger.Find(key);
  return record == nullptr ? 0 : record->configurations.size() + record->wanted.size();
}

}  // namespace

// What time alone makes due.
void FleetLoop::KeepTime(Batch& batch) {
  std::erase_if(cloud_retries_, [&](const auto& retry) {
    if (retry.second > batch.now) return false;
    batch.effects.attach.insert(retry.first);
    return true;
  });
  TryToOpen(batch);
  ReviewSome(batch);
  CompareSome(batch);
  PlanSome(batch);
  TellSome(batch);
  TellIdentities(batch.now);
  RememberCounters(batch.now);
  const absl::Duration set = edges_.clock.SetAhead();
  SetProblem("clock",
             absl::AbsDuration(set) < kClockTolerance
                 ? std::string()
                 : fmt::format("the clock of this machine was set {} by {} since the server began: "
                               "nothing depends on it, but times that are shown are those of "
                               "before until the server is started anew",
                               set > absl::ZeroDuration() ? "ahead" : "back",
                               absl::FormatDuration(
                                   absl::Trunc(absl::AbsDuration(set), absl::Seconds(1)))));
}

// A pool that comes or goes concerns all agents, and each message costs.
void FleetLoop::TellSome(Batch& batch) {
  for (size_t i = 0; i < kToldPerTurn && !tell_waiting_.empty(); ++i) {
    batch.effects.desired.insert(tell_waiting_.extract(tell_waiting_.begin()));
  }
}

// Plans last of all that decides: what the rest of the turn has found is to be planned for too.
void FleetLoop::PlanSome(Batch& batch) {
  plan_waiting_.merge(batch.effects.plan);
  size_t assigned = 0;
  for (size_t i = 0; i < kPlansPerTurn && assigned < kAssignmentsPerTurn; ++i) {
    if (plan_waiting_.empty()) return;
    const auto next = plan_waiting_.extract(plan_waiting_.begin());
    const size_t before = EntriesOf(state_.fleet, next.value());
    batch.effects.Merge(PlanNode(state_.fleet, next.value(), batch.now));
    assigned += EntriesOf(state_.fleet, next.value()) - before;
  }
}

void FleetLoop::ReviewSome(Batch& batch) {
  const absl::Duration passed = batch.now - last_tick_;
  if (passed >= absl::ZeroDuration() && passed < kTick) return;
  last_tick_ = batch.now;
  batch.effects.Merge(Expire(state_.fleet, batch.now));

  Scarcity scarcity = ScarcityOf(state_.fleet, waiting_looked_, kWaitingPerTurn, batch.now);
  waiting_looked_ = scarcity.last;
  batch.effects.plan.insert(scarcity.servable.begin(), scarcity.servable.end());

  const auto& nodes = state_.fleet.ledger.nodes();
  const auto count = static_cast<double>(nodes.size());
  const absl::Duration period = scarcity.missing.empty() ? kReviewPeriod : kScarceReviewPeriod;
  const double share = absl::FDivDuration(std::max(passed, absl::ZeroDuration()), period);
  review_credit_ = std::min(count, review_credit_ + count * share);
  std::vector<NodeKey> due;
  for (auto it = nodes.upper_bound(reviewed_); review_credit_ >= 1; review_credit_ -= 1, ++it) {
    if (due.size() == kReviewsPerTurn) break;
    if (it == nodes.end()) it = nodes.begin();
    due.push_back(it->first);
  }
  for (const NodeKey& key : due) {
    reviewed_ = key;
    const Review review{
        .jitter = JitterOf(key), .connected = sessions_.contains(key), .scarcity = &scarcity};
    batch.effects.Merge(ReviewNode(state_.fleet, key, review, batch.now));
    AskCloudAgain(key, batch);
  }
}

// What the cloud granted in part only, or forgot.
void FleetLoop::AskCloudAgain(const NodeKey& key, Batch& batch) {
  const NodeRecord* record = state_.fleet.ledger.Find(key);
  if (record == nullptr || cloud_retries_.contains(key)) return;
  const bool waits = std::any_of(record->wanted.begin(), record->wanted.end(),
                                 [](const auto& e) { return !e.second.given.has_value(); });
  const bool on_its_way =
      std::any_of(record->configurations.begin(), record->configurations.end(),
                  [](const auto& e) { return e.second.state != AddressState::kAttached; });
  if (!waits && !on_its_way) return;
  if (!edges_.cloud.ForecastOf(key)) batch.effects.attach.insert(key);
}

// --- What the cloud lists. ---

// A listing that is still being compared gives way: this one is newer.
void FleetLoop::Handle(ListingEvent event, Batch& /*batch*/) {
  listings_failed_ = event.failure.ok() ? 0 : listings_failed_ + 1;
  if (listings_failed_ != 1) {
    SetProblem("listing",
               event.failure.ok()
                   ? std::string()
                   : fmt::format("the cloud does not list its machines: {}. Until it does, nobody "
                                 "sees which are gone, and what others change on NICs",
                                 base::MessageOf(event.failure)));
  }
  if (!event.failure.ok()) return;
  listed_ = Listed{.nics = std::move(event.nics), .covers = std::move(event.covers)};
}

// Compares each NIC with what is known by now; at the end, once, the nodes that no NIC was of.
void FleetLoop::CompareSome(Batch& batch) {
  if (!listed_) return;
  for (size_t i = 0; i < kListedPerTurn; ++i) {
    if (listed_->next == listed_->nics.size()) return FinishListing(batch);
    const NicAddresses& nic = listed_->nics[listed_->next++];
    const NodeRecord* record = nic.node.name.empty() ? state_.fleet.ledger.NodeOn(nic.instance)
                                                     : state_.fleet.ledger.Find(nic.node);
    if (record == nullptr) continue;
    listed_->present.insert(record->key);
    batch.effects.Merge(OnListedNic(state_.fleet, record->key, nic.configurations));
  }
}

void FleetLoop::FinishListing(Batch& batch) {
  Listed done = *std::move(listed_);
  listed_.reset();
  std::set<NodeKey> connected;
  for (const auto& [key, session] : sessions_) connected.insert(connected.end(), key);
  for (const auto& [key, record] : state_.fleet.ledger.nodes()) {
    const bool unnamed = settings_.fleet.cloud_chooses && record.instance.empty();
    if (unnamed || !done.covers(record.instance)) done.present.insert(key);
  }
  if (!state_.recovery.open()) {
    for (const NodeKey& gone : GoneMeanwhile(state_.fleet, done.present, connected)) {
      state_.recovery.OnGone(gone);
    }
    return;
  }
  batch.effects.Merge(OnListing(state_.fleet, done.present, connected, batch.now));
}

// --- What is said to the cloud and to agents. ---

// A cloud that does not choose is told all that is to be on a NIC, and takes off what the store
// does not name. Where machines are known by name only, what has the name now is another's NIC;
// what has not spoken may have been told more than the store knows; and pods may use what the store
// cannot name.
bool FleetLoop::MayAskCloud(const NodeRecord& record) const {
  const bool is_told_all = !settings_.fleet.cloud_chooses;
  if (is_told_all && (record.mode == NodeMode::kRetired || unheard_.contains(record.key) ||
                      UsesUnheld(state_.fleet, record))) {
    return false;
  }
  return HasItsInstance(state_.fleet.ledger, record);
}

// Asks the cloud after what was decided has been stored.
void FleetLoop::RequestSome() {
  if (!state_.recovery.open()) return;
  for (size_t i = 0; i < kRequestsPerTurn && !attach_waiting_.empty(); ++i) {
    const auto next = attach_waiting_.extract(attach_waiting_.begin());
    const NodeRecord* record = state_.fleet.ledger.Find(next.value());
    if (record == nullptr || !MayAskCloud(*record)) continue;
    if (settings_.fleet.cloud_chooses) {
      const absl::Time now = edges_.clock.Now();
      if (const absl::Duration wait = requests_.Take(next.value().name, now);
          wait > absl::ZeroDuration()) {
        cloud_retries_[next.value()] = now + wait;
        continue;
      }
    }
    NicRequest request = RequestFor(*record);
    request.mended = retry_waiting_.erase(next.value()) > 0;
    if (request.mended) cloud_retries_.erase(next.value());
    cloud_asked_.try_emplace(next.value(), edges_.clock.Now());
    edges_.cloud.Request(std::move(request));
  }
}

void FleetLoop::SpreadPolicy() {
  const size_t choices = std::max<size_t>(1, state_.bundles.choices());
  const size_t most = std::clamp<size_t>(kPolicyChoicesPerTurn / choices, 1, kPolicyPerTurn);
  for (size_t i = 0; i < most && !policy_waiting_.empty(); ++i) {
    const auto next = policy_waiting_.extract(policy_waiting_.begin());
    if (const auto session = sessions_.find(next.value()); session != sessions_.end()) {
      SendPolicy(next.value(), session->second);
    }
  }
}

}  // namespace spoke::ipam
