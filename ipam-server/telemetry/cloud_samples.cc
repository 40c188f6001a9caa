#include "ipam-server/telemetry/cloud_samples.h"

#include <cstddef>
#include <string>
#include <utility>

namespace spoke::ipam {
namespace {

// More than a cloud has.
constexpr size_t kMaxLimits = 20;

}  // namespace

std::vector<telemetry::MetricSpec> CloudLoadMetricSpecs() {
  return telemetry::FromSource(
      {telemetry::GaugeSpec("spoke_ipam_cloud_limit_left_ratio",
                            "The share that is surely left of each limit of the cloud, where least "
                            "is left of it",
                            {telemetry::UpTo("limit", kMaxLimits)}),
       telemetry::GaugeSpec("spoke_ipam_cloud_waiting_nodes",
                            "Nodes whose request to the cloud waits or is under way",
                            {telemetry::OneOf("lane", {"blocking", "warm-up", "release"})})});
}

std::vector<telemetry::Samples> CloudLoadSamples(const CloudLoad& load) {
  telemetry::Samples left{.metric = "spoke_ipam_cloud_limit_left_ratio", .series = {}};
  for (const auto& [limit, share] : load.limits_left) left.series.push_back({{limit}, share});
  telemetry::Samples waiting{.metric = "spoke_ipam_cloud_waiting_nodes", .series = {}};
  for (size_t i = 0; i < kCloudLanes.size(); ++i) {
    waiting.series.push_back(
        {{std::string(NameOf(kCloudLanes.at(i)))}, static_cast<double>(load.waiting.at(i))});
  }
  return {std::move(left), std::move(waiting)};
}

}  // namespace spoke::ipam
