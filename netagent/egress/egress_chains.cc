#include "netagent/egress/egress_chains.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "netagent/claims.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/egress/egress_limits.h"
#include "netagent/egress/egress_sets.h"
#include "netagent/egress/egress_tunnel.h"
#include "netagent/nftables/rule_parts.h"

namespace spoke::netagent {
namespace {

using nft::MetaKey;
using nft::Register;
using rules::All;
using rules::Expressions;

// The chain has "4" or "6" behind its name, for pods of that family.
constexpr char kDecide[] = "egress_decide";
constexpr char kAsItIs[] = "egress_as_is";
constexpr char kMasquerade[] = "egress_masquerade";
constexpr char kCut[] = "egress_cut";

// The base chain of decisions. These fall behind translation of destinations (-100: kube-proxy), so
// that a Service's endpoint is what a policy sees, and before the route is looked up.
constexpr char kFirst[] = "egress_first";
constexpr int32_t kFirstPriority = -90;
// The base chain of translation, before kube-proxy's, which is at 100: who comes first translates.
constexpr char kTranslate[] = "egress_translate";
constexpr int32_t kTranslatePriority = 90;
// The base chain behind all translation, which sees what the wire will see.
constexpr char kGuard[] = "egress_guard";
constexpr int32_t kGuardPriority = 300;

constexpr Register kScratch = 0;
constexpr ip::Family kFamilies[] = {ip::Family::kV4, ip::Family::kV6};

std::string PolicyChain(uint32_t policy) { return fmt::format("egress_policy_{}", policy); }
std::string CellChain(uint32_t cell) { return fmt::format("egress_cell_{}", cell); }
std::string GatewayChain(uint32_t mark) { return fmt::format("egress_to_{}", mark); }

// A flow's profile and cell stand together in its first packet's priority while it is decided
// about: a map's value must not be looked up in a set, since nft up to 1.0.6 cannot list a rule
// that does. Zero is no cell in particular.
constexpr uint32_t kCellBits = 0xFFFF;
constexpr uint32_t kProfileShift = 16;

uint32_t CellKey(uint32_t cell) { return cell + 1; }

bool HasLimits(const policy::EgressLimits& limits) { return limits != policy::EgressLimits(); }

// Returns the chain of a mode. Where a mode needs nothing of the policy's own, all have one chain
// together.
std::string ChainOf(policy::EgressMode mode) {
  return mode == policy::EgressMode::kMasquerade ? kMasquerade : kAsItIs;
}

bool HasChain(const ResolvedEgress& policy) {
  return HasLimits(policy.limits) || policy.mode == policy::EgressMode::kGateway ||
         policy.mode == policy::EgressMode::kDrop;
}

std::string ChainOf(const EgressPlan& plan, EgressAction action) {
  if (action == kLeaveAlone) return kAsItIs;
  if (action == kPlatformAction) return kMasquerade;
  const uint32_t policy = action - kFirstPolicy;
  const ResolvedEgress& resolved = plan.resolved.policies[policy];
  return HasChain(resolved) ? PolicyChain(policy) : ChainOf(resolved.mode);
}

// Returns the cells with exceptions; in all others each profile does its usual.
std::set<uint32_t> ExceptedCells(const EgressPlan& plan) {
  std::set<uint32_t> cells;
  for (const ProfileActions& actions : plan.actions) {
    for (const auto& [cell, action] : actions.exceptions) cells.insert(cell);
  }
  return cells;
}

std::set<std::string> ChainNames(const EgressPlan& plan) {
  std::set<std::string> names = {kFirst, kTranslate, kGuard, kDecide, kAsItIs, kMasquerade, kCut};
  for (const ip::Family family : kFamilies) names.insert(kDecide + rules::Suffix(family));
  for (const uint32_t cell : ExceptedCells(plan)) names.insert(CellChain(cell));
  for (const auto& [mark, address] : plan.marks) names.insert(GatewayChain(mark));
  for (uint32_t i = 0; i < plan.resolved.policies.size(); ++i) {
    if (HasChain(plan.resolved.policies[i])) names.insert(PolicyChain(i));
  }
  if (!plan.tunnel_port) return names;
  for (const nft::Chain& chain : TunnelChains()) names.insert(chain.name);
  return names;
}

class Writer {
 public:
  Writer(const EgressPlan& plan, nft::Transaction& transaction)
      : plan_(plan), excepted_(ExceptedCells(plan)), transaction_(transaction) {}

  void Write(const std::set<std::string>& old) {
    const std::set<std::string> names = ChainNames(plan_);
    AddCounters();
    for (const nft::Set& set : EgressSets()) Add(nft::AddSet{set});
    std::set<std::string> bases;
    for (const nft::Chain& chain : BaseChains()) {
      if (!names.contains(chain.name)) continue;
      bases.insert(chain.name);
      Add(nft::AddChain{chain});
    }
    for (const std::string& name : names) {
      if (!bases.contains(name)) Add(nft::AddChain{{name}});
    }
    std::set<std::string> all = names;
    all.insert(old.begin(), old.end());
    for (const std::string& name : all) Add(nft::FlushChain{name});
    for (const nft::Set& set : EgressSets()) {
      if (!set.dynamic) Add(nft::FlushSet{set.name});
    }
    for (const std::string& name : old) {
      if (!names.contains(name)) Add(nft::DeleteChain{name});
    }
    AddElements();
    AddRules();
  }

  // Returns all base chains; those of the tunnel are not among the plan's names where it has none.
  static std::vector<nft::Chain> BaseChains() {
    std::vector<nft::Chain> chains = {
        {kFirst, nft::BaseHook{nft::ChainType::kFilter, nft::Hook::kPrerouting, kFirstPriority}},
        {kTranslate,
         nft::BaseHook{nft::ChainType::kNat, nft::Hook::kPostrouting, kTranslatePriority}},
        {kGuard, nft::BaseHook{nft::ChainType::kFilter, nft::Hook::kPostrouting, kGuardPriority}},
    };
    for (nft::Chain& chain : TunnelChains()) {
      if (chain.base) chains.push_back(std::move(chain));
    }
    return chains;
  }

 private:
  void Add(nft::Change change) { transaction_.Add(kSpokeTable, std::move(change)); }

  void AddRule(const std::string& chain, Expressions expressions, std::string comment = "") {
    constexpr size_t kMaxComment = 127;
    comment.resize(std::min(comment.size(), kMaxComment));
    Add(nft::AddRule{{chain, std::move(expressions), std::move(comment)}});
  }

  void AddCounters() {
    Add(nft::AddCounter{kLeakCounter, {}});
    if (plan_.tunnel_port) Add(nft::AddCounter{kTunnelCounter, {}});
    Add(nft::AddCounter{kCutCounter, {}});
    for (const ResolvedEgress& policy : plan_.resolved.policies) {
      const bool falls = policy.mode == policy::EgressMode::kGateway &&
                         policy.fallback == policy::EgressMode::kDrop;
      if (policy.mode == policy::EgressMode::kDrop || falls) {
        Add(nft::AddCounter{DropCounterOf(policy.name), {}});
      }
      if (HasLimits(policy.limits)) Add(nft::AddCounter{LimitCounterOf(policy.name), {}});
    }
  }

  void AddElements(const std::string& set, std::vector<nft::Element> elements) {
    if (!elements.empty()) Add(nft::AddElements{set, std::move(elements)});
  }

  void AddElements() {
    for (const ip::Family family : kFamilies) {
      std::vector<nft::Element> cells;
      for (const CellRange& range : family == ip::Family::kV4 ? plan_.cells.v4 : plan_.cells.v6) {
        if (!excepted_.contains(range.cell)) continue;
        cells.push_back(rules::RangeElement(range.first, range.last));
        cells.back().verdict = nft::Verdict{nft::VerdictKind::kJump, CellChain(range.cell)};
      }
      AddElements(kEgressCells + rules::Suffix(family), std::move(cells));
    }
    std::vector<nft::Element> usual;
    std::vector<nft::Element> exceptions;
    for (uint32_t profile = 0; profile < plan_.actions.size(); ++profile) {
      const ProfileActions& actions = plan_.actions[profile];
      const uint32_t key = ProfileKey(profile);
      usual.push_back({.key = nft::HostOrder(key), .verdict = To(actions.usual)});
      for (const auto& [cell, action] : actions.exceptions) {
        exceptions.push_back({.key = nft::HostOrder(key | CellKey(cell)), .verdict = To(action)});
      }
    }
    AddElements(kEgressUsual, std::move(usual));
    AddElements(kEgressActions, std::move(exceptions));
    AddElements(kEgressSlots, SlotElements());
    std::vector<nft::Element> kept;
    for (const uint32_t mark :
         {claims::kFlowAsItIs, claims::kFlowMasqueraded, claims::kFlowOfNatHost}) {
      kept.push_back({.key = nft::HostOrder(mark), .verdict = nft::Verdict{}});
    }
    kept.push_back({.key = nft::HostOrder(claims::kFlowCut), .verdict = To(kCut)});
    for (const auto& [mark, address] : plan_.marks) {
      kept.push_back({.key = nft::HostOrder(mark), .verdict = To(GatewayChain(mark))});
    }
    AddElements(kEgressKept, std::move(kept));
    for (auto& [set, elements] : TunnelElements(plan_)) AddElements(set, std::move(elements));
    AddGatewayElements();
  }

  void AddGatewayElements() {
    if (!plan_.settings.is_gateway) return;
    for (const ip::Family family : kFamilies) {
      const auto ranges = [&](const std::vector<ClassRange>& all) {
        std::vector<nft::Element> elements;
        for (const ClassRange& range : all) {
          if (range.first.family() != family) continue;
          elements.push_back(rules::RangeElement(range.first, range.last));
        }
        return elements;
      };
      AddElements(kEgressCluster + rules::Suffix(family), ranges(plan_.cluster));
      AddElements(kEgressInside + rules::Suffix(family), ranges(plan_.inside));
      std::vector<nft::Element> own;
      for (const ip::Address& address : plan_.settings.gateway_addresses) {
        if (address.family() != family) continue;
        own.push_back({.key = nft::HostOrder(static_cast<uint32_t>(own.size())),
                       .value = nft::NetworkOrder(address)});
      }
      AddElements(kEgressOwn + rules::Suffix(family), std::move(own));
    }
  }

  std::vector<nft::Element> SlotElements() const {
    std::vector<nft::Element> elements;
    for (uint32_t i = 0; i < plan_.resolved.policies.size(); ++i) {
      for (const ip::Family family : kFamilies) {
        const auto open = plan_.Open(plan_.resolved.policies[i], family);
        if (open.empty()) continue;
        const std::vector<GatewayEndpoint> slots = EgressPlan::Slots(open);
        for (uint32_t slot = 0; slot < slots.size(); ++slot) {
          const auto mark = plan_.mark_of.find(slots[slot]);
          // This node is the gateway.
          const std::string chain =
              mark == plan_.mark_of.end() ? kMasquerade : GatewayChain(mark->second);
          elements.push_back(
              {.key = nft::Join({nft::HostOrder(SlotKey(i, family)), nft::HostOrder(slot)}),
               .verdict = To(chain)});
        }
      }
    }
    return elements;
  }

  static uint32_t SlotKey(uint32_t policy, ip::Family family) {
    return policy * 2 + (family == ip::Family::kV6 ? 1 : 0);
  }

  static nft::Verdict To(const std::string& chain) { return {nft::VerdictKind::kGoto, chain}; }
  nft::Verdict To(EgressAction action) const { return To(ChainOf(plan_, action)); }

  void AddRules() {
    AddFirst();
    AddDecide();
    AddRule(kAsItIs, All({rules::SetPriority(0, kScratch), rules::SetFlowMark(claims::kFlowAsItIs),
                          rules::Accept()}));
    AddRule(kCut, rules::Drop(kCutCounter));
    // The flow could not be translated, and would leave with the pod's address.
    AddRule(kMasquerade, All({rules::IsUntracked(), rules::Drop(kLeakCounter)}));
    AddRule(kMasquerade, All({rules::SetPriority(0, kScratch),
                              rules::SetFlowMark(claims::kFlowMasqueraded), rules::Accept()}));
    for (const auto& [mark, address] : plan_.marks) {
      const std::string chain = GatewayChain(mark);
      AddRule(chain, All({rules::IsUntracked(), rules::Drop(kLeakCounter)}), address.ToString());
      AddRule(chain, All({rules::SetFlowMark(mark), rules::SetPacketMark(mark), rules::Accept()}));
    }
    for (uint32_t i = 0; i < plan_.resolved.policies.size(); ++i) AddPolicy(i);
    AddTranslation();
    for (const ip::Family family : kFamilies) {
      AddRule(kGuard,
              All({rules::FlowMarkIs(claims::kFlowMasqueraded),
                   rules::IsPodLink(MetaKey::kOutInterfaceName, false), rules::IsFamily(family),
                   IsFromPod(family, 8, 0), rules::Drop(kLeakCounter)}));
    }
    for (nft::Rule& rule : TunnelRules(plan_)) AddRule(rule.chain, std::move(rule.expressions));
    for (Expressions& rule : TunnelGuard(plan_)) AddRule(kGuard, std::move(rule));
    AddGatewayGuard();
  }

  // Guards a gateway: what other nodes sent through this gateway and what it has not translated
  // would leave with a pod's address. The node's own packets come by no device.
  void AddGatewayGuard() {
    if (!plan_.settings.is_gateway) return;
    for (const ip::Family family : kFamilies) {
      const Expressions through =
          All({rules::InterfaceIs(MetaKey::kInterfaceName, "", false), ThroughGateway(family)});
      AddRule(kGuard, All({through, rules::IsUntracked(), rules::Drop(kLeakCounter)}));
      AddRule(kGuard,
              All({through, rules::IsReply(false), rules::CtStatusHas(rules::kSourceNat, false),
                   rules::Drop(kLeakCounter)}));
    }
  }

  // Matches what goes from other nodes' pods to the Internet.
  static Expressions ThroughGateway(ip::Family family) {
    constexpr Register kAddress = 4;
    const std::string suffix = rules::Suffix(family);
    return All({rules::IsFamily(family),
                rules::IsPodLink(MetaKey::kInterfaceName, false),
                rules::IsPodLink(MetaKey::kOutInterfaceName, false),
                rules::LoadSource(family, kAddress),
                {nft::LookUp{.set = kEgressCluster + suffix, .from = kAddress}},
                rules::LoadDestination(family, kAddress),
                {nft::LookUp{.set = kEgressInside + suffix, .from = kAddress, .inverted = true}}});
  }

  // Matches what pods send. A map's lookup has to put the value somewhere: the profile, in
  // `profile`.
  static Expressions IsFromPod(ip::Family family, Register scratch, Register profile) {
    return All({rules::LoadSource(family, scratch),
                {nft::LookUp{
                    .set = kEgressPods + rules::Suffix(family), .from = scratch, .to = profile}}});
  }

  void AddFirst() {
    // This holds for what comes back to a pod as well, since it would not come by a pod's link.
    if (plan_.Cuts()) {
      AddRule(kFirst, All({rules::FlowMarkIs(claims::kFlowCut), rules::Drop(kCutCounter)}));
    }
    for (Expressions& rule : TunnelArrivals(plan_)) AddRule(kFirst, std::move(rule));
    AddRule(kFirst, All({rules::IsPodLink(MetaKey::kInterfaceName, false), rules::Accept()}));
    AddRule(kFirst, All({rules::IsReply(), rules::Accept()}));
    constexpr Register kMark = 8;
    AddRule(kFirst,
            {nft::LoadCt{nft::CtKey::kMark, kMark},
             nft::MaskBits{kMark, kMark, nft::HostOrder(claims::kFlowMarkMask), nft::HostOrder(0)},
             nft::LookUp{.set = kEgressKept, .from = kMark, .verdict = true}});
    // The flow's gateway is forgotten: without it the flow would leave with the pod's address.
    AddRule(kFirst, All({rules::FlowMarkIsSet(), rules::Drop(kLeakCounter)}));
    // The flow began before there was any policy.
    AddRule(kFirst, All({rules::CtStatusHas(rules::kConfirmed), rules::Accept()}));
    AddRule(kFirst, rules::Goto(kDecide));
  }

  void AddDecide() {
    constexpr Register kProfile = 0;
    constexpr Register kAddress = 4;
    const nft::LoadMeta load_priority{MetaKey::kPriority, kScratch};
    for (const ip::Family family : kFamilies) {
      const std::string chain = kDecide + rules::Suffix(family);
      AddRule(kDecide, All({rules::IsFamily(family),
                            IsFromPod(family, kAddress, kProfile),
                            {nft::SetMeta{MetaKey::kPriority, kProfile}},
                            rules::Goto(chain)}));
      AddRule(chain, All({rules::LoadDestination(family, kAddress),
                          {nft::LookUp{.set = kEgressCells + rules::Suffix(family),
                                       .from = kAddress,
                                       .verdict = true}}}));
      AddRule(chain, {load_priority,
                      nft::LookUp{.set = kEgressActions, .from = kScratch, .verdict = true}});
      AddRule(chain,
              {load_priority,
               nft::MaskBits{kScratch, kScratch, nft::HostOrder(~kCellBits), nft::HostOrder(0)},
               nft::LookUp{.set = kEgressUsual, .from = kScratch, .verdict = true}});
    }
    for (const uint32_t cell : excepted_) {
      AddRule(CellChain(cell), {nft::LoadMeta{MetaKey::kPriority, kScratch},
                                nft::MaskBits{kScratch, kScratch, nft::HostOrder(~kCellBits),
                                              nft::HostOrder(CellKey(cell))},
                                nft::SetMeta{MetaKey::kPriority, kScratch}});
    }
  }

  void AddPolicy(uint32_t index) {
    const ResolvedEgress& policy = plan_.resolved.policies[index];
    if (!HasChain(policy)) return;
    const std::string chain = PolicyChain(index);
    for (Expressions& limit : LimitRules(policy, LimitCounterOf(policy.name))) {
      AddRule(chain, std::move(limit), policy.name);
    }
    policy::EgressMode mode = policy.mode;
    if (mode == policy::EgressMode::kGateway) {
      AddRule(chain, rules::SetPriority(0, kScratch), policy.name);
      for (const ip::Family family : kFamilies) {
        constexpr Register kSlot = 1;
        constexpr Register kPair = 4;
        const Register width = rules::Width(family);
        AddRule(chain,
                All({rules::IsFamily(family),
                     rules::LoadSource(family, kPair),
                     rules::LoadDestination(family, static_cast<Register>(kPair + width)),
                     rules::Number(SlotKey(index, family), 0),
                     {nft::HashOf{.from = kPair,
                                  .length = static_cast<uint8_t>(8 * width),
                                  .to = kSlot,
                                  .modulus = kGatewaySlots},
                      nft::LookUp{.set = kEgressSlots, .from = 0, .verdict = true}}}),
                policy.name);
      }
      mode = policy.fallback;
    }
    AddRule(chain,
            mode == policy::EgressMode::kDrop ? rules::Drop(DropCounterOf(policy.name))
                                              : rules::Goto(ChainOf(mode)),
            policy.name);
  }

  void AddTranslation() {
    AddRule(kTranslate, All({rules::IsPodLink(MetaKey::kOutInterfaceName, false),
                             rules::FlowMarkIs(claims::kFlowMasqueraded),
                             {nft::Masquerade{}}}));
    if (!plan_.settings.is_gateway) return;
    for (const ip::Family family : kFamilies) {
      uint32_t own = 0;
      for (const ip::Address& address : plan_.settings.gateway_addresses) {
        own += address.family() == family ? 1 : 0;
      }
      AddRule(kTranslate, All({ThroughGateway(family),
                               own == 0 ? Expressions{nft::Masquerade{}} : ToOwn(family, own)}));
    }
  }

  // Translates to one of the gateway's addresses; a pod keeps the one it has.
  static Expressions ToOwn(ip::Family family, uint32_t own) {
    constexpr Register kNumber = 0;
    constexpr Register kAddress = 4;
    return All(
        {rules::LoadSource(family, kAddress),
         {nft::HashOf{.from = kAddress,
                      .length = static_cast<uint8_t>(4 * rules::Width(family)),
                      .to = kNumber,
                      .modulus = own},
          nft::LookUp{.set = kEgressOwn + rules::Suffix(family), .from = kNumber, .to = kAddress},
          nft::TranslateSource{.address_from = kAddress,
                               .address_to = kAddress,
                               .ipv6 = family == ip::Family::kV6}}});
  }

  const EgressPlan& plan_;
  const std::set<uint32_t> excepted_;
  nft::Transaction& transaction_;
};

}  // namespace

uint32_t ProfileKey(uint32_t profile) { return (profile + 1) << kProfileShift; }

void AppendEgress(const EgressPlan& plan, const std::set<std::string>& old,
                  nft::Transaction& transaction) {
  Writer(plan, transaction).Write(old);
}

void AppendNoEgress(const std::set<std::string>& old, nft::Transaction& transaction) {
  const auto add = [&](nft::Change change) { transaction.Add(kSpokeTable, std::move(change)); };
  // Sets are added first, since what is not there cannot be deleted.
  for (const nft::Set& set : EgressSets()) add(nft::AddSet{set});
  std::set<std::string> chains = old;
  for (const nft::Chain& chain : Writer::BaseChains()) {
    add(nft::AddChain{chain});
    chains.insert(chain.name);
  }
  // What leads to what goes first: rules, then the elements of verdict maps.
  for (const std::string& name : chains) add(nft::FlushChain{name});
  for (const nft::Set& set : EgressSets()) add(nft::FlushSet{set.name});
  for (const std::string& name : chains) add(nft::DeleteChain{name});
  for (const nft::Set& set : EgressSets()) add(nft::DeleteSet{set.name});
}

}  // namespace spoke::netagent
