#include "ipam-server/traffic/traffic_query.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "fmt/core.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/node_api/traffic_classes.h"

namespace spoke::ipam {
namespace {

constexpr std::string_view kLoopback = "loopback";

bool IsWanted(std::string_view traffic_class, std::string_view asked) {
  if (asked.empty()) return traffic_class != kLoopback;
  if (asked == node_api::kExternalTraffic) return node_api::IsExternalTraffic(traffic_class);
  return traffic_class == asked;
}

// Refuses a class that no node can have, which must not look like one without traffic.
absl::Status CheckClass(std::string_view asked) {
  const auto& known = node_api::kTrafficClasses;
  if (asked.empty() || node_api::IsExternalTraffic(asked) || asked == node_api::kExternalTraffic ||
      asked == TrafficSums::kOther || std::find(known.begin(), known.end(), asked) != known.end()) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(fmt::format(
      "there is no traffic class \"{}\"; there are {}, {}, and {}NAME "
      "of each destination group",
      asked, fmt::join(known, ", "), node_api::kExternalTraffic, node_api::kGroupTraffic));
}

void AddEntries(const std::string& name, const std::string& node,
                const node_api::VolumeByClass& volumes, const v1::GetTrafficRequest& request,
                v1::GetTrafficResponse& response) {
  for (const auto& [traffic_class, volume] : volumes) {
    if (!IsWanted(traffic_class, request.traffic_class())) continue;
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
  RETURN_IF_ERROR(CheckClass(request.traffic_class()));
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
