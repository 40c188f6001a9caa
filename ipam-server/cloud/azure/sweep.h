// All NICs of one scale set, page by page. Pure.
//
// A listing is whole or it is an error: what is missing from a list would be read as gone. Pages
// that cannot be read, lists that are null, and NICs whose contents are unknown all make the
// listing unavailable.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/azure/resources/arm_error.h"
#include "ipam-server/cloud/azure/resources/arm_id.h"
#include "ipam-server/cloud/azure/resources/nic_resource.h"
#include "ipam-server/cloud/azure/settings.h"
#include "ipam-server/cloud/calls/call_limits.h"
#include "lib/http/message.h"

namespace spoke::ipam::azure {

// NICs by the id of the VM that has them.
using NicsByVm = std::map<std::string, std::vector<NicResource>>;

// Not thread-safe.
class Sweep {
 public:
  struct NextCall {
    CallKind kind = CallKind::kListInstanceNics;
    http::Request request;
  };

  // Borrows `settings`. `asked`: when it was begun.
  Sweep(const Settings& settings, ResourceId scale_set, bool flexible, absl::Time asked);

  // Returns the next call, until done().
  NextCall Next() const;
  void OnResponse(const http::Response& response, absl::Time now);
  // The page did not come: it is asked for again, some times.
  void Fail(const absl::Status& status);

  // Gives the sweep up, since it is of no use to ask again.
  void Abort(const absl::Status& status);

  bool done() const { return done_; }
  // Returns kUnavailable when it is not a whole listing.
  const absl::Status& status() const { return result_; }
  // What could be read, also of a listing that is not whole.
  const NicsByVm& nics() const { return nics_; }
  absl::Time asked() const { return asked_; }
  int pages() const { return pages_; }
  int retries() const { return retries_; }  // The next call's.

 private:
  enum class Step : uint8_t { kScaleSet, kVms, kNics };

  absl::Status OnPage(std::string_view body);
  void Finish();
  absl::Status OnVm(const nlohmann::json& item);
  absl::Status OnNic(const nlohmann::json& item);
  absl::Status OnMissing(const ArmError& error);
  absl::Status OnScaleSet(std::string_view body);
  void Start(Step step);

  const Settings& settings_;
  const ResourceId scale_set_;
  const bool flexible_;
  const absl::Time asked_;
  Step step_ = Step::kNics;
  std::string url_;
  std::set<std::string> vms_;  // Flexible: those of the set.
  std::set<std::string> followed_;
  NicsByVm nics_;
  int pages_ = 0;
  int retries_ = 0;
  bool done_ = false;
  absl::Status incomplete_;  // A NIC could not be read.
  absl::Status result_;
};

}  // namespace spoke::ipam::azure
