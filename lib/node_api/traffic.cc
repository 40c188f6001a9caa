#include "lib/node_api/traffic.h"

#include <algorithm>

#include "lib/base/utf8.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {
namespace {

using base::CutText;
using WireVolumes = google::protobuf::RepeatedPtrField<v1::TrafficReport::Volume>;

void VolumesToWire(const VolumeByClass& in, WireVolumes& out) {
  for (const auto& [traffic_class, volume] : in) {
    v1::TrafficReport::Volume& to = *out.Add();
    to.set_traffic_class(traffic_class);
    to.set_sent(volume.sent);
    to.set_received(volume.received);
  }
}

VolumeByClass VolumesFromWire(const WireVolumes& in) {
  VolumeByClass volumes;
  for (int i = 0; i < std::min(in.size(), kMaxReportClasses); ++i) {
    volumes.emplace(CutText(in[i].traffic_class(), kMaxNameBytes),
                    Volume{.sent = in[i].sent(), .received = in[i].received()});
  }
  return volumes;
}

}  // namespace

void ToWire(const TrafficReport& in, v1::TrafficReport& out) {
  out.set_epoch_unix_ms(absl::ToUnixMillis(in.epoch));
  for (const auto& [name, volumes] : in.namespaces) {
    v1::TrafficReport::Namespace& entry = *out.add_namespaces();
    entry.set_name(name);
    VolumesToWire(volumes, *entry.mutable_volumes());
  }
  for (const PodVolumes& pod : in.pods) {
    v1::TrafficReport::Pod& entry = *out.add_pods();
    entry.set_pod_namespace(pod.pod_namespace);
    entry.set_pod_name(pod.pod_name);
    VolumesToWire(pod.volumes, *entry.mutable_volumes());
  }
}

TrafficReport FromWire(const v1::TrafficReport& in) {
  TrafficReport report{.epoch = absl::FromUnixMillis(in.epoch_unix_ms())};
  for (int i = 0; i < std::min(in.namespaces_size(), kMaxReportNamespaces); ++i) {
    const v1::TrafficReport::Namespace& entry = in.namespaces(i);
    report.namespaces.emplace(CutText(entry.name(), kMaxNameBytes),
                              VolumesFromWire(entry.volumes()));
  }
  for (int i = 0; i < std::min(in.pods_size(), kMaxReportPods); ++i) {
    const v1::TrafficReport::Pod& pod = in.pods(i);
    report.pods.push_back({.pod_namespace = CutText(pod.pod_namespace(), kMaxNameBytes),
                           .pod_name = CutText(pod.pod_name(), kMaxNameBytes),
                           .volumes = VolumesFromWire(pod.volumes())});
  }
  return report;
}

}  // namespace spoke::node_api
