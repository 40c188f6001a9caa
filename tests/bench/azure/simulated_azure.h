// The server's Azure client against a simulated Azure, in one process, on a simulated clock: every
// call is built, judged, answered and understood as it would be over HTTP, only without the wire.
#pragma once

#include <cstdint>
#include <deque>
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
class SimulatedAzure final : public ipam::Cloud {
 public:
  // The client's, and the time of each HTTP call.
  struct Options {
    ipam::azure::Settings settings;
    absl::Duration round_trip;
    uint64_t seed = 1;
  };

  // Borrows `arm` and `clock`.
  SimulatedAzure(const Options& options, azure_sim::ArmModel& arm, os::SimClock& clock,
                 ipam::CloudAnswer answer);

  void Request(ipam::NicRequest desired) override;
  std::optional<ipam::CloudForecast> ForecastOf(const ipam::NodeKey& node) const override;
  void List(ipam::CloudListed listed) override;
  absl::Duration listing_period() const override { return listing_period_; }
  bool ChoosesAddresses() const override { return true; }
  std::string Describe() const override { return "simulated"; }
  void Stop() override {}

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
  const absl::Duration listing_period_;
  azure_sim::ArmModel& arm_;
  os::SimClock& clock_;
  const absl::Time began_;
  // Asking for a forecast brings its table up to date, so it is mutable.
  mutable ipam::azure::AzureState machine_;
  std::priority_queue<Flight, std::vector<Flight>, std::greater<>> flights_;
  uint64_t order_ = 0;
  absl::Time last_write_ = absl::InfinitePast();
  std::vector<uint64_t> writes_by_minute_;
  const ipam::CloudAnswer answer_;
  std::deque<ipam::CloudListed> listings_;  // Who waits, in order.
};

}  // namespace spoke::azure_bench
