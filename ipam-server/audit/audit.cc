#include "ipam-server/audit/audit.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "fmt/core.h"
#include "lib/base/time_text.h"

namespace spoke::ipam {
namespace {

// What each of the three says of one address.
struct Facts {
  std::vector<std::pair<const StoredNode*, const StoredAddress*>> holders;
  std::vector<std::pair<const CloudNic*, std::string>> nics;  // Each with the configuration's name.
  std::vector<std::pair<const AgentInventory*, const AuditAssignment*>> users;
  std::vector<const AgentInventory*> known_to;
};

class Comparison {
 public:
  Comparison(const AuditInput& input, const AuditPolicy& policy, absl::Time now)
      : input_(input), policy_(policy), now_(now) {
    for (const StoredNode& node : input.store) {
      nodes_[node.node] = &node;
      for (const StoredAddress& held : node.addresses) {
        facts_[held.address].holders.emplace_back(&node, &held);
      }
    }
    if (input.cloud) {
      for (const CloudNic& nic : *input.cloud) {
        nics_[nic.node] = &nic;
        for (const auto& [address, name] : nic.configurations) {
          facts_[address].nics.emplace_back(&nic, name);
        }
      }
    }
    for (auto& [address, facts] : facts_) {
      // What the cloud has given to one node, and the server withholds since another holds it.
      const auto holds = [](const Holder& holder) { return !holder.second->chosen; };
      if (std::none_of(facts.holders.begin(), facts.holders.end(), holds)) continue;
      std::erase_if(facts.holders, [&](const Holder& holder) { return !holds(holder); });
    }
    for (const AgentInventory& agent : input.agents) {
      agents_[agent.node] = &agent;
      for (const AuditAssignment& assignment : agent.in_use) {
        facts_[assignment.address].users.emplace_back(&agent, &assignment);
      }
      if (!agent.held) continue;
      for (const ip::Address& address : *agent.held) facts_[address].known_to.push_back(&agent);
    }
  }

  std::vector<AuditDifference> Run() {
    CompareNodes();
    for (const auto& [address, facts] : facts_) CompareAddress(address, facts);
    std::sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
      return std::tie(a.node, a.address, a.kind) < std::tie(b.node, b.address, b.kind);
    });
    return std::move(found_);
  }

 private:
  using Holder = std::pair<const StoredNode*, const StoredAddress*>;

  void Report(AuditKind kind, const AuditNode& node, std::optional<ip::Address> address,
              AuditRepair repair, std::string cause) {
    found_.push_back({.kind = kind,
                      .node = node,
                      .address = address,
                      .repair = repair,
                      .cause = std::move(cause)});
  }

  bool IsRecent(absl::Time time) const { return now_ - time < policy_.grace; }

  bool IsInPool(const std::string& pool, const ip::Address& address) const {
    const auto found = input_.pools.find(pool);
    return found != input_.pools.end() &&
           std::any_of(found->second.begin(), found->second.end(),
                       [&](const ip::Prefix& prefix) { return prefix.Contains(address); });
  }
  bool IsInAnyPool(const ip::Address& address) const {
    return std::any_of(input_.pools.begin(), input_.pools.end(),
                       [&](const auto& pool) { return IsInPool(pool.first, address); });
  }

  const StoredNode* FindNode(const AuditNode& node) const { return Find(nodes_, node); }
  template <typename T>
  static const T* Find(const std::map<AuditNode, const T*>& in, const AuditNode& node) {
    const auto found = in.find(node);
    return found == in.end() ? nullptr : found->second;
  }

  void CompareNodes() {
    for (const StoredNode& node : input_.store) {
      if (!input_.cloud || node.gone) continue;
      const CloudNic* nic = Find(nics_, node.node);
      if (nic == nullptr) {
        const bool has_some = std::any_of(
            node.addresses.begin(), node.addresses.end(), [&](const StoredAddress& held) {
              return held.state == AuditState::kAttached && !IsRecent(held.since);
            });
        if (has_some) {
          Report(AuditKind::kNicNotListed, node.node, std::nullopt, AuditRepair::kNone,
                 "the store has addresses attached to it, and the cloud's list has no such NIC: "
                 "look whether the VM still exists");
        }
      } else if (nic->nic_mac != node.nic_mac) {
        Report(AuditKind::kNicReplaced, node.node, std::nullopt, AuditRepair::kNone,
               fmt::format("the cloud says its NIC is {}, the store {}: restart its agent, which "
                           "says what there is",
                           nic->nic_mac.ToString(), node.nic_mac.ToString()));
      }
    }
    for (const AgentInventory& agent : input_.agents) {
      if (FindNode(agent.node) != nullptr) continue;
      Report(AuditKind::kAgentUnknown, agent.node, std::nullopt, AuditRepair::kNone,
             "an agent answers for a node that the store does not know: restart it");
    }
  }

  // What two of a kind say of an address: no repair is safe, and nothing else can be concluded.
  bool CompareClaims(const ip::Address& address, const Facts& facts) {
    if (facts.holders.size() > 1) {
      for (const auto& [node, held] : facts.holders) {
        Report(AuditKind::kHeldTwice, node->node, address, AuditRepair::kNone,
               "the store gives it to two nodes: drain both, and report this as a fault");
      }
    }
    if (facts.users.size() > 1) {
      for (const auto& [agent, assignment] : facts.users) {
        Report(AuditKind::kInUseTwice, agent->node, address, AuditRepair::kNone,
               fmt::format("two agents assign it, this one to container {}: delete one of the pods",
                           assignment->container_id));
      }
    }
    if (facts.nics.size() > 1) {
      for (const auto& [nic, name] : facts.nics) {
        Report(AuditKind::kOnTwoNics, nic->node, address, AuditRepair::kNone,
               "the cloud lists it on two NICs: list again, and ask the cloud's support if it "
               "stays");
      }
    }
    return facts.holders.size() > 1 || facts.users.size() > 1 || facts.nics.size() > 1;
  }

  void CompareAddress(const ip::Address& address, const Facts& facts) {
    if (facts.holders.size() == 1) {
      const StoredAddress& held = *facts.holders[0].second;
      const bool in_pool = held.pool.empty() ? IsInAnyPool(address) : IsInPool(held.pool, address);
      if (!in_pool) {
        Report(AuditKind::kPoolForeign, facts.holders[0].first->node, address, AuditRepair::kNone,
               fmt::format("its record says pool {}, which does not contain it: create or enlarge "
                           "the pool again, or drain the node",
                           held.pool));
      }
    }
    if (CompareClaims(address, facts)) return;
    if (facts.holders.empty()) {
      const auto freed = input_.freed.find(address);
      if (freed != input_.freed.end() && IsRecent(freed->second)) return;
      CompareFree(address, facts);
      return;
    }
    const Holder& holder = facts.holders[0];
    if (IsRecent(holder.second->since)) return;
    CompareHeld(address, holder, facts);
  }

  // The store says that nobody has it.
  void CompareFree(const ip::Address& address, const Facts& facts) {
    const AgentInventory* user = nullptr;
    if (!facts.users.empty()) {
      user = facts.users[0].first;
      if (!IsRecent(facts.users[0].second->since)) {
        CompareFreeAssigned(address, *user, facts);
      }
    } else if (!facts.nics.empty()) {
      CompareFreeOnNic(address, *facts.nics[0].first, facts.nics[0].second);
    }
    for (const AgentInventory* agent : facts.known_to) {
      if (agent != user) ReportExtra(address, *agent);
    }
  }

  void CompareFreeAssigned(const ip::Address& address, const AgentInventory& agent,
                           const Facts& facts) {
    if (!IsInAnyPool(address)) {
      Report(AuditKind::kInUseForeign, agent.node, address, AuditRepair::kNone,
             "its agent assigns it, and no pool contains it: create the pool again, or delete the "
             "pod");
    } else if (!facts.nics.empty() && facts.nics[0].first->node != agent.node) {
      Report(AuditKind::kInUseElsewhere, agent.node, address, AuditRepair::kNone,
             fmt::format("its agent assigns it, and the NIC of node {} has it: delete the pod",
                         facts.nics[0].first->node.name));
    } else {
      const StoredNode* node = FindNode(agent.node);
      const bool can_hold = node != nullptr && !node->retired && !node->gone;
      Report(AuditKind::kInUseUnknown, agent.node, address,
             can_hold ? AuditRepair::kTakeAssignment : AuditRepair::kNone,
             can_hold ? "its agent assigns it, and the store says it is free"
                      : "an agent assigns it whose node is retired or unknown: delete the pod");
    }
  }

  void CompareFreeOnNic(const ip::Address& address, const CloudNic& nic, const std::string& name) {
    const bool ours = name.starts_with(input_.own_prefix);
    if (!ours && !IsInAnyPool(address)) return;  // It is not our business.
    const StoredNode* node = FindNode(nic.node);
    std::string cause = fmt::format("the NIC has it as {}, and the store says it is free", name);
    AuditRepair repair = AuditRepair::kNone;
    if (!ours) {
      cause += ": somebody else has put it there; quarantine it, or remove it by hand";
    } else if (node == nullptr) {
      cause += ", and does not know the node: remove it by hand";
    } else if (Find(agents_, nic.node) == nullptr) {
      cause += "; the agent did not answer, and may assign it: audit again when it is back";
    } else {
      repair = AuditRepair::kDetach;
    }
    Report(AuditKind::kOnNicUnknown, nic.node, address, repair, std::move(cause));
  }

  void CompareHeld(const ip::Address& address, const Holder& holder, const Facts& facts) {
    const AuditNode& node = holder.first->node;
    for (const AgentInventory* agent : facts.known_to) {
      if (agent->node != node) ReportExtra(address, *agent);
    }
    if (!facts.users.empty() && facts.users[0].first->node != node) {
      Report(
          AuditKind::kInUseElsewhere, facts.users[0].first->node, address, AuditRepair::kNone,
          fmt::format("its agent assigns it, and the store says node {} holds it: delete the pod",
                      node.name));
      return;
    }
    if (!facts.nics.empty() && facts.nics[0].first->node != node) {
      Report(AuditKind::kWrongNic, node, address, AuditRepair::kNone,
             fmt::format("the store says it is on this node, and the NIC of node {} has it: if a "
                         "pod here uses it, it is cut off: delete the pod. Find out who took it "
                         "off this node's NIC; where the servers choose the addresses, remove it "
                         "from the other one by hand",
                         facts.nics[0].first->node.name));
      return;
    }
    if (holder.first->gone) {
      Report(AuditKind::kGoneHolds, node, address, AuditRepair::kNone,
             "the VM is no more, and the address is not free yet: are releases frozen? See "
             "`spokectl status`");
      return;
    }
    CompareWithCloud(address, holder, facts);
    if (holder.second->state != AuditState::kDetaching) CompareWithAgent(address, holder, facts);
  }

  void CompareWithCloud(const ip::Address& address, const Holder& holder, const Facts& facts) {
    const AuditNode& node = holder.first->node;
    const bool on_nic = !facts.nics.empty();
    switch (holder.second->state) {
      case AuditState::kAttaching:
        // It is in cooldown after its last use, and is taken over when that ends.
        if (holder.second->chosen && input_.freed.contains(address)) break;
        Report(AuditKind::kStuckAttaching, node, address, AuditRepair::kReattach,
               fmt::format("it has been attaching since {}, and {}", SinceOf(holder),
                           !input_.cloud ? "the cloud could not be asked"
                           : on_nic      ? "is on the NIC"
                                         : "is not on the NIC"));
        break;
      case AuditState::kDetaching:
        if (!facts.users.empty()) {
          Report(
              AuditKind::kInUseWhileDetaching, node, address, AuditRepair::kNone,
              "its agent gave it up and assigns it all the same: delete the pod, and report this "
              "as a fault");
        } else {
          Report(AuditKind::kStuckDetaching, node, address, AuditRepair::kDetach,
                 fmt::format("it has been detaching since {}", SinceOf(holder)));
        }
        break;
      case AuditState::kAttached:
        if (!input_.cloud || Find(nics_, node) == nullptr) break;
        if (!on_nic) {
          Report(AuditKind::kNotOnNic, node, address, AuditRepair::kReattach,
                 "the store says attached, and the NIC has it not");
        } else if (facts.nics[0].second != holder.second->configuration) {
          Report(AuditKind::kWrongConfiguration, node, address, AuditRepair::kNone,
                 fmt::format("the NIC has it as {}, the store as {}: drain the node to attach its "
                             "addresses anew",
                             facts.nics[0].second, holder.second->configuration));
        }
        break;
    }
  }

  void CompareWithAgent(const ip::Address& address, const Holder& holder, const Facts& facts) {
    const AuditNode& node = holder.first->node;
    const StoredAddress& held = *holder.second;
    const AgentInventory* agent = Find(agents_, node);
    if (agent == nullptr) return;
    if (!facts.users.empty()) {
      CompareAssignment(node, held, *facts.users[0].second);
    } else if (held.use == AuditUse::kInUse) {
      Report(AuditKind::kRecordedNotInUse, node, address, AuditRepair::kEndAssignment,
             fmt::format(
                 "the store says it is assigned to container {}, and its agent does not assign it",
                 held.container_id));
    }
    const bool known =
        std::find(facts.known_to.begin(), facts.known_to.end(), agent) != facts.known_to.end();
    // What is not on the NIC agents are not told of.
    const bool told = !held.withheld && (!input_.cloud || !facts.nics.empty());
    if (held.state == AuditState::kAttached && told && agent->held && !known) {
      Report(AuditKind::kAgentMisses, node, address, AuditRepair::kResendDesired,
             "it is attached, and its agent does not know");
    }
  }

  void CompareAssignment(const AuditNode& node, const StoredAddress& held,
                         const AuditAssignment& assignment) {
    const bool is_same = held.use == AuditUse::kInUse && held.generation == assignment.generation &&
                         held.container_id == assignment.container_id &&
                         held.ifname == assignment.ifname;
    if (is_same || IsRecent(assignment.since)) return;
    if (assignment.generation < held.generation) {
      Report(
          AuditKind::kInUseOlder, node, held.address, AuditRepair::kNone,
          fmt::format("its agent assigns it as generation {}, and the store has seen {}: restart "
                      "the agent, and delete the pod if that does not help",
                      assignment.generation, held.generation));
      return;
    }
    Report(AuditKind::kInUseNotRecorded, node, held.address, AuditRepair::kTakeAssignment,
           fmt::format("its agent assigns it to container {}, and the store says {}",
                       assignment.container_id,
                       held.use == AuditUse::kInUse ? "to container " + held.container_id
                                                    : "that nobody uses it"));
  }

  void ReportExtra(const ip::Address& address, const AgentInventory& agent) {
    Report(AuditKind::kAgentExtra, agent.node, address, AuditRepair::kResendDesired,
           "its agent takes it for attached, and it is not");
  }

  static std::string SinceOf(const Holder& holder) { return base::ClockText(holder.second->since); }

  const AuditInput& input_;
  const AuditPolicy& policy_;
  absl::Time now_;
  std::map<AuditNode, const StoredNode*> nodes_;
  std::map<AuditNode, const CloudNic*> nics_;
  std::map<AuditNode, const AgentInventory*> agents_;
  std::map<ip::Address, Facts> facts_;
  std::vector<AuditDifference> found_;
};

}  // namespace

std::string_view NameOf(AuditKind kind) {
  switch (kind) {
    case AuditKind::kNotOnNic:
      return "not_on_nic";
    case AuditKind::kOnNicUnknown:
      return "on_nic_unknown";
    case AuditKind::kWrongNic:
      return "wrong_nic";
    case AuditKind::kWrongConfiguration:
      return "wrong_configuration";
    case AuditKind::kOnTwoNics:
      return "on_two_nics";
    case AuditKind::kNicNotListed:
      return "nic_not_listed";
    case AuditKind::kNicReplaced:
      return "nic_replaced";
    case AuditKind::kStuckAttaching:
      return "stuck_attaching";
    case AuditKind::kStuckDetaching:
      return "stuck_detaching";
    case AuditKind::kHeldTwice:
      return "held_twice";
    case AuditKind::kGoneHolds:
      return "gone_holds";
    case AuditKind::kPoolForeign:
      return "pool_foreign";
    case AuditKind::kInUseUnknown:
      return "in_use_unknown";
    case AuditKind::kInUseForeign:
      return "in_use_foreign";
    case AuditKind::kInUseElsewhere:
      return "in_use_elsewhere";
    case AuditKind::kInUseTwice:
      return "in_use_twice";
    case AuditKind::kInUseNotRecorded:
      return "in_use_not_recorded";
    case AuditKind::kInUseOlder:
      return "in_use_older";
    case AuditKind::kInUseWhileDetaching:
      return "in_use_while_detaching";
    case AuditKind::kRecordedNotInUse:
      return "recorded_not_in_use";
    case AuditKind::kAgentMisses:
      return "agent_misses";
    case AuditKind::kAgentExtra:
      return "agent_extra";
    case AuditKind::kAgentUnknown:
      return "agent_unknown";
  }
  return "unknown";
}

std::string_view NameOf(AuditRepair repair) {
  switch (repair) {
    case AuditRepair::kNone:
      return "";
    case AuditRepair::kReattach:
      return "reattach";
    case AuditRepair::kDetach:
      return "detach";
    case AuditRepair::kResendDesired:
      return "resend_desired";
    case AuditRepair::kTakeAssignment:
      return "take_assignment";
    case AuditRepair::kEndAssignment:
      return "end_assignment";
  }
  return "";
}

std::vector<AuditDifference> Audit(const AuditInput& input, const AuditPolicy& policy,
                                   absl::Time now) {
  return Comparison(input, policy, now).Run();
}

void AuditMemory::Remember(std::vector<AuditDifference>& differences, absl::Time now, bool whole) {
  std::map<Identity, absl::Time> seen;
  for (AuditDifference& difference : differences) {
    Identity identity{difference.kind, difference.node, difference.address};
    const auto before = first_seen_.find(identity);
    difference.first_seen = before == first_seen_.end() ? now : before->second;
    seen.emplace(std::move(identity), difference.first_seen);
  }
  if (whole) {
    first_seen_ = std::move(seen);
  } else {
    first_seen_.merge(seen);
  }
}

}  // namespace spoke::ipam
