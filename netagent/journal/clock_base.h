// What keeps the journal's times comparable over restarts of the agent, whoever sets the time of
// day meanwhile: where the agent's clock began in this boot. And since when nothing is in use that
// the journal does not know.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::netagent {

struct ClockBase {
  absl::Duration ahead;       // By how much the agent's clock (os::SteadyClock) is ahead of uptime.
  bool first_of_boot = true;  // Whether this is the first agent of the boot.

  bool operator==(const ClockBase&) const = default;
};

// Returns the base of the agent's clock: `ahead`, by the time of day as it is now, for the first
// agent of the boot `boot_id`, and what that one was given for all others. `path` is the file that
// remembers it; one of another boot, or one that cannot be read, is replaced. Errors: as
// os::WriteFileAtomic().
absl::StatusOr<ClockBase> ReadClockBase(const std::string& path, std::string_view boot_id,
                                        absl::Duration ahead);

// Returns when, by the agent's clock, the last use of an address ended that the journal does not
// know: pods of an earlier boot were gone when this one began, and the journal went with it. A
// journal that is empty although the boot has had an agent (`journal_is_empty`) was lost, and only
// those pods are over then that have no link `now`.
absl::Time UnrecordedUseEnd(const ClockBase& base, bool journal_is_empty, absl::Time now);

}  // namespace spoke::netagent
