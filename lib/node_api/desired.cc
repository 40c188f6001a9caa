#include "lib/node_api/desired.h"

#include <algorithm>

#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {
namespace {

template <typename T>
std::optional<T> IfAny(const absl::StatusOr<T>& value) {
  return value.ok() ? std::optional(*value) : std::nullopt;
}

PoolState FromWire(const v1::PoolState& in) {
  return {.name = in.name(),
          .cidr = in.cidr(),
          .usable = in.usable(),
          .attached = in.attached(),
          .free = in.free(),
          .namespaces = {in.namespaces().begin(), in.namespaces().end()},
          .unused = IfAny(ip::Address::FromBytes(in.unused()))};
}

void ToWire(const PoolState& in, v1::PoolState& out) {
  out.set_name(in.name);
  out.set_cidr(in.cidr);
  out.set_usable(in.usable);
  out.set_attached(in.attached);
  out.set_free(in.free);
  for (const std::string& name : in.namespaces) out.add_namespaces(name);
  if (in.unused) out.set_unused(in.unused->ToBytes());
}

}  // namespace

void ToWire(const DesiredState& in, v1::DesiredState& out) {
  out.set_version(in.version);
  out.set_full(in.full);
  for (const DesiredConfiguration& desired : in.added) {
    v1::IpConfiguration& configuration = *out.add_added();
    ToWire(desired.range, configuration);
    configuration.set_name(desired.name);
    configuration.set_pool(desired.pool);
    if (desired.nic_mac) configuration.set_nic_mac(desired.nic_mac->ToString());
    configuration.set_cooldown_ms(
        static_cast<uint32_t>(absl::ToInt64Milliseconds(desired.cooldown)));
  }
  for (const ip::Prefix& range : in.removed) ToWire(range, *out.add_removed());
  for (const PoolState& pool : in.pools) ToWire(pool, *out.add_pools());
  out.set_store_token(in.store_token);
}

absl::StatusOr<DesiredState> FromWire(const v1::DesiredState& in) {
  DesiredState desired{.version = in.version(), .full = in.full(), .store_token = in.store_token()};
  uint64_t total = 0;
  for (const v1::IpConfiguration& added : in.added()) {
    ASSIGN_OR_RETURN(const ip::Prefix range, FromWire(added));
    RETURN_IF_ERROR(CountAddresses(range, total));
    desired.added.push_back({.range = range,
                             .name = added.name(),
                             .pool = added.pool(),
                             .nic_mac = IfAny(ip::MacAddress::Parse(added.nic_mac())),
                             .cooldown = absl::Milliseconds(added.cooldown_ms())});
  }
  for (const v1::IpConfiguration& removed : in.removed()) {
    ASSIGN_OR_RETURN(const ip::Prefix range, FromWire(removed));
    RETURN_IF_ERROR(CountAddresses(range, total));
    desired.removed.push_back(range);
  }
  for (const v1::PoolState& pool : in.pools()) desired.pools.push_back(FromWire(pool));
  return desired;
}

void ToWire(const ReclaimRequest& in, v1::ReclaimRequest& out) {
  out.set_id(in.id);
  for (const ip::Prefix& range : in.ranges) ToWire(range, *out.add_configurations());
}

absl::StatusOr<ReclaimRequest> FromWire(const v1::ReclaimRequest& in) {
  ReclaimRequest request{.id = in.id()};
  uint64_t total = 0;
  for (const v1::IpConfiguration& configuration : in.configurations()) {
    ASSIGN_OR_RETURN(const ip::Prefix range, FromWire(configuration));
    RETURN_IF_ERROR(CountAddresses(range, total));
    request.ranges.push_back(range);
  }
  return request;
}

void ToWire(const ReclaimAnswer& in, v1::ReclaimAnswer& out) {
  out.set_id(in.id);
  for (const ip::Prefix& range : in.agreed) ToWire(range, *out.add_agreed());
  for (const ip::Prefix& range : in.denied) ToWire(range, *out.add_denied());
}

absl::StatusOr<ReclaimAnswer> FromWire(const v1::ReclaimAnswer& in) {
  ReclaimAnswer answer{.id = in.id()};
  ASSIGN_OR_RETURN(answer.agreed, RangesFromWire("agreed", in.agreed()));
  ASSIGN_OR_RETURN(answer.denied, RangesFromWire("denied", in.denied()));
  return answer;
}

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
  out.set_reason(CutText(in.reason, kMaxReasonBytes));
  out.set_eta_ms(absl::ToInt64Milliseconds(absl::Ceil(in.eta, absl::Milliseconds(1))));
}

Forecast FromWire(const v1::Forecast& in) {
  return {.reason = CutText(in.reason(), kMaxReasonBytes),
          .eta = std::clamp(absl::Milliseconds(in.eta_ms()), absl::ZeroDuration(), kMaxForecast)};
}

}  // namespace spoke::node_api
