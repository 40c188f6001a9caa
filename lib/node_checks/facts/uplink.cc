#include "lib/node_checks/facts/uplink.h"

#include <algorithm>

#include "absl/status/status.h"

namespace spoke::node_checks {

absl::StatusOr<int32_t> ChooseUplink(std::span<const DefaultRoute> routes) {
  const auto best = std::min_element(
      routes.begin(), routes.end(),
      [](const DefaultRoute& a, const DefaultRoute& b) { return a.metric < b.metric; });
  if (best == routes.end()) return absl::NotFoundError("there is no default route");
  const bool is_one =
      best->link != 0 && std::all_of(routes.begin(), routes.end(), [&](const DefaultRoute& route) {
        return route.metric != best->metric || route.link == best->link;
      });
  if (!is_one) {
    return absl::FailedPreconditionError("default routes of one metric lead to several devices");
  }
  return best->link;
}

}  // namespace spoke::node_checks
