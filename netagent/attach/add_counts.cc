#include "netagent/attach/add_counts.h"

#include <algorithm>

namespace spoke::netagent {

std::string_view NameOf(AddOutcome outcome) {
  switch (outcome) {
    case AddOutcome::kAttached:
      return "attached";
    case AddOutcome::kNoAddress:
      return "no_address";
    case AddOutcome::kFailed:
      return "failed";
    case AddOutcome::kGivenUp:
      return "given_up";
  }
  return "failed";
}

void DurationCounts::Add(absl::Duration took) {
  const double seconds = absl::ToDoubleSeconds(took);
  const auto* const bucket = std::lower_bound(kBuckets.begin(), kBuckets.end(), seconds);
  ++counts[static_cast<size_t>(bucket - kBuckets.begin())];
  sum += took;
}

void AddCounts::Add(AddOutcome outcome, const StepTimes& steps) {
  ++outcomes[static_cast<size_t>(outcome)];
  if (outcome != AddOutcome::kAttached) return;
  total.Add(absl::Microseconds(steps.total_us()));
  for (const node_api::AttachStep& step : steps.steps()) {
    if (step.name == "wait") wait.Add(step.took);
    if (step.name == "kernel") kernel.Add(step.took);
    if (step.name == "traffic") traffic.Add(step.took);
  }
}

}  // namespace spoke::netagent
