// How pods' traffic leaves the node: egress policies as rules of the table spoke. Pure.
//
// A flow is decided upon once, at its first packet, before it is routed; the decision stays in bits
// of its connection's mark (claims.h), so that whatever becomes of policy, gateways and agent, it
// goes on as it began. The first packet finds the pod's profile by its source, the cell by its
// destination, and by both what to do: three or four lookups, however many pods and policies.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/nft/ruleset.h"
#include "netagent/classes/traffic_class.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/egress/gateways/gateway_endpoint.h"
#include "netagent/egress/ip_masq.h"
#include "netagent/policy/policy_bundle.h"
#include "netagent/traffic/traffic_plan.h"

namespace spoke::netagent {

struct EgressPlan;  // egress_plan.h

struct EgressSettings {
  // The configuration by which pods that no policy selects are translated as ip-masq-agent does it;
  // without it nothing happens to them.
  std::optional<IpMasqConfig> ip_masq = std::nullopt;
  // Whether the metadata service and the wire server hear pods from the node's own address, also
  // where there is no policy. This costs tracking connections.
  bool platform = false;
  // The access of pods of which no policy says whether they reach the platform at all.
  PlatformAccess platform_access = PlatformAccess::kOpen;
  // The node's own addresses: what pods send there is left alone, and a gateway that has one of
  // them is this node.
  std::set<ip::Address> own = {};
  // Whether this node is a gateway, which translates what other nodes' pods send through it.
  bool is_gateway = false;
  // The addresses that it translates to; empty: the NIC's.
  std::vector<ip::Address> gateway_addresses = {};
  // Whether NeedsTracking() was true before: flows go on that were translated then.
  bool tracked = false;
  // The marks that GatewayMarks() gave last, this agent or the one before: those that are not
  // needed any more stay as long as there is room, since flows may still go by them.
  std::map<uint32_t, GatewayEndpoint> known_marks = {};
  // The port that TunnelPort() gave last, in the same way.
  std::optional<uint16_t> known_tunnel_port = std::nullopt;
  // The TCP port where a gateway answers, while it works.
  uint16_t gateway_health_port = kGatewayHealthPort;

  bool operator==(const EgressSettings&) const = default;
};

// The egress rules in force; a value. Everything it makes in the kernel has a name that begins with
// "egress_", in the table spoke, and hooks of its own behind those that count; the counters are
// "drop/leak", "drop/tunnel", "drop/cut", "drop/egress-POLICY" and "drop/egress-limit-POLICY".
class EgressRules {
 public:
  // Compiles the policy; `healthy` are the gateways that answer. Errors: kInvalidArgument, naming
  // the policy and what is wrong with it.
  static absl::StatusOr<EgressRules> Compile(const Policy& policy, const ClassMap& classes,
                                             const std::set<GatewayEndpoint>& healthy,
                                             const EgressSettings& settings);

  // Declares counters, sets and chains, empties the chains, and fills them anew; where nothing is
  // needed, takes all away except the counters. `seen` are the rules that the table has; chains
  // that are not this policy's go. So do pods' elements: AppendPod() has to follow for each pod, in
  // the same transaction. Flows that are established go on as they began, and what the limits have
  // counted stays.
  void AppendTables(const std::vector<nft::RuleReading>& seen, nft::Transaction& transaction) const;
  // Appends the pod's elements, in the same transaction as AppendTables() or a later one; a pod
  // that was appended and not removed must not be appended again.
  void AppendPod(const TrafficPod& pod, nft::Transaction& transaction) const;
  void AppendPodRemoval(const TrafficPod& pod, nft::Transaction& transaction) const;

  // Returns whether some policy says who reaches the platform's services.
  bool NamesPlatform() const;

  // Returns whether some policy has a say in the pod's traffic inside the cluster, so that no
  // packet of it may pass by the rules.
  bool KeepsFromFastPath(const TrafficPod& pod) const;

  // Returns the gateways of all policies, except this node itself, with the TCP port of each's
  // health check.
  std::map<GatewayEndpoint, uint16_t> Gateways() const;
  // Returns the marks that need a route table in the kernel before the rules are there: mark (under
  // claims::kFlowMarkMask) to gateway.
  const std::map<uint32_t, GatewayEndpoint>& GatewayMarks() const;
  // Returns the UDP port of the device claims::kTunnelLink, which they and a gateway need; nothing:
  // none.
  std::optional<uint16_t> TunnelPort() const;
  // Returns the gateways that are reached by it. What pods send to them must not pass by the rules,
  // which keep pods from putting packets into the tunnel themselves.
  const std::set<ip::Address>& TunnelGateways() const;
  // Returns whether established flows are told from new ones, so that the kernel tracks
  // connections.
  bool NeedsTracking() const;

  // Return whether some policy ends flows that began before it, and whether it ends that of a pod
  // of this namespace to `far`, as translated.
  bool Cuts() const;
  bool CutsFlow(const std::string& pod_namespace, const ip::Address& far) const;

 private:
  bool ReachesPlatform(const TrafficPod& pod) const;
  explicit EgressRules(std::shared_ptr<const EgressPlan> plan) : plan_(std::move(plan)) {}

  // The plan never changes, so that copies can have it together.
  std::shared_ptr<const EgressPlan> plan_;
};

}  // namespace spoke::netagent
