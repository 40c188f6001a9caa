// The interface to one back end of a host's iptables: where its rules are kept, and read and added
// by us.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "netagent/iptables/iptables_rules.h"
#include "netagent/iptables/published_rules.h"

namespace spoke::netagent {

// Works in the network namespace of the calling thread. Read() may be called from any thread, the
// others from one.
class Iptables {
 public:
  virtual ~Iptables() = default;

  // Reads those of the tables `names` that exist, with rules and counters; creates none. Errors:
  // kUnavailable (others kept changing them: try again); kUnimplemented (there are some, and
  // nothing on this host can read them); kDeadlineExceeded; kResourceExhausted; kInternal.
  virtual absl::StatusOr<std::vector<IptablesTable>> Read(
      ip::Family family, const std::vector<std::string>& names) = 0;

  // Puts the rules behind what is in their chains, in order, and makes their table and chains where
  // they are missing. What is there keeps its counters. Errors: those of Read(); the first rules
  // may have been added then.
  virtual absl::Status Append(const std::vector<PublishedRule>& rules) = 0;

  // Takes each of the rules out of its chain, once where it stands there more than once; those that
  // are not there are passed over. Returns how many were taken out. What others have keeps its
  // counters. A chain or table that is empty then, and is such as Append() makes, goes too, where
  // such can go. Errors: those of Read(); the first rules may have been taken out then.
  virtual absl::StatusOr<size_t> Erase(const std::vector<PublishedRule>& rules) = 0;
};

}  // namespace spoke::netagent
