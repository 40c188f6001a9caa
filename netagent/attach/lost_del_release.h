// Releases what a lost DEL has left: observes which attachments have lost their link (the
// Repairer's rounds), looks whether their pods' network namespaces are gone, lets attach/lost_dels
// judge, and releases them as a DEL would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/attach/attachments.h"
#include "netagent/attach/lost_dels.h"
#include "netagent/attach/repairer.h"

namespace spoke::netagent {

struct LostDelCounts {
  uint64_t released = 0;  // Attachments, since the agent's start.
};

// Not thread-safe; the agent's one loop owns it.
class LostDelRelease {
 public:
  // The most releases in one round of the repairer's; the others come in the next rounds.
  static constexpr size_t kMaxReleases = 16;

  struct Settings {
    absl::Duration after = absl::Minutes(5);  // The time that LostDels waits; 0: none is released.
    std::function<absl::StatusOr<netns::Trace>(const std::string& path)> look_at_netns;
  };
  struct Edges {
    const os::Clock& clock;
    telemetry::Log& log;
  };
  // Borrows the edges, `repairer` and `attachments`.
  LostDelRelease(Settings settings, const Edges& edges, const Repairer& repairer,
                 Attachments& attachments);

  // Looks once at what each round of the repairer's has found. Call it after the repairer's Tick():
  // it has no time of its own to wake at.
  void Tick();

  const LostDelCounts& counts() const { return counts_; }

 private:
  void Release(const Assignment& assignment);

  const Settings settings_;
  const Edges edges_;
  const Repairer& repairer_;
  Attachments& attachments_;
  LostDels lost_dels_;
  uint64_t rounds_seen_ = 0;
  absl::Status last_failure_;  // The last release's, for saying it once.
  LostDelCounts counts_;
};

}  // namespace spoke::netagent
