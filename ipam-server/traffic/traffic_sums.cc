#include "ipam-server/traffic/traffic_sums.h"

#include <algorithm>

#include "absl/strings/string_view.h"

namespace spoke::ipam {
namespace {

void AddTo(std::vector<node_api::Volume>& by_class, uint32_t traffic_class,
           const node_api::Volume& volume) {
  if (by_class.size() <= traffic_class) by_class.resize(traffic_class + 1);
  by_class[traffic_class].sent += volume.sent;
  by_class[traffic_class].received += volume.received;
}

node_api::VolumeByClass Named(const std::vector<node_api::Volume>& by_class,
                              const std::vector<std::string>& classes) {
  node_api::VolumeByClass out;
  for (size_t i = 0; i < by_class.size(); ++i) {
    if (by_class[i] != node_api::Volume()) out.emplace(classes[i], by_class[i]);
  }
  return out;
}

uint64_t Rise(uint64_t before, uint64_t now) { return now > before ? now - before : 0; }

}  // namespace

uint32_t TrafficSums::Table::IdOf(std::string_view name) {
  auto found = ids_.find(absl::string_view(name.data(), name.size()));
  // The last place is for all that find none.
  if (found == ids_.end() && rows_.size() + 1 >= most_) {
    name = kOther;
    found = ids_.find(absl::string_view(name.data(), name.size()));
  }
  if (found != ids_.end()) return found->second;
  const auto id = static_cast<uint32_t>(rows_.size());
  rows_.push_back({.name = std::string(name), .by_class = {}});
  ids_.emplace(std::string(name), id);
  return id;
}

void TrafficSums::Table::Add(uint32_t id, uint32_t traffic_class, const node_api::Volume& volume) {
  AddTo(rows_[id].by_class, traffic_class, volume);
}

std::vector<TrafficSums::NamedSums> TrafficSums::Table::All(
    const std::vector<std::string>& classes) const {
  std::vector<NamedSums> out;
  for (const NumberedRow& row : rows_) out.push_back({row.name, Named(row.by_class, classes)});
  std::sort(out.begin(), out.end(),
            [](const NamedSums& a, const NamedSums& b) { return a.name < b.name; });
  return out;
}

uint32_t TrafficSums::ClassOf(std::string_view name) {
  // A handful: looking at each is quicker than a map.
  auto found = std::find(classes_.begin(), classes_.end(), name);
  if (found == classes_.end() && classes_.size() + 1 >= kMaxClasses) {
    name = kOther;
    found = std::find(classes_.begin(), classes_.end(), name);
  }
  if (found != classes_.end()) return static_cast<uint32_t>(found - classes_.begin());
  classes_.emplace_back(name);
  return static_cast<uint32_t>(classes_.size() - 1);
}

void TrafficSums::ForgetOne() {
  const auto oldest =
      std::min_element(nodes_.begin(), nodes_.end(),
                       [](const auto& a, const auto& b) { return a.second.last < b.second.last; });
  // Should it come back, its count is older than that, and what it has counted is not taken twice.
  began_ = std::max(began_, oldest->second.last);
  nodes_.erase(oldest);
}

// `baseline`: what it says was counted before, or is not known to be new.
TrafficSums::Node& TrafficSums::NodeFor(const NodeKey& key, const node_api::TrafficReport& report,
                                        absl::Time now, bool& baseline) {
  const bool known = nodes_.contains(key.name);
  if (!known && nodes_.size() >= kMaxNodes) ForgetOne();
  Node& node = nodes_[key.name];
  const bool same = known && node.vm_id == key.vm_id && node.epoch == report.epoch;
  baseline = !known && report.epoch < began_;
  if (!same) node.said.clear();
  node.vm_id = key.vm_id;
  node.epoch = report.epoch;
  node.last = now;
  return node;
}

void TrafficSums::Take(const NodeKey& key, const node_api::TrafficReport& report, absl::Time now,
                       const std::function<void(const TrafficDelta&)>& on_delta) {
  bool baseline = false;
  Node& node = NodeFor(key, report, now, baseline);
  // The volumes are first added up, since several may share one place.
  std::map<std::pair<uint32_t, uint32_t>, std::pair<std::string_view, node_api::Volume>> totals;
  for (const auto& [name, volumes] : report.namespaces) {
    const uint32_t id = namespaces_.IdOf(name);
    for (const auto& [traffic_class, volume] : volumes) {
      auto& [first, total] = totals[{id, ClassOf(traffic_class)}];
      if (first.empty()) first = name;
      total.sent += volume.sent;
      total.received += volume.received;
    }
  }
  for (const auto& [place, named] : totals) {
    const auto& [id, traffic_class] = place;
    const auto& [name, total] = named;
    const uint64_t number = (uint64_t{id} << 32U) | traffic_class;
    auto said = node.said.find(number);
    if (said == node.said.end()) {
      if (node.said.size() >= kMaxNodeEntries) continue;
      said = node.said.emplace(number, baseline ? total : node_api::Volume()).first;
    }
    const node_api::Volume rise{.sent = Rise(said->second.sent, total.sent),
                                .received = Rise(said->second.received, total.received)};
    said->second = total;
    if (rise == node_api::Volume()) continue;
    const auto team = team_by_namespace_.find(std::string(name));
    const uint32_t team_id =
        teams_.IdOf(team == team_by_namespace_.end() ? kNoTeam : std::string_view(team->second));
    namespaces_.Add(id, traffic_class, rise);
    teams_.Add(team_id, traffic_class, rise);
    AddTo(node.sums, traffic_class, rise);
    on_delta({namespaces_.NameOf(id), teams_.NameOf(team_id), classes_[traffic_class], rise});
  }
  node.pods = report.pods;
}

std::vector<TrafficSums::NamedSums> TrafficSums::Namespaces() const {
  return namespaces_.All(classes_);
}

std::vector<TrafficSums::NamedSums> TrafficSums::Teams() const { return teams_.All(classes_); }

std::vector<TrafficSums::NamedSums> TrafficSums::Nodes() const {
  std::vector<NamedSums> out;
  for (const auto& [name, node] : nodes_) out.push_back({name, Named(node.sums, classes_)});
  return out;
}

std::vector<std::pair<std::string, node_api::PodVolumes>> TrafficSums::Pods(absl::Time now) const {
  std::vector<std::pair<std::string, node_api::PodVolumes>> out;
  for (const auto& [name, node] : nodes_) {
    if (now - node.last > kPodsFor) continue;
    for (const node_api::PodVolumes& pod : node.pods) out.emplace_back(name, pod);
  }
  return out;
}

size_t TrafficSums::Reporting(absl::Time now) const {
  return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& node) {
    return now - node.second.last <= kPodsFor;
  }));
}

}  // namespace spoke::ipam
