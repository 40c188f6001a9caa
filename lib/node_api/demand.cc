#include "lib/node_api/demand.h"

#include <algorithm>

#include "lib/base/cut_text.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {

using base::CutText;

uint64_t Demand::pods() const {
  uint64_t sum = 0;
  for (const auto& [pod_namespace, pods] : waiting) sum += pods;
  return sum;
}

void ToWire(const Demand& in, v1::Demand& out) {
  for (const auto& [pod_namespace, pods] : in.waiting) {
    v1::Demand::Waiting& waiting = *out.add_waiting();
    waiting.set_pod_namespace(pod_namespace);
    waiting.set_pods(pods);
  }
}

Demand FromWire(const v1::Demand& in) {
  Demand demand;
  uint32_t left = kMaxWaitingPods;
  for (const v1::Demand::Waiting& waiting : in.waiting()) {
    const uint32_t pods = std::min(waiting.pods(), left);
    if (pods == 0) continue;
    const std::string pod_namespace = CutText(waiting.pod_namespace(), kMaxNameBytes);
    if (demand.waiting.size() >= kMaxWaitingNamespaces && !demand.waiting.contains(pod_namespace)) {
      continue;
    }
    demand.waiting[pod_namespace] += pods;
    left -= pods;
  }
  return demand;
}

void ToWire(const Forecast& in, v1::Forecast& out) {
  out.set_reason(CutText(in.reason, kMaxReasonBytesSaid));
  out.set_eta_ms(absl::ToInt64Milliseconds(absl::Ceil(in.eta, absl::Milliseconds(1))));
}

Forecast FromWire(const v1::Forecast& in) {
  return {.reason = CutText(in.reason(), kMaxReasonBytesTaken),
          .eta = std::clamp(absl::Milliseconds(in.eta_ms()), absl::ZeroDuration(), kMaxForecast)};
}

}  // namespace spoke::node_api
