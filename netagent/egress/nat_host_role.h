// The role nat-host: keeps the rules of egress/nat_host.h up to date, and says whether hub traffic
// should be sent here.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/nft/tables.h"
#include "lib/telemetry/log.h"
#include "netagent/classes/traffic_class.h"
#include "netagent/egress/nat_host.h"

namespace spoke::netagent {

struct NatHostSettings {
  // The file that endpoint_text.h describes; empty: kube-proxy chooses, and its own health port
  // (10256) is what a load balancer asks besides.
  std::string endpoints;
  // The age beyond which a file counts as stale.
  absl::Duration max_age = absl::Seconds(60);

  bool operator==(const NatHostSettings&) const = default;
};

// Not thread-safe; the agent's one loop owns it.
class NatHostRole {
 public:
  // Borrows `tables` and `log`.
  NatHostRole(NatHostSettings settings, nft::Tables& tables, telemetry::Log& log);

  // Takes over where hub and Services are now.
  void SetClasses(ClassMap classes);
  // Takes the file up when it has changed, and puts into the kernel what has to be there.
  void Tick(absl::Time now);
  absl::Time NextWake() const { return next_; }

  // Returns OK when flows that come now find their endpoints; else kUnavailable, saying why not.
  absl::Status Health(absl::Time now) const;

  static constexpr absl::Duration kLook = absl::Seconds(1);

 private:
  void Read();
  absl::Status Apply();

  const NatHostSettings settings_;
  nft::Tables& tables_;
  telemetry::Log& log_;
  std::optional<ClassMap> classes_;
  std::string text_;  // The text of the file, as it was last.
  std::optional<EndpointTable> table_;
  absl::Status problem_;  // The mistake in the file; OK if there is none.
  absl::Status applied_ = absl::UnavailableError("nothing is in force yet");
  bool pending_ = true;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace spoke::netagent
