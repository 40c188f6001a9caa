// Whether others' rules at the hook forward let pods' packets pass.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "lib/node_checks/checks.h"

namespace spoke::node_checks {
namespace {

using nft::ChainGist;
using nft::Fate;
using nft::RuleGist;

constexpr int kMaxJumps = 16;  // As deep as the kernel lets chains lead.

bool IsOurs(const ChainGist& chain) { return chain.family == "inet" && chain.table == "spoke"; }

// kube-proxy's own, which drop what must not be forwarded anywhere.
bool IsKubeProxys(const ChainGist& chain) {
  return chain.table == "kube-proxy" || chain.name.rfind("KUBE-", 0) == 0;
}

// Whether a rule about device `device` can be about a pod's link; "docker*" is a beginning.
bool CanBeOurs(std::string_view device) {
  const std::string_view ours = kPodLinkPrefix;
  if (!device.empty() && device.back() == '*') {
    device.remove_suffix(1);
    return device.substr(0, ours.size()) == ours.substr(0, device.size());
  }
  return device.substr(0, ours.size()) == ours;
}

// A rule with two devices is about packets between them: both a pod's and the NIC's.
bool IsAboutPods(const RuleGist& rule) {
  return rule.devices.empty() || std::any_of(rule.devices.begin(), rule.devices.end(), CanBeOurs);
}

// What can be said about a chain and those it leads to.
struct Judgement {
  Fate end = Fate::kNone;   // Of a packet that no rule knows: kAccept, kDrop, or it goes on.
  bool may_accept = false;  // A rule may let a pod's new packets pass.
  const ChainGist* dropper = nullptr;  // Has a rule that drops under conditions.
};

class Walk {
 public:
  explicit Walk(const std::vector<ChainGist>& chains) : chains_(chains) {}

  // Each chain once, however many rules lead to it; a loop, which only a dump that was taken while
  // rules changed can have, ends. NOLINTNEXTLINE(misc-no-recursion): not deeper than kMaxJumps.
  Judgement Judge(const ChainGist& chain, int jumps) {
    if (jumps > kMaxJumps) return {};
    const auto [known, is_new] = known_.try_emplace(&chain);
    if (!is_new) return known->second;
    const Judgement judgement = JudgeAnew(chain, jumps);
    known_[&chain] = judgement;
    return judgement;
  }

 private:
  // NOLINTNEXTLINE(misc-no-recursion): not deeper than kMaxJumps.
  Judgement JudgeAnew(const ChainGist& chain, int jumps) {
    Judgement judgement;
    for (const RuleGist& rule : chain.rules) {
      if (!IsAboutPods(rule)) continue;
      const Judgement of_rule = JudgeRule(chain, rule, jumps);
      judgement.may_accept |= of_rule.may_accept;
      if (judgement.dropper == nullptr) judgement.dropper = of_rule.dropper;
      if (rule.conditional || of_rule.end == Fate::kNone) continue;
      judgement.end = of_rule.end;
      break;
    }
    // Who returns, or comes to the end, meets the policy of a chain at a hook.
    if (judgement.end == Fate::kReturn) judgement.end = Fate::kNone;
    if (judgement.end == Fate::kNone && chain.at_forward) {
      judgement.end = chain.drops ? Fate::kDrop : Fate::kAccept;
    }
    return judgement;
  }

  // `end`: of the packets that the rule is about.
  // NOLINTNEXTLINE(misc-no-recursion): not deeper than kMaxJumps.
  Judgement JudgeRule(const ChainGist& chain, const RuleGist& rule, int jumps) {
    Judgement judgement;
    switch (rule.fate) {
      case Fate::kNone:
        break;
      case Fate::kAccept:
        judgement.end = Fate::kAccept;
        judgement.may_accept = !rule.on_state;
        break;
      case Fate::kDrop:
      case Fate::kReject:
        judgement.end = Fate::kDrop;
        if (rule.conditional && !rule.on_state && !IsKubeProxys(chain)) judgement.dropper = &chain;
        break;
      case Fate::kReturn:
        judgement.end = Fate::kReturn;
        break;
      case Fate::kMap:
        judgement.may_accept = !rule.on_state;
        break;
      case Fate::kJump:
      case Fate::kGoto:
        if (const ChainGist* target = Find(chain, rule.target)) {
          judgement = Judge(*target, jumps + 1);
          judgement.may_accept = judgement.may_accept && !rule.on_state;
          if (rule.on_state) judgement.dropper = nullptr;
          // What a chain that is gone to does not decide, the policy does.
          if (rule.fate == Fate::kGoto && judgement.end == Fate::kNone && chain.at_forward) {
            judgement.end = chain.drops ? Fate::kDrop : Fate::kAccept;
          }
        }
        break;
    }
    return judgement;
  }

  const ChainGist* Find(const ChainGist& from, const std::string& name) const {
    const auto found = std::find_if(chains_.begin(), chains_.end(), [&](const ChainGist& chain) {
      return chain.family == from.family && chain.table == from.table && chain.name == name;
    });
    return found == chains_.end() ? nullptr : &*found;
  }

  const std::vector<ChainGist>& chains_;
  std::map<const ChainGist*, Judgement> known_;
};

std::string TitleOf(const ChainGist& chain) {
  return fmt::format("{} {} {}", chain.family, chain.table, chain.name);
}

// iptables' tables are best changed with iptables: nft's words would not survive its restore.
std::string LetPodsPass(const ChainGist& chain) {
  const bool of_iptables =
      chain.name == "FORWARD" && (chain.family == "ip" || chain.family == "ip6");
  if (of_iptables) {
    const std::string_view program = chain.family == "ip6" ? "ip6tables" : "iptables";
    const bool legacy = chain.table.find("legacy") != std::string::npos;
    const std::string name = fmt::format("{}{}", program, legacy ? "-legacy" : "");
    return fmt::format("{0} -I FORWARD -i {1}+ -j ACCEPT; {0} -I FORWARD -o {1}+ -j ACCEPT", name,
                       kPodLinkPrefix);
  }
  return fmt::format(
      "nft insert rule {0} iifname '\"{1}*\"' accept; nft insert rule {0} oifname '\"{1}*\"' "
      "accept; and the same in the configuration of the program that owns the table",
      TitleOf(chain), kPodLinkPrefix);
}

void AddDropping(const ChainGist& chain, const Judgement& judgement, Findings& findings) {
  const std::string how = chain.drops ? "has policy drop" : "ends with a rule that drops";
  findings.Add({.severity = judgement.may_accept ? Severity::kWarning : Severity::kBlocking,
                .object = TitleOf(chain),
                .what = judgement.may_accept ? how + "; some rule may let pods' packets pass before"
                                             : how + ", and no rule before lets pods' packets pass",
                .why = "what pods exchange with the Internet, Services and, without the fast path, "
                       "with each other is dropped",
                .remedy = LetPodsPass(chain)});
}

}  // namespace

void CheckForwardRules(const NodeFacts& facts, Findings& findings) {
  const bool has_v6 = facts.nic && facts.nic->has_v6;
  Walk walk(facts.chains);
  std::set<const ChainGist*> named;
  for (const ChainGist& chain : facts.chains) {
    if (!chain.at_forward || IsOurs(chain) || (chain.family == "ip6" && !has_v6)) continue;
    const Judgement judgement = walk.Judge(chain, 0);
    if (judgement.end == Fate::kDrop) {
      AddDropping(chain, judgement, findings);
    } else if (judgement.dropper != nullptr && named.insert(judgement.dropper).second) {
      findings.Add({.severity = Severity::kWarning,
                    .object = TitleOf(*judgement.dropper),
                    .what = "has rules that drop some of what is forwarded",
                    .why = "whether pods' packets are among it is for you to see",
                    .remedy = fmt::format("nft list chain {}", TitleOf(*judgement.dropper))});
    }
  }
  if (!facts.firewall_status.ok()) findings.AddUnknown("forward", facts.firewall_status);
}

}  // namespace spoke::node_checks
