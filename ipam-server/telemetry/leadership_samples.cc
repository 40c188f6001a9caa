#include "ipam-server/telemetry/leadership_samples.h"

namespace spoke::ipam {

std::vector<telemetry::Samples> LeadershipSamples(const LeadershipSample& sample) {
  const auto one = [](const char* metric, double value) {
    return telemetry::Samples{.metric = metric, .series = {{{}, value}}};
  };
  std::vector<telemetry::Samples> out = {one("spoke_ipam_leading", sample.mirror ? 0 : 1)};
  if (!sample.leader.empty()) {
    out.push_back({.metric = "spoke_ipam_leader_info", .series = {{{sample.leader}, 1}}});
  }
  if (sample.margin) {
    out.push_back(
        one("spoke_ipam_leadership_margin_seconds", absl::ToDoubleSeconds(*sample.margin)));
  }
  if (sample.mirror) {
    const LeadershipSample::Mirror& mirror = *sample.mirror;
    out.push_back(one("spoke_ipam_mirror_records", static_cast<double>(mirror.records)));
    out.push_back(one("spoke_ipam_mirror_revision", static_cast<double>(mirror.revision)));
    out.push_back(one("spoke_ipam_mirror_age_seconds", absl::ToDoubleSeconds(mirror.age)));
    out.push_back(one("spoke_ipam_mirror_reads_total", static_cast<double>(mirror.full_reads)));
    out.push_back(
        one("spoke_ipam_mirror_breaks_total", static_cast<double>(mirror.broken_watches)));
  }
  return out;
}

}  // namespace spoke::ipam
