// Keeps the published rules (iptables/published_rules.h) in the back end that the host uses: looks
// every ten seconds and adds what is missing. Nothing is ever removed, replaced or set to zero.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/ip/prefix.h"
#include "lib/telemetry/log.h"
#include "netagent/iptables/iptables.h"
#include "netagent/iptables/published_rules.h"

namespace spoke::netagent {

inline constexpr absl::Duration kPublishedRulesRound = absl::Seconds(10);
// The time from one look at all tables of both back ends to the next; in between only the rules
// themselves are looked for.
inline constexpr absl::Duration kBackendScan = absl::Minutes(1);

struct PublishedRulesState {
  bool both_backends = false;  // Whether others have rules in both.
  uint64_t missing = 0;        // The number of rules that should be there and are not.
  uint64_t repaired = 0;  // The number of rules that were there once and had to be added again.

  bool operator==(const PublishedRulesState&) const = default;
};

// Tick() belongs to one thread; state() is thread-safe.
class PublishedRulesKeeper {
 public:
  struct Edges {
    Iptables& nft;
    Iptables& legacy;
    telemetry::Log& log;
  };
  struct Settings {
    std::optional<ip::Prefix> cluster;  // The cluster; nullopt: no rule is laid down.
    bool legacy_command = false;        // The value for BackendUse.
    bool legacy_is_default = false;
  };
  // Borrows the edges.
  PublishedRulesKeeper(const Settings& settings, const Edges& edges);

  void Tick(absl::Time now);
  PublishedRulesState state() const;

 private:
  void Scan();
  absl::Status Keep();
  Iptables& Of(IptablesBackend backend);

  const Settings settings_;
  const std::vector<PublishedRule> wanted_;
  const Edges edges_;
  absl::Time next_round_ = absl::InfinitePast();
  absl::Time next_scan_ = absl::InfinitePast();
  BackendUse use_;
  std::optional<IptablesBackend> laid_in_;  // The back end where the rules have all been seen.
  absl::Status last_;  // The result of the last round, so that a failure is logged once.
  mutable absl::Mutex mutex_;
  PublishedRulesState state_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::netagent
