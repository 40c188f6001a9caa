// Follows the files of ip-masq-agent: one file, or a directory whose files that begin with
// "ip-masq" count together.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/telemetry/log.h"
#include "netagent/egress/ip_masq.h"

namespace spoke::netagent {

// Not thread-safe; the agent's one loop owns it.
class IpMasqFilesWatch {
 public:
  // Puts what the files say in force; an error is tried again at the next look.
  using Apply = std::function<absl::Status(const IpMasqConfig&)>;

  // `ipv6` is what IpMasqConfig has. Borrows `log`.
  IpMasqFilesWatch(std::string path, bool ipv6, Apply apply, telemetry::Log& log);

  // Returns what is in force at the start: what the files say, or the defaults where they cannot be
  // read.
  IpMasqConfig Start(absl::Time now);

  // Looks whether the files are others than they were, every `resyncInterval` of theirs. A mistake
  // in any of them is logged once, and the last good ones stay in force.
  void Tick(absl::Time now);
  absl::Time NextWake() const { return next_; }

  // Returns the mistake that keeps the files from being in force, or OK.
  const absl::Status& problem() const { return problem_; }

 private:
  // Returns the files' texts by name. Errors: what keeps a file from being read.
  absl::StatusOr<std::map<std::string, std::string>> ReadFiles() const;
  // Returns whether there is something new to put in force.
  bool Look(absl::Time now);
  void Fail(absl::Time now, absl::Status problem);

  const std::string path_;
  const bool ipv6_;
  const Apply apply_;
  telemetry::Log& log_;
  std::map<std::string, std::string> read_;
  bool looked_ = false;
  IpMasqConfig good_;
  bool pending_ = false;  // Whether `good_` is still to be put in force.
  absl::Status problem_;
  absl::Duration resync_ = absl::Seconds(60);
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace spoke::netagent
