#include "netagent/traffic/traffic_rules.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

#include "fmt/core.h"
#include "netagent/claims.h"
#include "netagent/classes/address_ranges.h"
#include "netagent/classes/egress_cells.h"
#include "netagent/nftables/rule_parts.h"
#include "netagent/traffic/share_rules.h"

namespace spoke::netagent {
namespace {

using nft::Comparison;
using nft::VerdictKind;
using rules::All;
using rules::Expressions;
using rules::LayoutOf;
using rules::LoadAddress;
using rules::MatchBlock;
using rules::PacketLayout;

// The most blocks that are compared; more would cost packets that match none of them.
constexpr size_t kMaxHotBlocks = 3;
// The priority of mangle: nat's -100 and filter's 0 come later, so what passes here has its
// destination translated already, and its source not yet.
constexpr int32_t kPriority = -150;
constexpr uint8_t kIpv4 = 2;   // AF_INET
constexpr uint8_t kIpv6 = 10;  // AF_INET6
constexpr nft::Register kScratch = 12;

constexpr ip::Family kFamilies[] = {ip::Family::kV4, ip::Family::kV6};

nft::Expression Jump(VerdictKind kind, const std::string& chain) {
  return nft::Verdict{.kind = kind, .chain = chain};
}
nft::Expression Accept() { return nft::Verdict{.kind = VerdictKind::kAccept}; }
nft::Expression Drop() { return nft::Verdict{.kind = VerdictKind::kDrop}; }

// Matches pods' links. "spk" is compared in line; a whole name of 16 bytes would not be.
Expressions IsPodLink(nft::MetaKey key) {
  return {nft::LoadMeta{key, 0},
          nft::Compare{Comparison::kEqual, 0,
                       nft::Bytes(claims::kLinkPrefix.begin(), claims::kLinkPrefix.end())}};
}

// The chain behind the translation of what the node sends, whose priority is -100.
constexpr const char* kTranslatedOutput = "output_translated";
constexpr int32_t kBehindTranslation = -90;

constexpr FarEnd kFarEnds[] = {FarEnd::kDestination, FarEnd::kSource};

const char* NameOf(FarEnd end) { return end == FarEnd::kDestination ? "destination" : "source"; }

// Returns the name of the chain that finds the class.
std::string EntryOf(FarEnd end, const PacketLayout& layout) {
  return layout.Named(end == FarEnd::kDestination ? "by_destination" : "by_source");
}

// Returns the classes that have a chain of their own.
std::set<ClassNumber> ClassesIn(const ClassMap& classes, ip::Family family) {
  std::set<ClassNumber> numbers;
  for (const ClassRange& range : classes.ranges(family)) numbers.insert(range.number);
  numbers.erase(kInternet);
  return numbers;
}

Expressions IsPeer(const PacketLayout& layout, uint8_t offset) {
  return {LoadAddress(layout, offset, kScratch),
          nft::LookUp{.set = PeerSetOf(layout.family), .from = kScratch}};
}

// Matches everything, or all but established flows where these go on. Nothing becomes established
// with a peer spoke, since both directions of what is new end here.
Expressions UnlessKept(bool keeps_established) {
  if (!keeps_established) return {};
  return {
      nft::LoadCt{nft::CtKey::kState, 0},
      nft::MaskBits{0, 0, nft::HostOrder(nft::kCtEstablished | nft::kCtRelated), nft::HostOrder(0)},
      nft::Compare{Comparison::kEqual, 0, nft::HostOrder(0)}};
}

nft::Expression Return() { return nft::Verdict{.kind = VerdictKind::kReturn}; }

nft::Expression Count(const std::string& set) {
  return nft::PutInSet{.set = set, .from = 0, .each = {nft::CountHere{}}};
}

// Loads the device and the pod's address on this side of it, as a key of pods and cluster_sent.
Expressions LoadPodKey(const PacketLayout& layout, nft::MetaKey device, uint8_t offset) {
  return {nft::LoadMeta{device, 0}, LoadAddress(layout, offset, 1)};
}

class RuleList {
 public:
  explicit RuleList(std::vector<nft::Rule>& rules) : rules_(rules) {}
  void Begin(std::string chain) {
    chain_ = std::move(chain);
    number_ = 0;
  }
  void Add(std::string_view what, std::initializer_list<Expressions> parts) {
    rules_.push_back({.chain = chain_,
                      .expressions = All(parts),
                      .comment = fmt::format("spoke {}/{} {}", chain_, ++number_, what)});
  }

 private:
  std::vector<nft::Rule>& rules_;
  std::string chain_;
  int number_ = 0;
};

// Marks packets sent to a translated address, which must not take the fast path back. Only the
// direction that began the flow is looked at: in it, and with this hook behind the translation, the
// packet has the two addresses that the wire sees.
void AddTranslationMark(RuleList& list) {
  const uint32_t bit = claims::kTranslatedMark;
  list.Add("mark-translated",
           {{nft::LoadCt{nft::CtKey::kDirection, 0}, nft::Compare{Comparison::kEqual, 0, {0}},
             nft::LoadCt{nft::CtKey::kStatus, 0},
             nft::MaskBits{0, 0, nft::HostOrder(rules::kDestinationNat), nft::HostOrder(0)},
             nft::Compare{Comparison::kNotEqual, 0, nft::HostOrder(0)},
             nft::LoadMeta{nft::MetaKey::kMark, 0},
             nft::MaskBits{0, 0, nft::HostOrder(~bit), nft::HostOrder(bit)},
             nft::SetMeta{nft::MetaKey::kMark, 0}}});
}

// Drops router solicitations, advertisements and redirects (RFC 4861, section 4): no pod is a
// router, and a node that listens would route by what it says.
void AddRouterMessages(RuleList& list) {
  for (const uint8_t type : {uint8_t{133}, uint8_t{134}, uint8_t{137}}) {
    list.Add("router-message", {{nft::LoadMeta{nft::MetaKey::kTransport, 0},
                                 nft::Compare{Comparison::kEqual, 0, {58 /* ICMPv6 */}},
                                 nft::LoadPayload{nft::Header::kTransport, 0, 1, 0},
                                 nft::Compare{Comparison::kEqual, 0, {type}},
                                 nft::CountIn{"drop/router-message"}, Drop()}});
  }
}

constexpr const char* kPlatformChain = "platform4";

// Handles what a pod sends to the platform's services, with what they hand out: the node's
// identity, keys, and the secrets of its extensions. Whoever jumped here goes on where it is
// allowed.
void AddPlatform(PlatformAccess access, RuleList& list) {
  if (access == PlatformAccess::kOpen) return;
  const PacketLayout& layout = LayoutOf(ip::Family::kV4);
  list.Begin(kPlatformChain);
  for (const uint8_t protocol : {uint8_t{6 /* TCP */}, uint8_t{17 /* UDP */}}) {
    list.Add("dns",
             {MatchBlock(layout.destination, ip::Prefix::Host(policy::kWireserver), kScratch),
              {nft::LoadMeta{nft::MetaKey::kTransport, 0},
               nft::Compare{Comparison::kEqual, 0, {protocol}},
               nft::LoadPayload{nft::Header::kTransport, 2, 2, 0},
               nft::Compare{Comparison::kEqual, 0, {0, 53}}, Return()}});
  }
  list.Add("allowed", {{LoadAddress(layout, layout.source, 0),
                        nft::LookUp{.set = kPlatformPods, .from = 0}, Return()}});
  list.Add("denied", {{LoadAddress(layout, layout.source, 0),
                       nft::LoadImmediate{layout.registers, nft::HostOrder(kPlatformDenied)},
                       Count(layout.Named("sent"))}});
  if (access != PlatformAccess::kClosed) return;
  list.Add("denied", {{nft::CountIn{"drop/platform"}, Drop()}});
}

// Counts what the node itself sends to a Service whose endpoint is a pod here: at the hook output's
// usual place it still goes to the Service, by another device; what the pod receives is told by the
// address that it was translated to. Only the class cluster is looked at, which the node's address
// is in.
void AddTranslatedOutput(const ClassMap& classes, RuleList& list) {
  list.Begin(kTranslatedOutput);
  for (const ip::Family family : kFamilies) {
    const PacketLayout& layout = LayoutOf(family);
    for (const ip::Prefix& block : HotBlocks(classes, family)) {
      list.Add("cluster",
               {{nft::LoadMeta{nft::MetaKey::kFamily, 0},
                 nft::Compare{Comparison::kEqual, 0, {family == ip::Family::kV4 ? kIpv4 : kIpv6}},
                 nft::LoadCt{nft::CtKey::kDirection, 0}, nft::Compare{Comparison::kEqual, 0, {0}},
                 nft::LoadCt{nft::CtKey::kStatus, 0},
                 nft::MaskBits{0, 0, nft::HostOrder(rules::kDestinationNat), nft::HostOrder(0)},
                 nft::Compare{Comparison::kNotEqual, 0, nft::HostOrder(0)}},
                MatchBlock(layout.source, block, kScratch),
                {LoadAddress(layout, layout.destination, 0),
                 nft::LookUp{.set = layout.Named("cluster_received"), .from = 0}, Accept()}});
    }
  }
}

// Handles what a pod sends.
void AddFrom(const PacketLayout& layout, const ClassMap& classes,
             const TrafficPlanSettings& settings, RuleList& list) {
  const bool mark = settings.mark_translated;
  const Expressions leave = {Jump(VerdictKind::kGoto, layout.Named("out"))};
  const Expressions key = LoadPodKey(layout, nft::MetaKey::kInterface, layout.source);
  const uint8_t far = layout.destination;
  list.Begin(layout.Named("from"));
  if (mark) AddTranslationMark(list);
  for (const ip::Prefix& block : HotBlocks(classes, layout.family)) {
    list.Add("cluster", {MatchBlock(far, block, kScratch),
                         key,
                         {nft::LookUp{.set = layout.Named("cluster_sent"), .from = 0}},
                         leave});
  }
  if (layout.family == ip::Family::kV6) {
    AddRouterMessages(list);
    // These are neighbour and multicast-listener messages, which are nobody's traffic.
    for (const char* own : {"fe80::/10", "::/128"}) {
      list.Add("link-local",
               {MatchBlock(layout.source, ip::Prefix::Parse(own).value(), kScratch), {Accept()}});
    }
  }
  list.Add("unknown-source",
           {key,
            {nft::LookUp{.set = layout.Named("pods"), .from = 0, .inverted = true},
             nft::CountIn{"drop/unknown-source"}, Drop()}});
  if (layout.family == ip::Family::kV4 && settings.platform != PlatformAccess::kOpen) {
    for (const ip::Address& service : policy::kPlatformServices) {
      list.Add("platform", {MatchBlock(far, ip::Prefix::Host(service), kScratch),
                            {Jump(VerdictKind::kJump, kPlatformChain)}});
    }
  }
  list.Add("others", {{Jump(VerdictKind::kJump, EntryOf(FarEnd::kDestination, layout))}});
  list.Add("counted", {leave});
  list.Begin(layout.Named("out"));
  list.Add("to-pod", {IsPodLink(nft::MetaKey::kOutInterfaceName),
                      {Jump(VerdictKind::kGoto, layout.Named("to"))}});
}

// Handles what a pod receives.
void AddTo(const PacketLayout& layout, const ClassMap& classes, bool mark, RuleList& list) {
  const uint8_t far = layout.source;
  const Expressions load_own = {LoadAddress(layout, layout.destination, 0)};
  list.Begin(layout.Named("to"));
  if (mark) AddTranslationMark(list);
  for (const ip::Prefix& block : HotBlocks(classes, layout.family)) {
    list.Add("cluster",
             {MatchBlock(far, block, kScratch),
              load_own,
              {nft::LookUp{.set = layout.Named("cluster_received"), .from = 0}, Accept()}});
  }
  // These are the node's own reports to routers and listeners.
  const char* multicast = layout.family == ip::Family::kV4 ? "224.0.0.0/4" : "ff00::/8";
  list.Add(
      "multicast",
      {MatchBlock(layout.destination, ip::Prefix::Parse(multicast).value(), kScratch), {Accept()}});
  list.Add("unknown-destination",
           {LoadPodKey(layout, nft::MetaKey::kOutInterface, layout.destination),
            {nft::LookUp{.set = layout.Named("pods"), .from = 0, .inverted = true},
             nft::CountIn{"drop/unknown-destination"}, Drop()}});
  list.Add("others", {{Jump(VerdictKind::kGoto, EntryOf(FarEnd::kSource, layout))}});
}

// Counts for a pod, or for the node itself where no pod's link is. Whoever jumped here goes on.
void AddCounts(const PacketLayout& layout, FarEnd end, ClassNumber number, RuleList& list) {
  const bool sent = end == FarEnd::kDestination;
  const nft::Expression count_missed = nft::CountIn{"uncounted"};
  const Expressions is_pods =
      IsPodLink(sent ? nft::MetaKey::kInterfaceName : nft::MetaKey::kOutInterfaceName);
  const nft::Register behind = layout.registers;
  list.Add("pod", {is_pods,
                   {LoadAddress(layout, sent ? layout.source : layout.destination, 0),
                    nft::LoadImmediate{behind, nft::HostOrder(number)},
                    Count(layout.Named(sent ? "sent" : "received")), Return()}});
  list.Add("uncounted", {is_pods, {count_missed, Return()}});
  list.Add("node", {{nft::LoadImmediate{0, nft::HostOrder(number)},
                     Count(sent ? "host_out" : "host_in"), Return()}});
  list.Add("uncounted", {{count_missed}});
}

// Jumps to the chain of the far end's class. A map's value must not be looked up in a set: nft up
// to 1.0.6 cannot list a rule that does. So each class has a chain, which names its number.
void AddByClass(const PacketLayout& layout, FarEnd end, const ClassMap& classes, bool keep_peers,
                RuleList& list) {
  const bool sent = end == FarEnd::kDestination;
  list.Begin(EntryOf(end, layout));
  list.Add(
      "class",
      {{LoadAddress(layout, sent ? layout.destination : layout.source, kScratch),
        nft::LookUp{.set = ClassMapOf(end, layout.family), .from = kScratch, .verdict = true}}});
  AddCounts(layout, end, kInternet, list);
  for (const ClassNumber number : ClassesIn(classes, layout.family)) {
    list.Begin(ClassChainOf(end, layout.family, ClassText(classes, number)));
    if (number == kPeerSpoke) {
      if (sent) {
        list.Add("peer-spoke-probe",
                 {{nft::LoadMeta{nft::MetaKey::kMark, 0},
                   nft::Compare{Comparison::kEqual, 0, nft::HostOrder(claims::kReachProbeMark)},
                   Drop()}});
      }
      list.Add(
          "peer-spoke",
          {UnlessKept(keep_peers),
           {nft::CountIn{sent ? "drop/peer-spoke-sent" : "drop/peer-spoke-received"}, Drop()}});
    }
    if (number != kPeerSpoke || keep_peers) AddCounts(layout, end, number, list);
  }
}

// Handles most packets first: those between a pod here and the largest block of the cluster, by the
// uplink. Nothing that a later rule would say of them is left out. A look-up that hits says whose
// end this is: what is sent has its device and its source in the key, and what is received comes by
// no pod's link and is routed to the pod's, or nowhere (claims::kUnreachableMetric). To compare a
// device's index costs less than half of what its name does; what is not of that block pays for it
// in vain, so there is one block only.
void AddHot(const PacketLayout& layout, const ClassMap& classes, uint32_t uplink, RuleList& list) {
  const std::vector<ip::Prefix> blocks = HotBlocks(classes, layout.family);
  if (blocks.empty()) return;
  const auto is_uplink = [&](nft::MetaKey device) -> Expressions {
    return {nft::LoadMeta{device, 0}, nft::Compare{Comparison::kEqual, 0, nft::HostOrder(uplink)}};
  };
  Expressions is_family;
  if (layout.family == ip::Family::kV4) {  // For IPv6 the chain has no other.
    is_family = {nft::LoadMeta{nft::MetaKey::kFamily, 0},
                 nft::Compare{Comparison::kEqual, 0, {kIpv4}}};
  }
  list.Add("cluster-received",
           {is_uplink(nft::MetaKey::kInterface),
            is_family,
            MatchBlock(layout.source, blocks.front(), kScratch),
            {LoadAddress(layout, layout.destination, 0),
             nft::LookUp{.set = layout.Named("cluster_received"), .from = 0}, Accept()}});
  list.Add("cluster-sent",
           {is_uplink(nft::MetaKey::kOutInterface),
            is_family,
            MatchBlock(layout.destination, blocks.front(), kScratch),
            LoadPodKey(layout, nft::MetaKey::kInterface, layout.source),
            {nft::LookUp{.set = layout.Named("cluster_sent"), .from = 0}, Accept()}});
}

// Handles what passes through without being a pod's.
void AddPassing(const PacketLayout& layout, bool keep_peers, RuleList& list) {
  list.Add("from-pod", {IsPodLink(nft::MetaKey::kInterfaceName),
                        {Jump(VerdictKind::kGoto, layout.Named("from"))}});
  list.Add("to-pod", {IsPodLink(nft::MetaKey::kOutInterfaceName),
                      {Jump(VerdictKind::kGoto, layout.Named("to"))}});
  list.Add("peer-spoke-source", {IsPeer(layout, layout.source),
                                 UnlessKept(keep_peers),
                                 {nft::CountIn{"drop/peer-spoke-received"}, Drop()}});
  list.Add("peer-spoke-destination", {IsPeer(layout, layout.destination),
                                      UnlessKept(keep_peers),
                                      {nft::CountIn{"drop/peer-spoke-sent"}, Drop()}});
}

// Counts what the node itself receives (`in`) or sends.
void AddHost(const PacketLayout& layout, bool in, RuleList& list) {
  const FarEnd end = in ? FarEnd::kSource : FarEnd::kDestination;
  list.Add("host", {{Jump(VerdictKind::kJump, EntryOf(end, layout))}});
  list.Add("pods", {{Jump(VerdictKind::kGoto, layout.Named(in ? "in_pods" : "out"))}});
}

}  // namespace

std::string ClassMapOf(FarEnd end, ip::Family family) {
  return LayoutOf(family).Named(NameOf(end));
}

std::string ClassChainOf(FarEnd end, ip::Family family, const std::string& class_text) {
  return fmt::format("{}_{}", ClassMapOf(end, family), class_text);
}

bool IsClassChain(const std::string& chain) {
  for (const ip::Family family : kFamilies) {
    for (const FarEnd end : kFarEnds) {
      if (chain.rfind(ClassMapOf(end, family) + "_", 0) == 0) return true;
    }
  }
  return false;
}

bool TellsOfAPolicy(const std::string& chain) {
  const auto ends_with = [&](ClassNumber number) {
    return chain.ends_with("_" + ClassMap().NameOf(number));
  };
  return IsClassChain(chain) && !ends_with(kLoopback) && !ends_with(kPlatform);
}

std::string PeerSetOf(ip::Family family) { return LayoutOf(family).Named("peer"); }

std::string ClassText(const ClassMap& classes, ClassNumber number) {
  return number < kFirstGroup ? classes.NameOf(number) : fmt::format("{}", number);
}

std::vector<nft::Chain> TrafficChains(const ClassMap& classes,
                                      const TrafficPlanSettings& settings) {
  std::vector<nft::Chain> chains;
  for (const ip::Family family : kFamilies) {
    for (const FarEnd end : kFarEnds) {
      for (const ClassNumber number : ClassesIn(classes, family)) {
        chains.push_back({.name = ClassChainOf(end, family, ClassText(classes, number))});
      }
      chains.push_back({.name = EntryOf(end, LayoutOf(family))});
    }
    for (const char* name : {"to", "out", "from", "in_pods"}) {
      chains.push_back({.name = LayoutOf(family).Named(name)});
    }
  }
  for (const char* name : {kPlatformChain, "forward6", "input6", "output6"}) {
    chains.push_back({.name = name});
  }
  for (const auto& [name, hook] :
       {std::pair{"forward", nft::Hook::kForward}, std::pair{"input", nft::Hook::kInput},
        std::pair{"output", nft::Hook::kOutput}}) {
    chains.push_back({.name = name, .base = nft::BaseHook{.hook = hook, .priority = kPriority}});
  }
  chains.push_back(
      {.name = kTranslatedOutput,
       .base = nft::BaseHook{.hook = nft::Hook::kOutput, .priority = kBehindTranslation}});
  if (settings.shares) chains.push_back(ShareBaseChain());
  return chains;
}

std::vector<nft::Rule> TrafficRules(const ClassMap& classes, const TrafficPlanSettings& settings) {
  std::vector<nft::Rule> rules;
  RuleList list(rules);
  for (const ip::Family family : kFamilies) {
    const PacketLayout& layout = LayoutOf(family);
    for (const FarEnd end : kFarEnds) {
      AddByClass(layout, end, classes, settings.keep_peer_spokes, list);
    }
    AddFrom(layout, classes, settings, list);
    AddTo(layout, classes, settings.mark_translated, list);
    list.Begin(layout.Named("in_pods"));
    list.Add("from-pod", {IsPodLink(nft::MetaKey::kInterfaceName),
                          {Jump(VerdictKind::kGoto, layout.Named("from"))}});
  }
  AddPlatform(settings.platform, list);
  if (settings.shares) {
    for (nft::Rule& rule : ShareRules(*settings.shares)) rules.push_back(std::move(rule));
  }
  // Connections are tracked here anyway.
  if (settings.mark_translated) AddTranslatedOutput(classes, list);
  const Expressions is_ipv6 = {nft::LoadMeta{nft::MetaKey::kFamily, 0},
                               nft::Compare{Comparison::kEqual, 0, {kIpv6}}};
  for (const char* base : {"forward", "input", "output"}) {
    for (const ip::Family family : {ip::Family::kV6, ip::Family::kV4}) {
      const PacketLayout& layout = LayoutOf(family);
      const bool passing = base == std::string_view("forward");
      list.Begin(family == ip::Family::kV4 ? base : layout.Named(base));
      // The short way must not go past the mark of what was translated.
      if (passing && settings.uplink != 0 && !settings.mark_translated) {
        AddHot(layout, classes, settings.uplink, list);
      }
      if (family == ip::Family::kV4) {
        list.Add("ipv6",
                 {is_ipv6, {Jump(VerdictKind::kGoto, LayoutOf(ip::Family::kV6).Named(base))}});
      }
      if (passing) {
        AddPassing(layout, settings.keep_peer_spokes, list);
      } else {
        AddHost(layout, base == std::string_view("input"), list);
      }
    }
  }
  return rules;
}

std::vector<ip::Prefix> HotBlocks(const ClassMap& classes, ip::Family family) {
  std::vector<ip::Prefix> blocks;
  for (const ClassRange& range : classes.ranges(family)) {
    if (range.number != kCluster) continue;
    const std::vector<ip::Prefix> of_range = BlocksOf(range.first, range.last);
    blocks.insert(blocks.end(), of_range.begin(), of_range.end());
  }
  std::stable_sort(blocks.begin(), blocks.end(), [](const ip::Prefix& a, const ip::Prefix& b) {
    return a.length() < b.length();
  });
  if (blocks.size() > kMaxHotBlocks) blocks.resize(kMaxHotBlocks);
  return blocks;
}

}  // namespace spoke::netagent
