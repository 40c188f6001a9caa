#include "ipam-server/cloud/calls/call_limits.h"

#include <array>

#include "absl/strings/match.h"

namespace spoke::ipam {
namespace {

constexpr absl::Duration kComputeInterval = absl::Minutes(1);
// When the limits of one VM are refilled is not worth finding out.
constexpr double kWorthAProbe = 500;

struct LimitRow {
  Limit limit;
  std::string_view name;
  LimitRate resource;  // Its capacity is 0 when not counted for a resource.
  LimitRate region;
};

constexpr LimitRate PerMinute(double refill, double capacity) {
  return {.capacity = capacity,
          .refill = refill,
          .interval = kComputeInterval,
          .stepwise = true,
          .probes = capacity >= kWorthAProbe};
}

constexpr LimitRate PerSecond(double refill, double capacity) {
  return {.capacity = capacity, .refill = refill};
}

// Returns a rate that keeps to `count` in five minutes of unknown start: a quarter at once and the
// rest spread out never exceeds it, whatever five minutes are looked at.
constexpr LimitRate PerFiveMinutes(double count) {
  return PerSecond(count * 3 / 4 / 300, count / 4);
}

const std::array<LimitRow, 11> kRows = {{
    {Limit::kFrontDoorReads, "subscription-reads", {}, PerSecond(25, 250)},
    {Limit::kFrontDoorWrites, "subscription-writes", {}, PerSecond(10, 200)},
    {Limit::kUpdateInstances, "UpdateVMScaleSetVMs", PerMinute(4, 12), PerMinute(500, 1500)},
    {Limit::kGetInstances, "GetVMScaleSetVMs", PerMinute(12, 36), PerMinute(2000, 6000)},
    {Limit::kGetScaleSets, "LowCostGetVMScaleSet", PerMinute(12, 36), PerMinute(800, 2400)},
    {Limit::kUpdateVms, "UpdateVM", PerMinute(4, 12), PerMinute(500, 1500)},
    {Limit::kGetVms, "LowCostGetVM", PerMinute(12, 36), PerMinute(8000, 24000)},
    {Limit::kListVms, "HighCostGetVM", {}, PerMinute(300, 900)},
    {Limit::kComputeOperations, "GetOperation", PerMinute(15, 45), PerMinute(5000, 15000)},
    {Limit::kNetworkReads, "network reads", {}, PerFiveMinutes(10000)},
    {Limit::kNetworkWrites, "network writes", {}, PerFiveMinutes(1000)},
}};

const LimitRow& RowOf(Limit limit) { return kRows.at(static_cast<size_t>(limit)); }

std::vector<ScopedLimit> Limits(Limit front_door, Limit limit) {
  std::vector<ScopedLimit> limits;
  if (RowOf(limit).resource.capacity > 0) limits.push_back({limit, LimitScope::kResource});
  limits.push_back({limit, LimitScope::kRegion});
  limits.push_back({front_door, LimitScope::kPrincipal});
  return limits;
}

}  // namespace

std::string_view NameOf(CallKind kind) {
  switch (kind) {
    case CallKind::kGetScaleSet:
      return "get scale set";
    case CallKind::kGetInstance:
      return "get instance";
    case CallKind::kPutInstance:
      return "put instance";
    case CallKind::kPollCompute:
    case CallKind::kPollNetwork:
      return "poll operation";
    case CallKind::kListInstanceNics:
    case CallKind::kListNics:
      return "list NICs";
    case CallKind::kGetInstanceNic:
    case CallKind::kGetNic:
      return "get NIC";
    case CallKind::kGetVm:
      return "get VM";
    case CallKind::kListVms:
      return "list VMs";
    case CallKind::kPutNic:
      return "put NIC";
  }
  return "";
}

const std::vector<ScopedLimit>& LimitsOf(CallKind kind) {
  const auto read = [](Limit limit) { return Limits(Limit::kFrontDoorReads, limit); };
  const auto write = [](Limit limit) { return Limits(Limit::kFrontDoorWrites, limit); };
  static const auto* const get_scale_set = new std::vector(read(Limit::kGetScaleSets));
  static const auto* const get_instance = new std::vector(read(Limit::kGetInstances));
  static const auto* const put_instance = new std::vector(write(Limit::kUpdateInstances));
  static const auto* const poll = new std::vector(read(Limit::kComputeOperations));
  static const auto* const network_read = new std::vector(read(Limit::kNetworkReads));
  static const auto* const network_write = new std::vector(write(Limit::kNetworkWrites));
  static const auto* const get_vm = new std::vector(read(Limit::kGetVms));
  static const auto* const list_vms = new std::vector(read(Limit::kListVms));
  switch (kind) {
    case CallKind::kGetScaleSet:
      return *get_scale_set;
    case CallKind::kGetInstance:
      return *get_instance;
    case CallKind::kPutInstance:
      return *put_instance;
    case CallKind::kPollCompute:
      return *poll;
    case CallKind::kGetVm:
      return *get_vm;
    case CallKind::kListVms:
      return *list_vms;
    case CallKind::kPutNic:
      return *network_write;
    // The NICs of scale set instances have Compute's paths, but Network answers and counts.
    case CallKind::kListInstanceNics:
    case CallKind::kGetInstanceNic:
    case CallKind::kGetNic:
    case CallKind::kPollNetwork:
    case CallKind::kListNics:
      break;
  }
  return *network_read;
}

LimitRate RateOf(const ScopedLimit& limit) {
  const LimitRow& row = RowOf(limit.limit);
  return limit.scope == LimitScope::kResource ? row.resource : row.region;
}

std::string_view NameOf(Limit limit) { return RowOf(limit).name; }

std::optional<ScopedLimit> LimitNamed(std::string_view policy) {
  absl::string_view base(policy.data(), policy.size());
  LimitScope scope = LimitScope::kRegion;
  constexpr absl::string_view kOfRegion = "SubscriptionMaximum";
  constexpr absl::string_view kOfResource = "Resource";
  if (absl::EndsWithIgnoreCase(base, kOfRegion)) {
    base.remove_suffix(kOfRegion.size());
  } else if (absl::EndsWithIgnoreCase(base, kOfResource)) {
    base.remove_suffix(kOfResource.size());
    scope = LimitScope::kResource;
  }
  for (const LimitRow& row : kRows) {
    if (absl::EqualsIgnoreCase({row.name.data(), row.name.size()}, base) &&
        (scope == LimitScope::kRegion || row.resource.capacity > 0)) {
      return ScopedLimit{row.limit, scope};
    }
  }
  return std::nullopt;
}

}  // namespace spoke::ipam
