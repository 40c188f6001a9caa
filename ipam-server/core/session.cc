#include "ipam-server/core/session.h"

#include <algorithm>
#include <utility>

namespace spoke::ipam {

DesiredState NextDesired(const Fleet& fleet, const NodeRecord& record, absl::Time now,
                         Session& session) {
  DesiredState desired;
  desired.full = session.desired_version == 0;
  desired.version = ++session.desired_version;
  std::set<ip::Address> attached;
  for (const auto& [address, held] : record.addresses) {
    if (held.state != LeaseState::kAttached) continue;
    attached.insert(address);
    if (session.told.contains(address)) continue;
    const absl::Duration cooled = now - held.since;
    desired.added.push_back(
        {.address = address,
         .configuration = held.configuration,
         .pool = held.pool,
         .nic_mac = record.nic_mac,
         .cooling = held.use == Use::kCooling
                        ? std::max(absl::ZeroDuration(), fleet.policy().cooldown - cooled)
                        : absl::ZeroDuration()});
  }
  for (const ip::Address& address : session.told) {
    if (!attached.contains(address)) desired.removed.push_back(address);
  }
  for (const AddressPool& pool : fleet.pools()) {
    desired.pools.push_back({.name = pool.spec().name,
                             .cidr = pool.spec().cidr.ToString(),
                             .usable = pool.usable(),
                             .attached = pool.held(),
                             .free = pool.free()});
  }
  session.told = std::move(attached);
  return desired;
}

}  // namespace spoke::ipam
