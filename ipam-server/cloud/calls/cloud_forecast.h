// When each of many requests will have been carried out, from how many go before it. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/cloud/calls/cloud_lane.h"
#include "ipam-server/cloud/calls/cloud_plan.h"

namespace spoke::ipam {

// A request that waits or is under way.
struct ForecastInput {
  CloudLane lane = CloudLane::kWarmUp;
  absl::Time since;
  // The group at whose pace it goes: an index into `paces`, one for each lane of a group.
  size_t group = 0;
  bool sent = false;                             // Its write is under way, or it needs none.
  absl::Time not_before = absl::InfinitePast();  // The time until which it is parked.
  std::string parked_for;                        // The reason why it is parked.
};

// A group's pace in each lane, and how long a write of it takes.
struct GroupPace {
  std::array<CallPace, 3> lanes;
  absl::Duration latency;
};

struct ForecastOutput {
  absl::Time eta;
  std::string waits_for;
};

// Forecasts in the order of `requests`. Within a group the lanes go one after the other, each by
// age. Takes n log n.
std::vector<ForecastOutput> ForecastRequests(const std::vector<ForecastInput>& requests,
                                             const std::vector<GroupPace>& groups, absl::Time now);

}  // namespace spoke::ipam
