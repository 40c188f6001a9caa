#include "netagent/connections/connection_shares.h"

#include <algorithm>

namespace spoke::netagent {
namespace {

constexpr uint32_t kUsualConnections = 65'536;  // The usual share of a table without a limit.
// The most, however large the table: more pairs of pod and destination would not fit into the sets
// of egress policies' limits (egress_sets.h) beside those of others.
constexpr uint32_t kMostUsualConnections = 131'072;
// The kernel chooses from port 1,024 on (nf_nat_core.c).
constexpr uint32_t kUsualPorts = (65'536 - 1'024) / 2;
// A connection that is never answered stays for half a minute (nf_conntrack_udp_timeout), others
// longer: a pod that begins more than its share in that time comes to have more.
constexpr uint32_t kShortestLife = 30;
constexpr uint32_t kBurstPart = 4;
// The ports to one target are only twice the share, so that as many as the share must not be begun
// from one list to the next: half of them at once, the others one by one.
constexpr uint32_t kBurstPartOfPorts = 2;
constexpr uint32_t kRatePartOfPorts = 16;
static_assert(TallyPasses::kLongestPause < absl::Seconds(kRatePartOfPorts / kBurstPartOfPorts));

bool IsOver(uint64_t count, uint32_t share, bool was_over) {
  return count > (was_over ? share - share / 8 : share);
}

// The smallest share that matters.
uint32_t SmallestOf(const ConnectionShares& shares) {
  return std::min(shares.connections, shares.ports);
}

}  // namespace

uint32_t ConnectionShares::per_second() const {
  return std::max(std::min(connections / kShortestLife, ports / kRatePartOfPorts), uint32_t{1});
}

uint32_t ConnectionShares::burst() const {
  return std::max(std::min(connections / kBurstPart, ports / kBurstPartOfPorts), uint32_t{1});
}

std::optional<ConnectionShares> SharesOf(const ShareSettings& settings, const TableUse& table) {
  if (!settings.bounded) return std::nullopt;
  const uint64_t quarter = table.limit / 4;
  const uint32_t usual =
      quarter == 0 ? kUsualConnections
                   : static_cast<uint32_t>(std::min<uint64_t>(quarter, kMostUsualConnections));
  return ConnectionShares{.connections = settings.connections.value_or(usual),
                          .ports = settings.ports.value_or(kUsualPorts)};
}

OverShare FindOver(const std::vector<PodConnections>& pods, const ConnectionShares& shares,
                   const OverShare& before) {
  OverShare over;
  for (const PodConnections& pod : pods) {
    if (IsOver(pod.connections, shares.connections, before.links.contains(pod.link))) {
      over.links.insert(pod.link);
      continue;
    }
    std::set<OverShare::WithTarget> with_target;
    for (const PodConnections::AtTarget& at : pod.targets) {
      const OverShare::WithTarget key = {pod.link, at.target.address, at.target.protocol};
      if (!IsOver(at.connections, shares.ports, before.with_target.contains(key))) continue;
      with_target.insert(key);
    }
    if (with_target.size() > kMaxTargetsOver) {
      over.links.insert(pod.link);
    } else {
      over.with_target.merge(with_target);
    }
  }
  return over;
}

std::optional<absl::Time> TallyPasses::NextGlance() const {
  if (begun_) return std::nullopt;
  return next_glance_;
}

bool TallyPasses::IsNeeded(const TableUse& table,
                           const std::optional<ConnectionShares>& shares) const {
  if (!shares || table.entries < SmallestOf(*shares) / 4) return false;
  const bool nearly_full = table.limit > 0 && table.entries > table.limit - table.limit / 4;
  return near_ || nearly_full || table.entries >= entries_ + SmallestOf(*shares) / 4;
}

bool TallyPasses::Glance(absl::Time now, const TableUse& table,
                         const std::optional<ConnectionShares>& shares) {
  if (begun_ || now < next_glance_) return false;
  next_glance_ = now + kGlance;
  // There is one more list after some entries, so that the counts fall to 0.
  if (table.entries == 0 && entries_ == 0) return false;
  const absl::Duration pause = IsNeeded(table, shares) ? std::clamp(took_ * kTimesTheLastInNeed,
                                                                    kShortestPause, kLongestPause)
                                                       : std::max(kPause, took_ * kTimesTheLast);
  if (now < ended_ + pause) {
    next_glance_ = std::min(next_glance_, ended_ + pause);
    return false;
  }
  return true;
}

void TallyPasses::OnBegun(absl::Time now, const TableUse& table) {
  begun_ = now;
  entries_ = table.entries;
}

void TallyPasses::OnEnded(absl::Time now) {
  took_ = begun_ ? now - *begun_ : absl::ZeroDuration();
  begun_.reset();
  ended_ = now;
  next_glance_ = now + kGlance;
}

void TallyPasses::OnTally(const ConnectionTally& tally,
                          const std::optional<ConnectionShares>& shares) {
  near_ = shares && std::any_of(tally.pods().begin(), tally.pods().end(), [&](const auto& pod) {
            const bool target =
                std::any_of(pod.targets.begin(), pod.targets.end(),
                            [&](const auto& at) { return at.connections > shares->ports / 2; });
            return target || pod.connections > shares->connections / 2;
          });
}

}  // namespace spoke::netagent
