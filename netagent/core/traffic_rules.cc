#include "netagent/core/traffic_rules.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "fmt/core.h"
#include "netagent/core/address_ranges.h"
#include "netagent/core/claims.h"
#include "netagent/core/packet_match.h"

namespace spoke::netagent {
namespace {

using nft::Comparison;
using nft::VerdictKind;

// More would cost those packets that match none of them.
constexpr size_t kMaxHotBlocks = 3;
// Behind mangle's -150 are nat's -100 and filter's 0: what comes here has its destination
// translated already, and its source not yet.
constexpr int32_t kPriority = -150;
constexpr uint8_t kIpv6 = 10;  // AF_INET6
constexpr nft::Register kScratch = 12;

constexpr ip::Family kFamilies[] = {ip::Family::kV4, ip::Family::kV6};

// "spk" is compared in line; a whole name of 16 bytes would not be.
Expressions IsPodLink(nft::MetaKey key) {
  return {nft::LoadMeta{key, 0},
          nft::Compare{Comparison::kEqual, 0,
                       nft::Bytes(claims::kLinkPrefix.begin(), claims::kLinkPrefix.end())}};
}

// The class of the address at `offset`, in `to`.
Expressions LoadClass(const PacketLayout& layout, uint8_t offset, nft::Register to) {
  return {LoadAddress(layout, offset, kScratch),
          nft::LookUp{.set = layout.Named("class"), .from = kScratch, .to = to}};
}

nft::Expression CompareClass(Comparison comparison, nft::Register from, ClassNumber number) {
  return nft::Compare{comparison, from, nft::HostOrder(number)};
}

nft::Expression Count(const std::string& set) {
  return nft::PutInSet{.set = set, .from = 0, .each = {nft::CountHere{}}};
}

// The device and the pod's address on this side of it, as a key of pods and cluster_sent.
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
                      .expressions = Concat(parts),
                      .comment = fmt::format("spoke {}/{} {}", chain_, ++number_, what)});
  }

 private:
  std::vector<nft::Rule>& rules_;
  std::string chain_;
  int number_ = 0;
};

// What was sent to a translated address must not take the fast path back. Only the direction that
// began the flow is looked at: in it, and with this hook behind the translation, the packet has the
// two addresses that the wire sees.
void AddTranslationMark(RuleList& list) {
  const uint32_t bit = claims::kTranslatedMark;
  list.Add("mark-translated",
           {{nft::LoadCt{nft::CtKey::kDirection, 0}, nft::Compare{Comparison::kEqual, 0, {0}},
             nft::LoadCt{nft::CtKey::kStatus, 0},
             nft::MaskBits{0, 0, nft::HostOrder(32 /* IPS_DST_NAT */), nft::HostOrder(0)},
             nft::Compare{Comparison::kNotEqual, 0, nft::HostOrder(0)},
             nft::LoadMeta{nft::MetaKey::kMark, 0},
             nft::MaskBits{0, 0, nft::HostOrder(~bit), nft::HostOrder(bit)},
             nft::SetMeta{nft::MetaKey::kMark, 0}}});
}

// What a pod sends.
void AddFrom(const PacketLayout& layout, const ClassMap& classes, bool mark, RuleList& list) {
  const Expressions leave = {Jump(VerdictKind::kGoto, layout.Named("out"))};
  const Expressions key = LoadPodKey(layout, nft::MetaKey::kInterface, layout.source);
  const uint8_t far = layout.destination;
  const nft::Register number = layout.registers;  // Behind the address.
  list.Begin(layout.Named("from"));
  if (mark) AddTranslationMark(list);
  for (const ip::Prefix& block : HotBlocks(classes, layout.family)) {
    list.Add("cluster", {MatchBlock(far, block, kScratch),
                         key,
                         {nft::LookUp{.set = layout.Named("cluster_sent"), .from = 0}},
                         leave});
  }
  if (layout.family == ip::Family::kV6) {
    // Neighbour and multicast-listener messages, which are nobody's traffic.
    for (const char* own : {"fe80::/10", "::/128"}) {
      list.Add("link-local",
               {MatchBlock(layout.source, ip::Prefix::Parse(own).value(), kScratch), {Accept()}});
    }
  }
  list.Add("unknown-source",
           {key,
            {nft::LookUp{.set = layout.Named("pods"), .from = 0, .inverted = true},
             nft::CountIn{"drop/unknown-source"}, Drop()}});
  list.Add("others", {LoadClass(layout, far, number),
                      {CompareClass(Comparison::kNotEqual, number, kPeerSpoke),
                       LoadAddress(layout, layout.source, 0), Count(layout.Named("sent"))},
                      leave});
  list.Add("peer-spoke", {LoadClass(layout, far, number),
                          {CompareClass(Comparison::kEqual, number, kPeerSpoke),
                           nft::CountIn{"drop/peer-spoke-sent"}, Drop()}});
  list.Add("uncounted", {{nft::CountIn{"uncounted"}}, leave});
  list.Begin(layout.Named("out"));
  list.Add("to-pod", {IsPodLink(nft::MetaKey::kOutInterfaceName),
                      {Jump(VerdictKind::kGoto, layout.Named("to"))}});
}

// What a pod receives.
void AddTo(const PacketLayout& layout, const ClassMap& classes, bool mark, RuleList& list) {
  const uint8_t far = layout.source;
  const nft::Register number = layout.registers;
  const Expressions load_own = {LoadAddress(layout, layout.destination, 0)};
  list.Begin(layout.Named("to"));
  if (mark) AddTranslationMark(list);
  for (const ip::Prefix& block : HotBlocks(classes, layout.family)) {
    list.Add("cluster",
             {MatchBlock(far, block, kScratch),
              load_own,
              {nft::LookUp{.set = layout.Named("cluster_received"), .from = 0}, Accept()}});
  }
  // The node's own reports to routers and listeners.
  const char* multicast = layout.family == ip::Family::kV4 ? "224.0.0.0/4" : "ff00::/8";
  list.Add(
      "multicast",
      {MatchBlock(layout.destination, ip::Prefix::Parse(multicast).value(), kScratch), {Accept()}});
  list.Add("unknown-destination",
           {LoadPodKey(layout, nft::MetaKey::kOutInterface, layout.destination),
            {nft::LookUp{.set = layout.Named("pods"), .from = 0, .inverted = true},
             nft::CountIn{"drop/unknown-destination"}, Drop()}});
  list.Add("others", {LoadClass(layout, far, number),
                      {CompareClass(Comparison::kNotEqual, number, kPeerSpoke)},
                      load_own,
                      {Count(layout.Named("received")), Accept()}});
  list.Add("peer-spoke", {LoadClass(layout, far, number),
                          {CompareClass(Comparison::kEqual, number, kPeerSpoke),
                           nft::CountIn{"drop/peer-spoke-received"}, Drop()}});
  list.Add("uncounted", {{nft::CountIn{"uncounted"}}});
}

// What passes through without being a pod's.
void AddPassing(const PacketLayout& layout, RuleList& list) {
  list.Add("from-pod", {IsPodLink(nft::MetaKey::kInterfaceName),
                        {Jump(VerdictKind::kGoto, layout.Named("from"))}});
  list.Add("to-pod", {IsPodLink(nft::MetaKey::kOutInterfaceName),
                      {Jump(VerdictKind::kGoto, layout.Named("to"))}});
  list.Add("peer-spoke-source", {LoadClass(layout, layout.source, 0),
                                 {CompareClass(Comparison::kEqual, 0, kPeerSpoke),
                                  nft::CountIn{"drop/peer-spoke-received"}, Drop()}});
  list.Add("peer-spoke-destination", {LoadClass(layout, layout.destination, 0),
                                      {CompareClass(Comparison::kEqual, 0, kPeerSpoke),
                                       nft::CountIn{"drop/peer-spoke-sent"}, Drop()}});
}

// What the node itself receives (`in`) or sends.
void AddHost(const PacketLayout& layout, bool in, RuleList& list) {
  const Expressions pods = {Jump(VerdictKind::kGoto, layout.Named(in ? "in_pods" : "out"))};
  const Expressions number = LoadClass(layout, in ? layout.source : layout.destination, 0);
  list.Add("host", {number,
                    {CompareClass(Comparison::kNotEqual, 0, kPeerSpoke),
                     Count(in ? "host_in" : "host_out")},
                    pods});
  list.Add("peer-spoke",
           {number,
            {CompareClass(Comparison::kEqual, 0, kPeerSpoke),
             nft::CountIn{in ? "drop/peer-spoke-received" : "drop/peer-spoke-sent"}, Drop()}});
  list.Add("uncounted", {{nft::CountIn{"uncounted"}}, pods});
}

}  // namespace

std::vector<nft::Chain> TrafficChains() {
  std::vector<nft::Chain> chains;
  for (const ip::Family family : kFamilies) {
    for (const char* name : {"to", "out", "from", "in_pods"}) {
      chains.push_back({.name = LayoutOf(family).Named(name)});
    }
  }
  for (const char* name : {"forward6", "input6", "output6"}) chains.push_back({.name = name});
  for (const auto& [name, hook] :
       {std::pair{"forward", nft::Hook::kForward}, std::pair{"input", nft::Hook::kInput},
        std::pair{"output", nft::Hook::kOutput}}) {
    chains.push_back({.name = name, .base = nft::BaseHook{.hook = hook, .priority = kPriority}});
  }
  return chains;
}

std::vector<nft::Rule> TrafficRules(const ClassMap& classes, bool mark_translated) {
  std::vector<nft::Rule> rules;
  RuleList list(rules);
  for (const ip::Family family : kFamilies) {
    const PacketLayout& layout = LayoutOf(family);
    AddFrom(layout, classes, mark_translated, list);
    AddTo(layout, classes, mark_translated, list);
    list.Begin(layout.Named("in_pods"));
    list.Add("from-pod", {IsPodLink(nft::MetaKey::kInterfaceName),
                          {Jump(VerdictKind::kGoto, layout.Named("from"))}});
  }
  const Expressions is_ipv6 = {nft::LoadMeta{nft::MetaKey::kFamily, 0},
                               nft::Compare{Comparison::kEqual, 0, {kIpv6}}};
  for (const char* base : {"forward", "input", "output"}) {
    for (const ip::Family family : {ip::Family::kV6, ip::Family::kV4}) {
      const PacketLayout& layout = LayoutOf(family);
      list.Begin(family == ip::Family::kV4 ? base : layout.Named(base));
      if (family == ip::Family::kV4) {
        list.Add("ipv6",
                 {is_ipv6, {Jump(VerdictKind::kGoto, LayoutOf(ip::Family::kV6).Named(base))}});
      }
      if (base == std::string_view("forward")) {
        AddPassing(layout, list);
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
