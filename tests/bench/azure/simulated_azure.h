// The server's Azure client against a simulated Azure, in one process, on a simulated clock: every
// call is built, judged, answered and understood as it would be over HTTP, only without the wire.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/azure/azure_state.h"
#include "ipam-server/cloud/cloud.h"
#include "lib/os/clock.h"
#include "tests/azure-sim/arm_model.h"

namespace spoke::azure_bench {

// The client. Not thread-safe.
class SimulatedAzure final : public ipam::CloudRequests {
 public:
  using Answer = std::function<void(const ipam::NodeKey&, absl::StatusOr<ipam::NicAddresses>)>;
  using Listing = std::function<void(absl::StatusOr<std::vector<ipam::NicAddresses>>)>;

  // Borrows all except the settings. `round_trip` is the time of each HTTP call.
  SimulatedAzure(const ipam::azure::Settings& settings, azure_sim::ArmModel& arm,
                 os::SimClock& clock, absl::Duration round_trip, uint64_t seed);

  void SetAnswer(Answer answer) { answer_ = std::move(answer); }
  void SetListing(Listing listing) { listing_ = std::move(listing); }

  void Request(ipam::NicRequest desired) override;
  std::optional<ipam::CloudForecast> ForecastOf(const ipam::NodeKey& node) const override;
  void List() { machine_.List(clock_.Now()); }

  // Does what is due now.
  void Work();
  // Returns when something is due next; the infinite future: nothing.
  absl::Time NextEvent() const;

  const ipam::azure::MachineCounts& counts() const { return machine_.counts(); }
  // Returns when the last write was sent.
  absl::Time last_write() const { return last_write_; }
  // Returns how many were sent in each minute since the beginning.
  const std::vector<uint64_t>& writes_by_minute() const { return writes_by_minute_; }

 private:
  struct Flight {
    absl::Time at;   // The time of its arrival there, or here again.
    uint64_t order;  // The order: what was first, stays first.
    bool answered;
    ipam::azure::MachineCall call;
    http::Response response;

    bool operator>(const Flight& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };

  void Land(Flight flight);

  const absl::Duration one_way_;
  azure_sim::ArmModel& arm_;
  os::SimClock& clock_;
  const absl::Time began_;
  // Asking for a forecast brings its table up to date, so it is mutable.
  mutable ipam::azure::AzureState machine_;
  std::priority_queue<Flight, std::vector<Flight>, std::greater<>> flights_;
  uint64_t order_ = 0;
  absl::Time last_write_ = absl::InfinitePast();
  std::vector<uint64_t> writes_by_minute_;
  Answer answer_;
  Listing listing_;
};

}  // namespace spoke::azure_bench
