#include "ipam-server/telemetry/refusal_samples.h"

#include <utility>

namespace spoke::ipam {

std::vector<telemetry::Samples> RefusalSamples(const std::vector<ListenerRefusals>& listeners) {
  telemetry::Samples out{.metric = "spoke_ipam_connections_refused_total", .series = {}};
  for (const ListenerRefusals& listener : listeners) {
    const rpc::RefusalCounts counts = listener.refusals->counts();
    for (size_t i = 0; i < counts.size(); ++i) {
      const std::string reason(rpc::NameOf(static_cast<rpc::Refusal>(i)));
      out.series.push_back({{listener.listener, reason}, static_cast<double>(counts[i])});
    }
  }
  return {std::move(out)};
}

}  // namespace spoke::ipam
