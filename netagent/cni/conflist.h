// The network configuration that tells a runtime to use us: put in its place by the agent once it
// can serve, so that a node does not take pods before.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/telemetry/log.h"

namespace spoke::netagent {

struct ConflistSettings {
  std::string directory;  // The runtime's, such as /etc/cni/net.d.
  std::string file;       // Its name there, such as 10-spoke.conflist.
  std::string source;     // The file with the content.

  bool operator==(const ConflistSettings&) const = default;
};

// Makes `directory`/`file` a copy of `source`, unless it is one; true: it was written. Atomic: it
// appears, or changes, by a rename within the directory, which is what runtimes watch for (a file
// that is moved in from elsewhere they do not notice), from a name that none of them loads.
// Errors: what the files say; kInvalidArgument (the source is no JSON object).
absl::StatusOr<bool> InstallConflist(const ConflistSettings& settings);

// Installs once, and tries again until it has. The file is never removed: runtimes need it for DEL.
// Not thread-safe.
class ConflistKeeper {
 public:
  static constexpr absl::Duration kPause = absl::Seconds(10);

  // Without settings it does nothing. Borrows `log`.
  ConflistKeeper(std::optional<ConflistSettings> settings, telemetry::Log& log)
      : settings_(std::move(settings)), log_(log) {}

  // `ready`: pods can be served.
  void Tick(bool ready, absl::Time now);
  // Whether Tick() still has something to do.
  bool pending() const { return settings_.has_value() && !done_; }

 private:
  const std::optional<ConflistSettings> settings_;
  telemetry::Log& log_;
  bool done_ = false;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace spoke::netagent
