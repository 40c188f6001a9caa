#include "netagent/traffic/share_rules.h"

#include <utility>

#include "fmt/core.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/nftables/rule_parts.h"
#include "netagent/traffic/traffic_plan.h"

namespace spoke::netagent {
namespace {

using nft::MetaKey;
using nft::Register;
using rules::All;
using rules::Expressions;

// The sets of links, by index. The targets also have an address and a protocol in their keys, and
// "4" or "6" behind the name.
constexpr char kOverSet[] = "pod_shares_over";
constexpr char kTargetSet[] = "pod_shares_targets";
constexpr char kRateSet[] = "pod_shares_new";
// The time after which a rate's element goes: after less than ten seconds it has forgotten
// everything.
constexpr absl::Duration kRateTimeout = absl::Minutes(1);

// The priority behind the translation of destinations (-100: kube-proxy), which says where a
// connection leads, and before the decision about egress (-90), which a dropped packet need not
// have.
constexpr int32_t kPriority = -95;
constexpr ip::Family kFamilies[] = {ip::Family::kV4, ip::Family::kV6};

nft::LoadMeta LoadLink() { return {MetaKey::kInterface, 0}; }

// Loads the link, the destination and the protocol, from the first register on.
Expressions LoadTarget(ip::Family family) {
  const auto behind = static_cast<Register>(1 + rules::Width(family));
  return All({{LoadLink()},
              rules::LoadDestination(family, 1),
              {nft::LoadMeta{MetaKey::kTransport, behind}}});
}

nft::Element ElementOf(const OverShare::WithTarget& key) {
  return {.key = nft::Join({nft::HostOrder(key.link), nft::NetworkOrder(key.address),
                            nft::Bytes{key.protocol}})};
}

}  // namespace

std::vector<nft::Set> ShareSets() {
  using nft::Field;
  std::vector<nft::Set> sets = {
      {.name = kOverSet, .key = {Field::kInterfaceIndex}, .size = kMaxPodAddresses},
      {.name = kRateSet,
       .key = {Field::kInterfaceIndex},
       .dynamic = true,
       .size = kMaxPodAddresses,
       .timeout = kRateTimeout}};
  for (const ip::Family family : kFamilies) {
    sets.push_back({.name = kTargetSet + rules::Suffix(family),
                    .key = {Field::kInterfaceIndex, rules::AddressField(family), Field::kProtocol},
                    .size = kMaxPodAddresses * kMaxTargetsOver});
  }
  return sets;
}

nft::Chain ShareBaseChain() {
  return {.name = kShareChain,
          .base = nft::BaseHook{.hook = nft::Hook::kPrerouting, .priority = kPriority}};
}

std::vector<nft::Rule> ShareRules(const ConnectionShares& shares) {
  std::vector<nft::Rule> all;
  const auto add = [&](const char* what, Expressions expressions) {
    all.push_back({.chain = kShareChain,
                   .expressions = std::move(expressions),
                   .comment = fmt::format("spoke {}/{} {}", kShareChain, all.size() + 1, what)});
  };
  add("known", All({rules::CtStatusHas(rules::kConfirmed), rules::Accept()}));
  add("others", All({rules::IsPodLink(MetaKey::kInterfaceName, false), rules::Accept()}));
  add("untracked", All({rules::IsUntracked(), rules::Accept()}));
  add("connections",
      All({{LoadLink(), nft::LookUp{.set = kOverSet, .from = 0}}, rules::Drop(kOverConnections)}));
  for (const ip::Family family : kFamilies) {
    add("ports", All({rules::IsFamily(family),
                      LoadTarget(family),
                      {nft::LookUp{.set = kTargetSet + rules::Suffix(family), .from = 0}},
                      rules::Drop(kOverPorts)}));
  }
  nft::PutInSet rate{.set = kRateSet, .from = 0, .refresh = true};
  rate.each.emplace_back(
      nft::LimitRate{.per_second = shares.per_second(), .burst = shares.burst(), .over = true});
  add("rate", All({{LoadLink(), std::move(rate)}, rules::Drop(kOverRate)}));
  return all;
}

void AppendFreshRates(nft::Transaction& transaction) {
  transaction.Add(kSpokeTable, nft::FlushSet{kRateSet});
}

void AppendOver(const OverShare& over, nft::Transaction& transaction) {
  const auto put = [&](const std::string& set, std::vector<nft::Element> elements) {
    transaction.Add(kSpokeTable, nft::FlushSet{set});
    if (elements.empty()) return;
    transaction.Add(kSpokeTable, nft::AddElements{set, std::move(elements)});
  };
  std::vector<nft::Element> links;
  for (const uint32_t link : over.links) links.push_back({.key = nft::HostOrder(link)});
  put(kOverSet, std::move(links));
  for (const ip::Family family : kFamilies) {
    std::vector<nft::Element> targets;
    for (const OverShare::WithTarget& key : over.with_target) {
      if (key.address.family() == family) targets.push_back(ElementOf(key));
    }
    put(kTargetSet + rules::Suffix(family), std::move(targets));
  }
}

}  // namespace spoke::netagent
