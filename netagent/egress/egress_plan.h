// The plan that egress policies come to, between their text and their rules. Pure; egress_rules.h
// is for others.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "netagent/classes/egress_cells.h"
#include "netagent/egress/egress_policy.h"
#include "netagent/egress/egress_rules.h"

namespace spoke::netagent {

// The fate of a flow that no policy decides about, of one to the platform, or (from
// kFirstPolicy on) of one that the policy of index `action - kFirstPolicy` decides about.
using EgressAction = uint32_t;
inline constexpr EgressAction kLeaveAlone = 0;
inline constexpr EgressAction kPlatformAction = 1;
inline constexpr EgressAction kFirstPolicy = 2;

// The actions of one profile.
struct ProfileActions {
  EgressAction usual = kLeaveAlone;             // The action in every cell that is not listed.
  std::map<uint32_t, EgressAction> exceptions;  // The actions of other cells, by cell.
  bool in_cluster = false;                      // Whether it does anything inside the cluster.

  bool operator==(const ProfileActions&) const = default;
};

// The number of slots of the table, one for each policy and family, from which a flow's gateway
// comes. A gateway that dies gives its slots to others, and the others keep theirs.
inline constexpr uint32_t kGatewaySlots = 256;

struct EgressPlan {
  EgressSettings settings;
  ResolvedPolicies resolved;
  Cells cells;
  std::vector<ProfileActions> actions;  // The actions, by profile.
  std::map<uint32_t, GatewayEndpoint> marks;
  std::map<GatewayEndpoint, uint32_t> mark_of;  // The marks, by gateway.
  std::set<GatewayEndpoint> healthy;
  // The tunnel's UDP port; nothing: this node has no tunnel.
  std::optional<uint16_t> tunnel_port;
  // All gateways that policies reach by a tunnel, this node itself included.
  std::set<ip::Address> tunnel_gateways;
  // The ranges, for a gateway, where pods of other nodes are, and where nothing is translated on
  // the way to.
  std::vector<ClassRange> cluster;
  std::vector<ClassRange> inside;

  // Returns whether some policy ends flows that began before it.
  bool Cuts() const;
  // Returns what a pod of the profile does with a flow to `far`.
  EgressAction ActionOf(uint32_t profile, const ip::Address& far) const;
  // Returns the gateways that may get new flows of the policy now.
  std::vector<GatewayEndpoint> Open(const ResolvedEgress& policy, ip::Family family) const;
  // Returns which of `open` has each slot; `open` is not empty.
  static std::vector<GatewayEndpoint> Slots(const std::vector<GatewayEndpoint>& open);
};

// Returns the plan. Errors: those of EgressRules::Compile().
absl::StatusOr<EgressPlan> PlanEgress(const Policy& policy, const ClassMap& classes,
                                      const std::set<GatewayEndpoint>& healthy,
                                      const EgressSettings& settings);

}  // namespace spoke::netagent
