#include "ipam-server/operators/policy_change.h"

#include <utility>

#include "ipam-server/ledger/decisions/operators.h"
#include "ipam-server/operators/policy_versions.h"
#include "lib/base/status.h"

namespace spoke::ipam {

PolicyChange::PolicyChange(const ServerSettings& settings, const ApplyPlan& plan, uint64_t from)
    : from_(from),
      next_(plan.next),
      pools_(PoolsOf(settings, plan.next)),
      writes_(EncodePlan(plan)),
      compiled_(plan.next) {
  for (PolicyWrite& former : EncodeFormer(plan, from)) writes_.push_back(std::move(former));
}

absl::StatusOr<std::optional<Effects>> PolicyChange::PutIntoForce(ServerState& state,
                                                                  RawRecords& raw, absl::Time now) {
  if (state.objects.version() != from_) return std::nullopt;
  ASSIGN_OR_RETURN(Effects effects, SetPools(state.fleet, pools_, now));
  state.objects = std::move(next_);
  state.bundles.Advance(std::move(compiled_));
  for (PolicyWrite& write : writes_) {
    raw.insert_or_assign(std::move(write.key), std::move(write.value));
  }
  return effects;
}

}  // namespace spoke::ipam
