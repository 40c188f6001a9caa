// Who sends and receives how much, for operators. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/traffic/traffic_sums.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ipam {

// Errors: kInvalidArgument (not said by what).
absl::StatusOr<v1::GetTrafficResponse> QueryTraffic(const TrafficSums& sums, absl::Time now,
                                                    const v1::GetTrafficRequest& request);

}  // namespace spoke::ipam
