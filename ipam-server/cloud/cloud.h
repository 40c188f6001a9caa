// The fabric as the server sees it: which addresses are on which NIC. Implementations: StaticCloud,
// azure::AzureCloud, and FakeCloud in tests; cloud_contract.h holds the promises below as tests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/calls/cloud_lane.h"
#include "ipam-server/cloud/nic_request.h"
#include "ipam-server/ledger/node_record.h"

namespace spoke::ipam {

// Thread-safe. Calls may take seconds: never from the thread that answers agents.
class Cloud {
 public:
  virtual ~Cloud() = default;

  // Makes the NIC hold what is desired, and returns everything of ours that it holds afterwards: a
  // cloud may grant only some, and choose other names. Idempotent. Entries of ours that the request
  // does not name at all are taken off by a cloud that does not choose addresses, and stay with one
  // that does: its answer is how the server learns of them.
  // Errors: kUnavailable (same call, later); kResourceExhausted (back off, tell an operator);
  // kPermissionDenied and kFailedPrecondition (do not retry before an operator has acted).
  virtual absl::StatusOr<NicAddresses> Apply(const NicRequest& desired) = 0;

  // The NICs of all nodes that exist, by node, with or without addresses of ours: a node that is
  // not in it is gone. A cloud that knows instances only leaves `node` empty.
  // Errors: kUnavailable (also for a listing that is not complete).
  virtual absl::StatusOr<std::vector<NicAddresses>> List() = 0;

  // Whether List() would have had the VM of this name, if there were one. It means nothing that
  // others are not listed.
  virtual bool Covers(const std::string& /*instance*/) const { return true; }

  // Whether it chooses the addresses: then requests want entries by name, and never say which
  // address a new one shall have.
  virtual bool ChoosesAddresses() const { return false; }

  // Returns the name for people: "static".
  virtual std::string Describe() const = 0;
};

// A cloud that is asked without waiting. Thread-safe; never blocks. Each request is answered
// through whatever its maker was given for answers, but one that a newer request for the same node
// replaced while it waited.
class CloudRequests {
 public:
  virtual ~CloudRequests() = default;
  // What the store says is on NICs may be believed from now on: called before the first request,
  // with all of it. Errors: what keeps a cloud from beginning; to be called again.
  virtual absl::Status Begin(const std::vector<NicAddresses>& /*nics*/) { return absl::OkStatus(); }
  virtual void Request(NicRequest desired) = 0;
  // Forecasts the node's request that waits or is under way; nullopt: none, or nothing can be said.
  virtual std::optional<CloudForecast> ForecastOf(const NodeKey& /*node*/) const {
    return std::nullopt;
  }
};

}  // namespace spoke::ipam
