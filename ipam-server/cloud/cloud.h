// The fabric as the server sees it: which addresses are on which NIC. Implementations: StaticCloud,
// azure::AzureCloud, and FakeCloud in tests; cloud_contract.h holds the promises below as tests.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/calls/cloud_lane.h"
#include "ipam-server/cloud/nic_request.h"
#include "ipam-server/ledger/node_record.h"

namespace spoke::ipam {

// Takes what came of Cloud::Request(): everything of ours that the NIC holds now, since a cloud may
// grant only some, and choose other names. Called on any thread, Request()'s own included; it must
// not block. Errors: kUnavailable (ask again, later); kResourceExhausted (back off, tell an
// operator); kPermissionDenied and kFailedPrecondition (do not ask again before an operator has
// acted).
using CloudAnswer = std::function<void(const NodeKey&, absl::StatusOr<NicAddresses>)>;

// The NICs of all nodes that exist, with or without addresses of ours: a node that is not in it is
// gone. A cloud that knows instances only leaves `node` empty. Errors: kUnavailable (also for a
// listing that is not complete, and once the cloud has stopped).
using CloudListing = absl::StatusOr<std::vector<NicAddresses>>;
using CloudListed = std::function<void(CloudListing)>;

// Answers requests through the CloudAnswer that its constructor was given. Thread-safe, and no call
// waits for the cloud, but for Stop().
class Cloud {
 public:
  virtual ~Cloud() = default;

  // Says what the store has on NICs, which may be believed from now on: called before the first
  // request, with all of it. Errors: what keeps a cloud from beginning; to be called again.
  virtual absl::Status Begin(const std::vector<NicAddresses>& /*nics*/) { return absl::OkStatus(); }

  // Asks for the NIC to hold what is desired. Idempotent. Each request is answered once, but for
  // one that a newer request for the same node replaced while it waited, and those that Stop()
  // drops. Entries of ours that the request does not name at all are taken off by a cloud that does
  // not choose addresses, and stay with one that does: its answer is how the server learns of them.
  virtual void Request(NicRequest desired) = 0;

  // Forecasts the node's request that waits or is under way; nullopt: none, or nothing can be said.
  virtual std::optional<CloudForecast> ForecastOf(const NodeKey& /*node*/) const {
    return std::nullopt;
  }

  // Returns its load now. It may wait for what the cloud's own thread is at: for scrapes, not for
  // the loop. A cloud without limits has none.
  virtual CloudLoad Load() const { return {}; }

  // Asks for all NICs. `listed` is called once, on any thread, this one included; it must not
  // block.
  virtual void List(CloudListed listed) = 0;

  // How often it is to be asked which VMs there are.
  virtual absl::Duration listing_period() const = 0;

  // Whether List() would have had the VM of this name, if there were one. It means nothing that
  // others are not listed.
  virtual bool Covers(const std::string& /*instance*/) const { return true; }

  // Whether it chooses the addresses: then requests want entries by name, and never say which
  // address a new one shall have.
  virtual bool ChoosesAddresses() const { return false; }

  // Returns the name for people: "static".
  virtual std::string Describe() const = 0;

  // Finishes or drops what is under way: the server has it in its store and asks again. Nothing is
  // answered from its return on, except that whoever waits for a listing is told so before, and who
  // asks for one later at once. A second call does nothing.
  virtual void Stop() = 0;
};

}  // namespace spoke::ipam
