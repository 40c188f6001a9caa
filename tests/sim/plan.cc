#include "tests/sim/plan.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "tests/sim/schedule.h"

namespace spoke::sim {
namespace {

// In the order of the type.
constexpr std::pair<Act, std::string_view> kNames[] = {
    {Act::kStartPods, "start-pods"},
    {Act::kStopPods, "stop-pods"},
    {Act::kRestartPods, "restart-pods"},
    {Act::kKillAgent, "kill-agent"},
    {Act::kKillAgents, "kill-agents"},
    {Act::kReboot, "reboot"},
    {Act::kReplace, "replace"},
    {Act::kScaleIn, "scale-in"},
    {Act::kAnnounce, "announce"},
    {Act::kLie, "lie"},
    {Act::kReimage, "reimage"},
    {Act::kDouble, "double"},
    {Act::kForget, "forget"},
    {Act::kCutNode, "cut-node"},
    {Act::kCutServer, "cut-server"},
    {Act::kKillServer, "kill-server"},
    {Act::kRebootServer, "reboot-server"},
    {Act::kStandStill, "stand-still"},
    {Act::kCutStore, "cut-store"},
    {Act::kStoreRefuses, "store-refuses"},
    {Act::kStoreForgets, "store-forgets"},
    {Act::kCloudRefuses, "cloud-refuses"},
    {Act::kCloudForgets, "cloud-forgets"},
    {Act::kCloudSlow, "cloud-slow"},
    {Act::kTakeOff, "take-off"},
    {Act::kWriteBack, "write-back"},
    {Act::kStaleListings, "stale-listings"},
    {Act::kNetworkSlow, "network-slow"},
    {Act::kJournalFull, "journal-full"},
    {Act::kKernelRefuses, "kernel-refuses"},
    {Act::kLoseDels, "lose-dels"},
    {Act::kKillPlugins, "kill-plugins"},
    {Act::kDrain, "drain"},
    {Act::kUndrain, "undrain"},
    {Act::kFreeze, "freeze"},
    {Act::kRetry, "retry"},
    {Act::kRelease, "release"},
    {Act::kReserve, "reserve"},
    {Act::kEndReservations, "end-reservations"},
    {Act::kBackup, "backup"},
    {Act::kRestore, "restore"},
    {Act::kServerClock, "server-clock"},
    {Act::kUnfreeze, "unfreeze"},
    {Act::kQuarantine, "quarantine"},
    {Act::kLift, "lift"},
    {Act::kAudit, "audit"},
    {Act::kApplyPolicy, "apply-policy"},
    {Act::kResizePool, "resize-pool"},
    {Act::kConfirm, "confirm"},
};

constexpr bool NamesAreInOrder() {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (static_cast<size_t>(kNames[i].first) != i) return false;
  }
  return kNames[std::size(kNames) - 1].first == Act::kConfirm;
}
static_assert(NamesAreInOrder());

// One kind of event: how often it comes, beside the others, and how large it is.
struct Kind {
  Act act;
  double weight;
  int64_t most = 0;                // Amounts are from 1 to this; 0: it has none.
  absl::Duration lasts_most = {};  // Zero: it is over at once.
};

constexpr std::array kPods = {
    Kind{Act::kStartPods, 5, 6},
    Kind{Act::kStopPods, 4, 6},
    Kind{Act::kRestartPods, 2, 4},
};

std::vector<Kind> FaultKinds() {
  return {
      {Act::kKillAgent, 6, 40},
      {Act::kKillAgents, 0.5, 10},
      {Act::kReboot, 2},
      {Act::kReplace, 1},
      {Act::kForget, 1},
      {Act::kCutNode, 3, 0, absl::Minutes(3)},
      {Act::kCutServer, 1, 0, absl::Minutes(1)},
      {Act::kKillServer, 4, 60},
      {Act::kRebootServer, 1},
      {Act::kCutStore, 1, 0, absl::Minutes(1)},
      {Act::kStoreRefuses, 1, 0, absl::Seconds(30)},
      {Act::kStoreForgets, 1, 0, absl::Seconds(30)},
      {Act::kCloudRefuses, 1, 0, absl::Minutes(2)},
      {Act::kCloudForgets, 1, 0, absl::Minutes(2)},
      {Act::kCloudSlow, 1, 0, absl::Minutes(3)},
      {Act::kStaleListings, 1, 0, absl::Minutes(5)},
      {Act::kNetworkSlow, 1, 0, absl::Minutes(1)},
      {Act::kJournalFull, 1, 0, absl::Seconds(30)},
      {Act::kKernelRefuses, 1, 0, absl::Seconds(30)},
      {Act::kLoseDels, 1, 0, absl::Minutes(2)},
      {Act::kDrain, 1.5},
      {Act::kUndrain, 2},
      {Act::kReserve, 1, 8},
      {Act::kEndReservations, 0.7},
      {Act::kServerClock, 0.5, 600},
      {Act::kUnfreeze, 1},
  };
}

// What befalls the whole fleet at once, or the one server that leads it. Each machine suffers it at
// the rate of a fleet of this size, however many others suffer it too: a leader that dies as many
// times more often as there are more nodes never serves a pod.
constexpr double kNodesOfSmallFleet = 8;

bool BefallsAll(Act act) {
  const Target target = TargetOf(act);
  return target == Target::kAllAgents || target == Target::kServer || target == Target::kEdges ||
         act == Act::kEndReservations;
}

template <typename Kinds>
PlannedEvent Draw(Random& random, const Kinds& kinds, const PlanSettings& settings) {
  double sum = 0;
  for (const Kind& kind : kinds) sum += kind.weight;
  double left = random.Fraction() * sum;
  const Kind* chosen = &*kinds.begin();
  for (const Kind& kind : kinds) {
    chosen = &kind;
    left -= kind.weight;
    if (left < 0) break;
  }
  PlannedEvent event{.act = chosen->act};
  const auto targets = static_cast<uint64_t>(std::max(settings.nodes, settings.servers));
  event.at = random.Between(absl::ZeroDuration(), settings.until);
  event.target = random.Below(targets);
  if (chosen->most > 0) {
    event.amount = 1 + static_cast<int64_t>(random.Below(static_cast<uint64_t>(chosen->most)));
  }
  if (event.act == Act::kServerClock && random.Chance(0.5)) event.amount = -event.amount;
  if (chosen->lasts_most > absl::ZeroDuration()) {
    event.lasts = random.Between(absl::Seconds(1), chosen->lasts_most);
  }
  return event;
}

// In some runs an operator puts addresses into quarantine, and lifts it, again and again. Drawn
// apart from the rest, so that the rest is what it was for the seed.
void AddQuarantines(uint64_t seed, const PlanSettings& settings, Plan& plan) {
  Random random = RandomFor(seed, "quarantine");
  if (!random.Chance(0.3)) return;
  const uint64_t count = 1 + random.Below(8);
  for (uint64_t i = 0; i < count; ++i) {
    const absl::Duration at = random.Between(absl::Minutes(1), settings.until);
    plan.push_back({.at = at,
                    .act = Act::kQuarantine,
                    .target = random.Below(static_cast<uint64_t>(settings.nodes)),
                    .amount = static_cast<int64_t>(random.Below(4))});
    plan.push_back(
        {.at = at + random.Between(absl::Seconds(1), absl::Minutes(4)), .act = Act::kLift});
  }
}

// What comes in some runs only, and is drawn apart from the rest as well.
struct Apart {
  std::string_view name;
  Kind kind;
  double share = 0.3;  // Of the runs.
  uint64_t most = 4;   // Times in a run.
};

void AddApart(uint64_t seed, const PlanSettings& settings, Plan& plan) {
  const Apart all[] = {
      {"stand still", {Act::kStandStill, 1, 0, absl::Seconds(20)}},
      {"kill plugins", {Act::kKillPlugins, 1, 0, absl::Minutes(2)}, 0.2},
      {"take off", {Act::kTakeOff, 1, 8}},
      {"write back", {Act::kWriteBack, 1, 0, absl::Minutes(3)}},
      {"reimage", {Act::kReimage, 1}},
      {"scale in", {Act::kScaleIn, 1, 0, absl::Minutes(6)}},
      {"lie", {Act::kLie, 1, 0, absl::Minutes(8)}, 0.3, 6},
      {"double", {Act::kDouble, 1, 4, absl::Minutes(6)}, 0.2},
      {"audit", {Act::kAudit, 1}, 0.3, 8},
      {"announce", {Act::kAnnounce, 1, 2, absl::Minutes(6)}},
      {"freeze", {Act::kFreeze, 1, 0, absl::Minutes(5)}},
      {"retry", {Act::kRetry, 1}, 0.2},
      {"release", {Act::kRelease, 1, 3}, 0.3, 16},
      {"policy", {Act::kApplyPolicy, 1, 150}, 0.3, 8},
      {"pools", {Act::kResizePool, 1, 4}, 0.3, 12},
  };
  for (const Apart& apart : all) {
    Random random = RandomFor(seed, apart.name);
    if (!random.Chance(apart.share)) continue;
    const uint64_t times = 1 + random.Below(apart.most);
    for (uint64_t i = 0; i < times; ++i) {
      plan.push_back(Draw(random, std::array{apart.kind}, settings));
    }
  }
}

// A copy of a disk does not say that it is one, and what nobody contradicts within a minute holds
// (docs/adr/0022-nodes-remember-the-store.md): who is cut off comes back within that time.
void HearAllAfter(absl::Duration restored, Plan& plan) {
  const absl::Duration heard = restored + absl::Seconds(35);
  for (PlannedEvent& event : plan) {
    const bool cuts = event.act == Act::kCutNode || event.act == Act::kCutServer;
    if (cuts && event.at < heard) event.lasts = std::min(event.lasts, heard - event.at);
  }
}

}  // namespace

std::string Describe(const PlannedEvent& event) {
  std::string text = fmt::format("{:.3f}s {} {}", absl::ToDoubleSeconds(event.at),
                                 kNames[static_cast<size_t>(event.act)].second, event.target);
  if (event.amount != 0) text += fmt::format(" x{}", event.amount);
  if (event.lasts > absl::ZeroDuration()) {
    text += fmt::format(", for {:.3f}s", absl::ToDoubleSeconds(event.lasts));
  }
  return text;
}

Target TargetOf(Act act) {
  switch (act) {
    case Act::kStartPods:
    case Act::kStopPods:
    case Act::kRestartPods:
    case Act::kKillAgent:
    case Act::kReboot:
    case Act::kReplace:
    case Act::kScaleIn:
    case Act::kAnnounce:
    case Act::kLie:
    case Act::kReimage:
    case Act::kDouble:
    case Act::kCutNode:
    case Act::kTakeOff:
    case Act::kWriteBack:
      return Target::kMachine;
    case Act::kKillAgents:
      return Target::kAllAgents;
    case Act::kCutServer:
    case Act::kKillServer:
    case Act::kRebootServer:
    case Act::kStandStill:
    case Act::kCutStore:
    case Act::kStoreRefuses:
    case Act::kStoreForgets:
    case Act::kServerClock:
      return Target::kServer;
    case Act::kCloudRefuses:
    case Act::kCloudForgets:
    case Act::kCloudSlow:
    case Act::kStaleListings:
    case Act::kNetworkSlow:
    case Act::kJournalFull:
    case Act::kKernelRefuses:
    case Act::kLoseDels:
    case Act::kKillPlugins:
      return Target::kEdges;
    case Act::kDrain:
    case Act::kUndrain:
    case Act::kFreeze:
    case Act::kRetry:
    case Act::kRelease:
    case Act::kReserve:
    case Act::kEndReservations:
    case Act::kForget:
    case Act::kBackup:
    case Act::kRestore:
    case Act::kUnfreeze:
    case Act::kQuarantine:
    case Act::kLift:
    case Act::kAudit:
    case Act::kApplyPolicy:
    case Act::kResizePool:
    case Act::kConfirm:
      return Target::kOperator;
  }
  return Target::kOperator;
}

Plan RandomPlan(uint64_t seed, const PlanSettings& settings) {
  Random random = RandomFor(seed, "plan");
  const double hours = absl::ToDoubleHours(settings.until);
  const double events = hours * settings.nodes * settings.events_per_node_hour;
  // Some runs are calm and some are wild; faults that never come together find nothing together.
  const double share_of_faults = 0.1 + 0.5 * random.Fraction();
  Plan plan;
  for (int node = 0; node < settings.nodes; ++node) {
    plan.push_back({.at = random.Between(absl::Seconds(5), absl::Minutes(1)),
                    .act = Act::kStartPods,
                    .target = static_cast<uint64_t>(node),
                    .amount = static_cast<int64_t>(1 + random.Below(5))});
  }
  const std::vector<Kind> faults = FaultKinds();
  for (double i = 0; i < events; ++i) {
    const bool fault = random.Chance(share_of_faults);
    PlannedEvent event = fault ? Draw(random, faults, settings) : Draw(random, kPods, settings);
    if (settings.nodes > kNodesOfSmallFleet && BefallsAll(event.act) &&
        !random.Chance(kNodesOfSmallFleet / settings.nodes)) {
      continue;
    }
    plan.push_back(event);
  }
  if (settings.restores && random.Chance(0.3)) {
    const absl::Duration at = settings.until * (0.2 + 0.5 * random.Fraction());
    const bool disk = RandomFor(seed, "a disk's snapshot").Chance(0.3);
    plan.push_back({.at = at, .act = Act::kBackup, .amount = disk ? 0 : 1});
    const absl::Duration restored = at + random.Between(absl::Seconds(20), absl::Minutes(6));
    plan.push_back({.at = restored,
                    .act = Act::kRestore,
                    .amount = RandomFor(seed, "restore on other machines").Chance(0.3) ? 1 : 0});
    if (disk) HearAllAfter(restored, plan);
  }
  AddQuarantines(seed, settings, plan);
  AddApart(seed, settings, plan);
  std::stable_sort(plan.begin(), plan.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  return plan;
}

}  // namespace spoke::sim
