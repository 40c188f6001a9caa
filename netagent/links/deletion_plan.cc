#include "netagent/links/deletion_plan.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "netagent/claims.h"

namespace spoke::netagent {

// The groups are for full batches, the open one, the one under way and a refused one that was put
// back; one link more than kMaxLinks may be there before anybody waits.
static_assert(DeletionPlan::kMaxLinks / DeletionPlan::kMaxBatch + 4 <= claims::kDeletionGroups);

uint32_t DeletionPlan::NextGroup() const {
  if (!waiting_.empty() && waiting_.back().links.size() < kMaxBatch) return waiting_.back().group;
  return claims::kFirstDeletionGroup + next_group_;
}

void DeletionPlan::Add(DeferredLink link, absl::Time now) {
  const uint32_t group = NextGroup();
  if (waiting_.empty() || waiting_.back().group != group) {
    waiting_.push_back({.group = group, .links = {}, .first_at = now});
    next_group_ = (next_group_ + 1) % claims::kDeletionGroups;
  }
  waiting_.back().links.push_back(std::move(link));
  ++size_;
}

std::optional<DeletionBatch> DeletionPlan::TakeDue(absl::Time now) {
  const std::optional<absl::Time> due = NextDue();
  if (!due || *due > now) return std::nullopt;
  under_way_ = std::move(waiting_.front());
  waiting_.pop_front();
  return under_way_;
}

void DeletionPlan::Finish(bool gone, absl::Time now) {
  CHECK(under_way_.has_value(), "a batch is finished that was taken");
  if (gone) {
    size_ -= under_way_->links.size();
    if (hurried_ > 0) --hurried_;
    not_before_ = now + kPause;
  } else {
    waiting_.push_front(*std::move(under_way_));
    // Those who wait hear of the refusal, and the batch is no longer hurried for them.
    hurried_ = 0;
    not_before_ = now + kRetry;
  }
  under_way_.reset();
}

std::optional<absl::Time> DeletionPlan::NextDue() const {
  if (under_way_ || waiting_.empty()) return std::nullopt;
  if (hurried_ > 0) return absl::InfinitePast();
  const DeletionBatch& first = waiting_.front();
  const absl::Time filled =
      first.links.size() >= kMaxBatch ? first.first_at : first.first_at + kMaxWait;
  return std::max(filled, not_before_);
}

void DeletionPlan::Hurry() { hurried_ = waiting_.size() + (under_way_ ? 1 : 0); }

template <typename Predicate>
bool DeletionPlan::AnyLink(Predicate matches) const {
  const auto any = [&matches](const DeletionBatch& batch) {
    return std::any_of(batch.links.begin(), batch.links.end(), matches);
  };
  return std::any_of(waiting_.begin(), waiting_.end(), any) || (under_way_ && any(*under_way_));
}

bool DeletionPlan::Has(const std::string& host_link) const {
  return AnyLink([&host_link](const DeferredLink& link) { return link.host_link == host_link; });
}

bool DeletionPlan::Clashes(const AttachSpec& spec) const {
  return AnyLink([&spec](const DeferredLink& link) {
    return link.host_link == spec.host_link ||
           std::any_of(link.addresses.begin(), link.addresses.end(), [&](const ip::Address& mine) {
             return std::find(spec.addresses.begin(), spec.addresses.end(), mine) !=
                    spec.addresses.end();
           });
  });
}

}  // namespace spoke::netagent
