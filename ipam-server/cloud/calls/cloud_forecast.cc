#include "ipam-server/cloud/calls/cloud_forecast.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace spoke::ipam {
namespace {

ForecastOutput ForecastOne(const ForecastInput& request, const GroupPace& group, size_t before,
                           absl::Time now) {
  if (request.sent) return {.eta = now + group.latency, .waits_for = "Azure's answer"};
  const CallPace& pace = group.lanes.at(static_cast<size_t>(request.lane));
  absl::Time start = pace.open_from;
  const double missing = static_cast<double>(before) + 1 - pace.ready;
  if (missing > 0 && pace.per_second > 0) start += absl::Seconds(missing / pace.per_second);
  ForecastOutput output{.eta = start + group.latency, .waits_for = ""};
  if (start > now) output.waits_for = pace.limit;
  if (request.not_before > start) {
    output = {.eta = request.not_before + group.latency, .waits_for = request.parked_for};
  }
  return output;
}

}  // namespace

std::vector<ForecastOutput> ForecastRequests(const std::vector<ForecastInput>& requests,
                                             const std::vector<GroupPace>& groups, absl::Time now) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const ForecastInput& x = requests[a];
    const ForecastInput& y = requests[b];
    return std::tie(x.lane, x.since, a) < std::tie(y.lane, y.since, b);
  });
  std::vector<size_t> before(groups.size(), 0);
  std::vector<ForecastOutput> outputs(requests.size());
  for (const size_t i : order) {
    const ForecastInput& request = requests[i];
    size_t& ahead = before.at(request.group);
    outputs[i] = ForecastOne(request, groups.at(request.group), ahead, now);
    // Parked requests do not stand in the way of the others.
    if (!request.sent && request.not_before <= now) ++ahead;
  }
  return outputs;
}

}  // namespace spoke::ipam
