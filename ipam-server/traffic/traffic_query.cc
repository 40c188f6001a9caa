#include "ipam-server/traffic/traffic_query.h"

#include <string>
#include <string_view>
#include <vector>

#include "fmt/core.h"

namespace spoke::ipam {
namespace {

constexpr std::string_view kLoopback = "loopback";

void AddEntries(const std::string& name, const std::string& node,
                const node_api::VolumeByClass& volumes, const v1::GetTrafficRequest& request,
                v1::GetTrafficResponse& response) {
  for (const auto& [traffic_class, volume] : volumes) {
    const bool wanted = request.traffic_class().empty() ? traffic_class != kLoopback
                                                        : traffic_class == request.traffic_class();
    if (!wanted) continue;
    v1::TrafficEntry& entry = *response.add_entries();
    entry.set_name(name);
    entry.set_node(node);
    entry.set_traffic_class(traffic_class);
    entry.set_sent(volume.sent);
    entry.set_received(volume.received);
  }
}

}  // namespace

absl::StatusOr<v1::GetTrafficResponse> QueryTraffic(const TrafficSums& sums, absl::Time now,
                                                    const v1::GetTrafficRequest& request) {
  v1::GetTrafficResponse response;
  response.set_now_unix_ms(absl::ToUnixMillis(now));
  response.set_nodes_reporting(sums.Reporting(now));
  const auto add = [&](const std::vector<TrafficSums::NamedSums>& rows) {
    for (const auto& row : rows) AddEntries(row.name, "", row.volumes, request, response);
  };
  switch (request.by()) {
    case v1::GetTrafficRequest::NAMESPACE:
      add(sums.Namespaces());
      return response;
    case v1::GetTrafficRequest::TEAM:
      add(sums.Teams());
      return response;
    case v1::GetTrafficRequest::NODE:
      add(sums.Nodes());
      return response;
    case v1::GetTrafficRequest::POD:
      for (const auto& [node, pod] : sums.Pods(now)) {
        if (!request.pod_namespace().empty() && request.pod_namespace() != pod.pod_namespace) {
          continue;
        }
        AddEntries(fmt::format("{}/{}", pod.pod_namespace, pod.pod_name), node, pod.volumes,
                   request, response);
      }
      return response;
    default:
      return absl::InvalidArgumentError("say by what: namespace, team, pod or node");
  }
}

}  // namespace spoke::ipam
