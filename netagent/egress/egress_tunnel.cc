#include "netagent/egress/egress_tunnel.h"

#include <string>

#include "netagent/claims.h"
#include "netagent/egress/egress_chains.h"
#include "netagent/egress/egress_sets.h"

namespace spoke::netagent {
namespace {

using nft::MetaKey;
using nft::Register;
using rules::All;
using rules::Expressions;

constexpr char kNotTrackedIn[] = "egress_untracked_in";
constexpr char kNotTrackedOut[] = "egress_untracked_out";
constexpr int32_t kRawPriority = -300;
// The chain before kube-proxy (-100) translates destinations.
constexpr char kProbe[] = "egress_probe";
constexpr int32_t kProbePriority = -110;
constexpr char kProbed[] = "egress_probed";
constexpr int32_t kProbedPriority = 90;
constexpr char kArrived[] = "egress_arrived";
constexpr int32_t kArrivedPriority = 300;  // The priority is behind the translation of sources.

constexpr uint8_t kTcp = 6;
constexpr uint8_t kUdp = 17;
constexpr Register kAddress = 4;
constexpr ip::Family kFamilies[] = {ip::Family::kV4, ip::Family::kV6};

Expressions Inside(const char* set, ip::Family family, bool is) {
  return {nft::LookUp{.set = set + rules::Suffix(family), .from = kAddress, .inverted = !is}};
}

// Matches the packets outside, which the tunnel is made of: to a gateway's address.
Expressions IsTunnelled(uint16_t port, ip::Family family) {
  return All({rules::IsFamily(family), rules::DestinationPortIs(kUdp, port),
              rules::LoadDestination(family, kAddress), Inside(kEgressGateways, family, true)});
}

class Writer {
 public:
  explicit Writer(const EgressPlan& plan) : plan_(plan), port_(*plan.tunnel_port) {}

  std::vector<nft::Rule> Rules() {
    AddUntracked();
    if (plan_.settings.is_gateway) {
      for (const ip::Family family : kFamilies) AddProbe(family);
    }
    AddFromTunnel();
    AddArrived();
    return std::move(rules_);
  }

 private:
  void Add(const char* chain, Expressions expressions) {
    rules_.push_back({chain, std::move(expressions)});
  }

  // Keeps the tunnel's packets untracked. The source port of what the tunnel is made of is a hash
  // of the flow inside: tracked, it would take as many entries again as there are flows.
  void AddUntracked() {
    for (const ip::Family family : kFamilies) {
      Add(kNotTrackedIn,
          All({rules::IsPodLink(MetaKey::kInterfaceName, false),
               rules::InterfaceIs(MetaKey::kInterfaceName, claims::kTunnelLink, false),
               IsTunnelled(port_, family),
               {nft::NoTrack{}}}));
      Add(kNotTrackedOut, All({IsTunnelled(port_, family), {nft::NoTrack{}}}));
    }
  }

  void AddProbe(ip::Family family) {
    const ip::Address& probe = family == ip::Family::kV4 ? claims::kProbeV4 : claims::kProbeV6;
    for (const ip::Address& gateway : plan_.tunnel_gateways) {
      if (gateway.family() != family || !plan_.settings.own.contains(gateway)) continue;
      Add(kProbe, All({rules::InterfaceIs(MetaKey::kInterfaceName, claims::kTunnelLink),
                       rules::IsFamily(family),
                       rules::LoadDestination(family, kAddress),
                       {nft::Compare{nft::Comparison::kEqual, kAddress, nft::NetworkOrder(probe)}},
                       rules::DestinationPortIs(kTcp, plan_.settings.gateway_health_port),
                       rules::SetFlowMark(claims::kFlowOfProbe),
                       {nft::LoadImmediate{kAddress, nft::NetworkOrder(gateway)},
                        nft::TranslateDestination{.address = kAddress,
                                                  .ipv6 = family == ip::Family::kV6}}}));
      Add(kProbed, All({rules::IsFamily(family),
                        rules::FlowMarkIs(claims::kFlowOfProbe),
                        {nft::LoadImmediate{kAddress, nft::NetworkOrder(gateway)},
                         nft::TranslateSource{.address_from = kAddress,
                                              .address_to = kAddress,
                                              .ipv6 = family == ip::Family::kV6}}}));
      return;  // The rule needs one address of a family only.
    }
  }

  void AddFromTunnel() {
    if (plan_.settings.is_gateway) {
      Add(kFromTunnel, All({rules::FlowMarkIs(claims::kFlowOfProbe), rules::Accept()}));
      for (const ip::Family family : kFamilies) {
        Add(kFromTunnel,
            All({rules::IsFamily(family), rules::LoadSource(family, kAddress),
                 Inside(kEgressCluster, family, true), rules::LoadDestination(family, kAddress),
                 Inside(kEgressInside, family, false), rules::Accept()}));
      }
    }
    Add(kFromTunnel, rules::Drop(kTunnelCounter));
  }

  // Adds the rules for what goes to this node itself: the packets of the tunnel, and questions that
  // came out of it.
  void AddArrived() {
    Add(kArrived, All({rules::FlowMarkIs(claims::kFlowOfProbe),
                       rules::CtStatusHas(rules::kSourceNat, false), rules::Drop(kTunnelCounter)}));
    if (plan_.settings.is_gateway) {
      for (const ip::Family family : kFamilies) {
        Add(kArrived, All({rules::IsFamily(family), rules::DestinationPortIs(kUdp, port_),
                           rules::IsPodLink(MetaKey::kInterfaceName, false),
                           rules::LoadSource(family, kAddress),
                           Inside(kEgressCluster, family, true), rules::Accept()}));
      }
    }
    Add(kArrived, All({rules::DestinationPortIs(kUdp, port_), rules::Drop(kTunnelCounter)}));
  }

  const EgressPlan& plan_;
  const uint16_t port_;
  std::vector<nft::Rule> rules_;
};

}  // namespace

std::vector<nft::Chain> TunnelChains() {
  using nft::BaseHook;
  using nft::ChainType;
  using nft::Hook;
  return {
      {kNotTrackedIn, BaseHook{ChainType::kFilter, Hook::kPrerouting, kRawPriority}},
      {kNotTrackedOut, BaseHook{ChainType::kFilter, Hook::kOutput, kRawPriority}},
      {kProbe, BaseHook{ChainType::kNat, Hook::kPrerouting, kProbePriority}},
      {kProbed, BaseHook{ChainType::kNat, Hook::kInput, kProbedPriority}},
      {kArrived, BaseHook{ChainType::kFilter, Hook::kInput, kArrivedPriority}},
      {kFromTunnel},
  };
}

std::vector<std::pair<std::string, std::vector<nft::Element>>> TunnelElements(
    const EgressPlan& plan) {
  if (!plan.tunnel_port) return {};
  std::vector<nft::Element> marks;
  for (const auto& [mark, endpoint] : plan.marks) {
    if (endpoint.is_tunnel()) marks.push_back({.key = nft::HostOrder(mark)});
  }
  std::vector<std::pair<std::string, std::vector<nft::Element>>> all;
  all.emplace_back(kEgressTunnelled, std::move(marks));
  for (const ip::Family family : kFamilies) {
    std::vector<nft::Element> gateways;
    for (const ip::Address& gateway : plan.tunnel_gateways) {
      if (gateway.family() == family) gateways.push_back({.key = nft::NetworkOrder(gateway)});
    }
    all.emplace_back(kEgressGateways + rules::Suffix(family), std::move(gateways));
  }
  return all;
}

std::vector<nft::Rule> TunnelRules(const EgressPlan& plan) {
  return plan.tunnel_port ? Writer(plan).Rules() : std::vector<nft::Rule>();
}

std::vector<Expressions> TunnelArrivals(const EgressPlan& plan) {
  if (!plan.tunnel_port) return {};
  return {All({rules::InterfaceIs(MetaKey::kInterfaceName, claims::kTunnelLink),
               rules::Goto(kFromTunnel)})};
}

std::vector<Expressions> TunnelGuard(const EgressPlan& plan) {
  if (!plan.tunnel_port) return {};
  constexpr Register kMark = 8;
  std::vector<Expressions> all;
  // Packets outside must not go into the tunnel: the kernel looks up the way to the gateway by the
  // mark of the packet inside, which would lead the packet outside into the tunnel as well.
  all.push_back(All({rules::InterfaceIs(MetaKey::kOutInterfaceName, claims::kTunnelLink),
                     rules::SetPacketMark(0)}));
  for (const ip::Family family : kFamilies) {
    // The rule or the route that leads into the tunnel is gone.
    all.push_back(
        All({rules::IsPodLink(MetaKey::kInterfaceName, true),
             rules::IsPodLink(MetaKey::kOutInterfaceName, false),
             rules::InterfaceIs(MetaKey::kOutInterfaceName, claims::kTunnelLink, false),
             rules::IsFamily(family),
             {nft::LoadCt{nft::CtKey::kMark, kMark},
              nft::MaskBits{kMark, kMark, nft::HostOrder(claims::kFlowMarkMask), nft::HostOrder(0)},
              nft::LookUp{.set = kEgressTunnelled, .from = kMark}},
             rules::Drop(kLeakCounter)}));
    all.push_back(All({rules::IsPodLink(MetaKey::kInterfaceName, true),
                       rules::IsPodLink(MetaKey::kOutInterfaceName, false),
                       rules::InterfaceIs(MetaKey::kOutInterfaceName, claims::kTunnelLink, false),
                       IsTunnelled(*plan.tunnel_port, family), rules::Drop(kTunnelCounter)}));
  }
  return all;
}

}  // namespace spoke::netagent
