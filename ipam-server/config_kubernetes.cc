#include "ipam-server/config_kubernetes.h"

namespace spoke::ipam {

using config::Need;

KubernetesConfig ReadKubernetes(const config::ConfigMap& map) {
  KubernetesConfig out;
  constexpr absl::Duration kLongest = absl::Hours(24);
  map.Duration("unfit_after", &out.times.unfit, Need::kOptional, {absl::Seconds(30), kLongest});
  map.Duration("fit_after", &out.times.fit, Need::kOptional, {absl::Seconds(1), kLongest});
  map.Duration("exhausted_after", &out.times.exhausted, Need::kOptional,
               {absl::Seconds(10), kLongest});
  map.Double("max_tainted_share", &out.limits.taints_share, Need::kOptional, {0.0, 1.0});
  map.Double("max_tainted_share_a_minute", &out.limits.taints_share_a_minute, Need::kOptional,
             {0.0, 1.0});
  map.Double("max_tainted_share_of_domain", &out.limits.taints_share_of_domain, Need::kOptional,
             {0.0, 1.0});
  uint32_t floor = static_cast<uint32_t>(out.limits.taints_floor);
  map.Uint32("max_tainted_a_minute", &floor, Need::kOptional, {1, 10'000});
  out.limits.taints_floor = floor;
  map.Double("joins_per_second", &out.limits.joins_per_second, Need::kOptional, {1.0, 1000.0});
  map.Double("writes_per_second", &out.limits.writes_per_second, Need::kOptional, {1.0, 1000.0});
  return out;
}

void ReadReachability(const config::ConfigMap& map, ReachabilitySettings& out) {
  map.Duration("interval", &out.interval, Need::kOptional, {absl::ZeroDuration(), absl::Hours(1)});
  map.Duration("window", &out.window, Need::kOptional, {absl::Seconds(10), absl::Hours(1)});
  map.Uint32("peers", &out.peers, Need::kOptional, {1, 32});
  map.String("group_label", &out.group_label, Need::kOptional);
  if (map.present() && out.window < 3 * out.interval) {
    map.Error("window", "is shorter than three times the interval, so that little would be known");
  }
}

}  // namespace spoke::ipam
