// What keeps the journal's times comparable over restarts of the agent, whoever sets the time of
// day meanwhile: where the agent's clock began in this boot.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::netagent {

// Returns by how much the agent's clock (os::SteadyClock) is ahead of the uptime: `ahead`, by the
// time of day as it is now, for the first agent of the boot `boot_id`, and what that one was given
// for all others. `path` is the file that remembers it; one of another boot, or one that cannot be
// read, is replaced. Errors: as os::WriteFileAtomic().
absl::StatusOr<absl::Duration> AheadOfUptime(const std::string& path, std::string_view boot_id,
                                             absl::Duration ahead);

}  // namespace spoke::netagent
