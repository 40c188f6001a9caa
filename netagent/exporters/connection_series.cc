#include "netagent/exporters/connection_series.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
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

// Adds up by name, which may have two pods for a moment, and has one series. Pods that have few
// connections are added to `other` at once: there may be hundreds.
std::vector<Held> ByName(const std::vector<PodConnections>& pods, Held& other) {
  std::map<std::pair<std::string_view, std::string_view>, Held> by_pod;
  for (const PodConnections& pod : pods) {
    Held& held = by_pod[{pod.pod_namespace, pod.pod_name}];
    held.connections += pod.connections;
    held.ports += pod.translated_ports;
  }
  std::map<std::vector<std::string>, Held> by_labels;
  for (const auto& [name, more] : by_pod) {
    Held* held = &other;
    if (more.connections >= kConnectionsShown) {
      std::vector<std::string> labels = {LabelText(name.first), LabelText(name.second)};
      // Whatever is called "_other" is a part of it.
      if (labels != other.labels) {
        held = &by_labels[labels];
        held->labels = std::move(labels);
      }
    }
    held->connections += more.connections;
    held->ports += more.ports;
  }
  std::vector<Held> all;
  for (auto& [labels, held] : by_labels) all.push_back(std::move(held));
  return all;
}

}  // namespace

std::vector<telemetry::Samples> ConnectionSeries(const std::vector<PodConnections>& pods,
                                                 size_t most) {
  const std::string other_name(kOtherSeries);
  Held other{.labels = {other_name, other_name}};
  std::vector<Held> all = ByName(pods, other);
  std::stable_sort(all.begin(), all.end(),
                   [](const Held& a, const Held& b) { return a.connections > b.connections; });
  telemetry::Samples connections{.metric = "spoke_pod_connections"};
  telemetry::Samples ports{.metric = "spoke_pod_translated_ports"};
  const auto append = [&](const Held& held) {
    connections.series.push_back({held.labels, static_cast<double>(held.connections)});
    ports.series.push_back({held.labels, static_cast<double>(held.ports)});
  };
  for (const Held& held : all) {
    if (connections.series.size() < most) {
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
