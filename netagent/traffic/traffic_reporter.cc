#include "netagent/traffic/traffic_reporter.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace spoke::netagent {
namespace {

// Bytes outside the cluster.
uint64_t Outside(const PodTotals& pod) {
  uint64_t sum = 0;
  for (const auto& [traffic_class, volume] : pod.volumes) {
    if (traffic_class == "cluster" || traffic_class == "loopback") continue;
    sum += volume.sent + volume.received;
  }
  return sum;
}

void AddTo(VolumeByClass& sum, const VolumeByClass& volumes) {
  for (const auto& [traffic_class, volume] : volumes) {
    Volume& to = sum[traffic_class];
    to.sent += volume.sent;
    to.received += volume.received;
    to.sent_packets += volume.sent_packets;
    to.received_packets += volume.received_packets;
  }
}

}  // namespace

TrafficReport TrafficReporter::ReportOf(TrafficTotals totals) {
  TrafficReport report{.epoch = totals.epoch, .namespaces = {}, .pods = std::move(totals.pods)};
  for (const auto& [name, volumes] : totals.namespaces) {
    const bool named = named_.contains(name) || named_.size() < kMaxNamespaces;
    if (named) named_.insert(name);
    AddTo(report.namespaces[named ? name : std::string(kOther)], volumes);
  }
  const size_t most = std::min(kMaxPods, report.pods.size());
  std::partial_sort(report.pods.begin(), report.pods.begin() + static_cast<ptrdiff_t>(most),
                    report.pods.end(),
                    [](const PodTotals& a, const PodTotals& b) { return Outside(a) > Outside(b); });
  report.pods.resize(most);
  return report;
}

void TrafficReporter::Tick() {
  const absl::Time now = clock_.Now();
  // A clock that was put back must not silence it.
  if (now < next_ && next_ - now <= kPeriod) return;
  next_ = now + kPeriod;
  absl::StatusOr<TrafficTotals> totals = read_();
  if (!totals.ok()) {
    if (!std::exchange(complained_, true)) {
      log_.Warn("traffic_unreadable", {{"error", totals.status()}});
    }
    return;
  }
  complained_ = false;
  server_.ReportTraffic(ReportOf(*std::move(totals)));
}

}  // namespace spoke::netagent
