#include "ipam-server/session/agent_session.h"

#include <algorithm>
#include <utility>

#include "lib/node_checks/check_ids.h"

namespace spoke::ipam {
namespace {

// How long the node must still keep `configuration` from pods, whatever its journal says. Not zero
// for what is in cooldown here, since the agent is the one to say that it is over.
absl::Duration CooldownOf(const Configuration& configuration, absl::Duration cooldown,
                          absl::Time now) {
  absl::Duration longest = absl::ZeroDuration();
  for (const Slot& slot : configuration.slots) {
    if (slot.use != Use::kCooldown) continue;
    longest = std::max({longest, cooldown - (now - slot.since), absl::Milliseconds(1)});
  }
  return longest;
}

// `ranges` is sorted.
bool IsAmong(const std::vector<ip::Prefix>& ranges, const ip::Prefix& range) {
  return std::binary_search(ranges.begin(), ranges.end(), range);
}

// One of the reserved ones. The first of an IPv6 subnet is every router's (RFC 4291 section 2.6.1).
std::optional<ip::Address> UnusedOf(const PoolSpec& spec) {
  if (spec.reserve_last > 0) return spec.cidr.last();
  if (spec.reserve_first > 0 && spec.cidr.base().is_v4()) return spec.cidr.base();
  return std::nullopt;
}

void AddPools(const Fleet& fleet, const NodeRecord& record, node_api::DesiredState& desired) {
  for (const PoolGroup& group : fleet.ledger.pools().GroupsFor(record)) {
    for (const size_t index : group.pools) {
      const AddressPool& pool = fleet.ledger.pools()[index].pool;
      desired.pools.push_back({.name = pool.spec().name,
                               .cidr = pool.spec().cidr.ToString(),
                               .usable = pool.usable(),
                               .attached = pool.held(),
                               .free = fleet.ledger.pools()[index].free(),
                               .namespaces = pool.spec().namespaces,
                               .unused = UnusedOf(pool.spec())});
    }
  }
}

}  // namespace

node_api::DesiredState NextDesired(const Fleet& fleet, const NodeRecord& record, absl::Time now,
                                   Session& session) {
  node_api::DesiredState desired;
  desired.full = std::exchange(session.full_due, false);
  desired.version = ++session.desired_version;
  std::vector<ip::Prefix> attached;
  for (const auto& [base, configuration] : record.configurations) {
    if (configuration.state != AddressState::kAttached || IsWithheld(fleet, configuration)) {
      continue;
    }
    const bool is_told = IsAmong(session.told, configuration.range);
    // What it was not told of an agent gives up at once: it must not be told of it while that may
    // be on its way here.
    if (!is_told && IsAmong(session.reclaim_asked, configuration.range)) continue;
    attached.push_back(configuration.range);
    if (is_told && !desired.full) continue;
    desired.added.push_back({.range = configuration.range,
                             .name = configuration.name,
                             .pool = configuration.pool,
                             .nic_mac = record.nic_mac,
                             .cooldown = CooldownOf(configuration, fleet.policy.cooldown, now)});
  }
  if (!desired.full) {
    std::set_difference(session.told.begin(), session.told.end(), attached.begin(), attached.end(),
                        std::back_inserter(desired.removed));
  }
  AddPools(fleet, record, desired);
  session.told = std::move(attached);
  return desired;
}

std::vector<Warning> WarningsOf(const std::vector<node_api::NodeFinding>& findings,
                                const std::vector<Warning>& before, absl::Time now) {
  const auto find = [](auto& warnings, size_t check) {
    return std::find_if(warnings.begin(), warnings.end(),
                        [&](const Warning& warning) { return warning.check == check; });
  };
  std::vector<Warning> warnings;
  for (const node_api::NodeFinding& finding : findings) {
    if (finding.blocking) continue;
    const size_t check = node_checks::PlaceOfCheck(finding.check);
    const auto known = find(before, check);
    // The agent remembers what another server was told.
    const absl::Time since = known == before.end() ? now - finding.age : known->since;
    if (const auto twice = find(warnings, check); twice != warnings.end()) {
      twice->since = std::min(twice->since, since);
    } else {
      warnings.push_back({check, since});
    }
  }
  return warnings;
}

absl::Duration ReconnectWithin(size_t nodes) {
  constexpr int64_t kHandshakesASecond = 1000;
  constexpr size_t kFew = 3000;  // They come back within 3 s by themselves.
  if (nodes <= kFew) return absl::ZeroDuration();
  return absl::Seconds(static_cast<int64_t>(nodes)) / kHandshakesASecond;
}

}  // namespace spoke::ipam
