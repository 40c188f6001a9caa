#include "netagent/exporters/connection_series.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "netagent/exporters/label_text.h"
#include "netagent/exporters/traffic_series.h"

namespace spoke::netagent {
namespace {

struct Held {
  std::vector<std::string> labels;
  uint64_t connections = 0;
  uint64_t ports = 0;
};

// Adds up by name, which may have two pods for a moment, and has one series.
std::vector<Held> ByName(const std::vector<PodConnections>& pods) {
  std::map<std::vector<std::string>, Held> by_name;
  for (const PodConnections& pod : pods) {
    std::vector<std::string> labels = {LabelText(pod.pod_namespace), LabelText(pod.pod_name)};
    Held& held = by_name[labels];
    held.labels = std::move(labels);
    held.connections += pod.connections;
    held.ports += pod.translated_ports;
  }
  std::vector<Held> all;
  for (auto& [labels, held] : by_name) all.push_back(std::move(held));
  return all;
}

}  // namespace

std::vector<telemetry::Samples> ConnectionSeries(const std::vector<PodConnections>& pods,
                                                 size_t most) {
  std::vector<Held> all = ByName(pods);
  std::stable_sort(all.begin(), all.end(),
                   [](const Held& a, const Held& b) { return a.connections > b.connections; });
  telemetry::Samples connections{.metric = "spoke_pod_connections"};
  telemetry::Samples ports{.metric = "spoke_pod_translated_ports"};
  const std::string other_name(kOtherSeries);
  Held other{.labels = {other_name, other_name}};
  const auto append = [&](const Held& held) {
    connections.series.push_back({held.labels, static_cast<double>(held.connections)});
    ports.series.push_back({held.labels, static_cast<double>(held.ports)});
  };
  for (const Held& held : all) {
    // Whatever is called "_other" is a part of it.
    const bool shown = connections.series.size() < most && held.connections >= kConnectionsShown &&
                       held.labels != other.labels;
    if (shown) {
      append(held);
    } else {
      other.connections += held.connections;
      other.ports += held.ports;
    }
  }
  append(other);
  return {std::move(connections), std::move(ports)};
}

}  // namespace spoke::netagent
