#include "netagent/egress/egress_rules.h"

#include <utility>

#include "netagent/egress/egress_chains.h"
#include "netagent/egress/egress_plan.h"
#include "netagent/nftables/rule_parts.h"

namespace spoke::netagent {
namespace {

// The most bytes of a policy's name in a counter's: nf_tables takes names of 255 bytes; a policy's
// may have 253.
constexpr size_t kMaxNameInCounter = 200;

std::string Shortened(const std::string& policy) { return policy.substr(0, kMaxNameInCounter); }

nft::Element PodElement(const ip::Address& address, uint32_t profile) {
  return {.key = nft::NetworkOrder(address), .value = nft::HostOrder(ProfileKey(profile))};
}

}  // namespace

std::string DropCounterOf(const std::string& policy) { return "drop/egress-" + Shortened(policy); }

std::string LimitCounterOf(const std::string& policy) {
  return "drop/egress-limit-" + Shortened(policy);
}

absl::StatusOr<EgressRules> EgressRules::Compile(const Policy& policy, const ClassMap& classes,
                                                 const std::set<GatewayEndpoint>& healthy,
                                                 const EgressSettings& settings) {
  absl::StatusOr<EgressPlan> plan = PlanEgress(policy, classes, healthy, settings);
  if (!plan.ok()) return plan.status();
  return EgressRules(std::make_shared<const EgressPlan>(*std::move(plan)));
}

void EgressRules::AppendTables(const std::vector<nft::RuleReading>& seen,
                               nft::Transaction& transaction) const {
  std::set<std::string> old;
  for (const nft::RuleReading& rule : seen) {
    if (rule.chain.rfind(kEgressPrefix, 0) == 0) old.insert(rule.chain);
  }
  transaction.Add(kSpokeTable, nft::AddSet{PlatformPodsSet()});
  transaction.Add(kSpokeTable, nft::FlushSet{kPlatformPods});
  if (NeedsTracking()) {
    AppendEgress(*plan_, old, transaction);
  } else {
    AppendNoEgress(old, transaction);
  }
}

void EgressRules::AppendPod(const TrafficPod& pod, nft::Transaction& transaction) const {
  if (!NeedsTracking()) return;
  const uint32_t profile = plan_->resolved.ProfileOf(pod.pod_namespace);
  const bool platform = ReachesPlatform(pod);
  for (const ip::Address& address : pod.addresses) {
    transaction.Add(kSpokeTable, nft::AddElements{kEgressPods + rules::Suffix(address.family()),
                                                  {PodElement(address, profile)}});
    if (!platform || !address.is_v4()) continue;
    transaction.Add(kSpokeTable,
                    nft::AddElements{kPlatformPods, {{.key = nft::NetworkOrder(address)}}});
  }
}

void EgressRules::AppendPodRemoval(const TrafficPod& pod, nft::Transaction& transaction) const {
  if (!NeedsTracking()) return;
  const bool platform = ReachesPlatform(pod);
  for (const ip::Address& address : pod.addresses) {
    if (platform && address.is_v4()) {
      transaction.Add(kSpokeTable,
                      nft::DeleteElements{kPlatformPods, {{.key = nft::NetworkOrder(address)}}});
    }
    transaction.Add(kSpokeTable, nft::DeleteElements{kEgressPods + rules::Suffix(address.family()),
                                                     {{.key = nft::NetworkOrder(address)}}});
  }
}

bool EgressRules::ReachesPlatform(const TrafficPod& pod) const {
  const ResolvedPolicies& resolved = plan_->resolved;
  if (!resolved.NamesPlatform()) return false;  // Without such a policy no rule asks.
  return resolved.OpensPlatform(resolved.ProfileOf(pod.pod_namespace))
      .value_or(plan_->settings.platform_access == PlatformAccess::kOpen);
}

bool EgressRules::NamesPlatform() const { return plan_->resolved.NamesPlatform(); }

bool EgressRules::KeepsFromFastPath(const TrafficPod& pod) const {
  return plan_->actions[plan_->resolved.ProfileOf(pod.pod_namespace)].in_cluster;
}

std::map<GatewayEndpoint, uint16_t> EgressRules::Gateways() const {
  std::map<GatewayEndpoint, uint16_t> all;
  for (const ResolvedEgress& policy : plan_->resolved.policies) {
    for (const ResolvedGateway& gateway : policy.gateways) {
      if (!plan_->settings.own.contains(gateway.endpoint.address)) {
        all.emplace(gateway.endpoint, gateway.health_port);
      }
    }
  }
  return all;
}

const std::map<uint32_t, GatewayEndpoint>& EgressRules::GatewayMarks() const {
  return plan_->marks;
}

std::optional<uint16_t> EgressRules::TunnelPort() const { return plan_->tunnel_port; }

const std::set<ip::Address>& EgressRules::TunnelGateways() const { return plan_->tunnel_gateways; }

bool EgressRules::Cuts() const { return plan_->Cuts(); }

bool EgressRules::CutsFlow(const std::string& pod_namespace, const ip::Address& far) const {
  const EgressAction action = plan_->ActionOf(plan_->resolved.ProfileOf(pod_namespace), far);
  return action >= kFirstPolicy && plan_->resolved.policies[action - kFirstPolicy].cuts;
}

bool EgressRules::NeedsTracking() const {
  const EgressSettings& settings = plan_->settings;
  return !plan_->resolved.policies.empty() || settings.platform || settings.is_gateway ||
         settings.tracked;
}

}  // namespace spoke::netagent
