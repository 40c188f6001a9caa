#include "netagent/traffic/traffic_reporter.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace spoke::netagent {
namespace {

// Returns the bytes from and to the outside of the cluster.
uint64_t Outside(const PodTotals& pod) {
  uint64_t sum = 0;
  for (const auto& [traffic_class, volume] : pod.volumes) {
    if (traffic_class == "cluster" || traffic_class == "loopback") continue;
    sum += volume.sent + volume.received;
  }
  return sum;
}

void AddTo(node_api::VolumeByClass& sum, const CountByClass& volumes) {
  for (const auto& [traffic_class, volume] : volumes) {
    node_api::Volume& to = sum[traffic_class];
    to.sent += volume.sent;
    to.received += volume.received;
  }
}

}  // namespace

uint64_t CountedPackets(const TrafficTotals& totals) {
  uint64_t packets = 0;
  for (const auto& [name, volumes] : totals.namespaces) {
    for (const auto& [traffic_class, count] : volumes) {
      packets += count.sent_packets + count.received_packets;
    }
  }
  for (const auto& [reason, dropped] : totals.drops) packets += dropped.packets;
  return packets;
}

node_api::TrafficReport TrafficReporter::ReportOf(TrafficTotals totals) {
  node_api::TrafficReport report{.epoch = totals.epoch, .namespaces = {}, .pods = {}};
  for (const auto& [name, volumes] : totals.namespaces) {
    const bool named = named_.contains(name) || named_.size() < kMaxNamespaces;
    if (named) named_.insert(name);
    AddTo(report.namespaces[named ? name : std::string(kOther)], volumes);
  }
  const size_t most = std::min(kMaxPods, totals.pods.size());
  std::partial_sort(totals.pods.begin(), totals.pods.begin() + static_cast<ptrdiff_t>(most),
                    totals.pods.end(),
                    [](const PodTotals& a, const PodTotals& b) { return Outside(a) > Outside(b); });
  totals.pods.resize(most);
  for (const PodTotals& pod : totals.pods) {
    node_api::PodVolumes& said = report.pods.emplace_back();
    said.pod_namespace = pod.pod_namespace;
    said.pod_name = pod.pod_name;
    AddTo(said.volumes, pod.volumes);
  }
  return report;
}

void TrafficReporter::Tick() {
  const absl::Time now = edges_.clock.Now();
  // A clock that was put back must not silence it.
  if (now < next_ && next_ - now <= kPeriod) return;
  next_ = now + kPeriod;
  absl::StatusOr<TrafficTotals> totals = edges_.read();
  if (!totals.ok()) {
    if (!std::exchange(complained_, true)) {
      edges_.log.Warn("traffic_unreadable", {{"error", totals.status()}});
    }
    return;
  }
  complained_ = false;
  if (edges_.say_counted) edges_.say_counted(CountedPackets(*totals));
  edges_.server.ReportTraffic(ReportOf(*std::move(totals)));
}

}  // namespace spoke::netagent
