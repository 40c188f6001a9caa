#include "lib/nft/forward_rules.h"

#include <algorithm>
#include <array>
#include <map>

#include "fmt/core.h"

namespace spoke::nft {
namespace {

constexpr int kMaxJumps = 16;  // The number of jumps that the kernel allows.

bool IsOurs(const ChainGist& chain) { return chain.family == "inet" && chain.table == "spoke"; }

// The chains of kube-proxy with iptables, of the kubelet, and of kube-proxy in its mode ipvs
// (kubernetes/pkg/proxy/iptables, pkg/proxy/ipvs, pkg/kubelet), by their whole names: others'
// chains begin with KUBE- as well, for example kube-router's KUBE-POD-FW-....
constexpr std::array<std::string_view, 13> kKubernetesChains = {
    "KUBE-EXTERNAL-SERVICES", "KUBE-FIREWALL",       "KUBE-FORWARD",   "KUBE-IPVS-FILTER",
    "KUBE-IPVS-OUT-FILTER",   "KUBE-KUBELET-CANARY", "KUBE-NODE-PORT", "KUBE-NODEPORTS",
    "KUBE-PROXY-CANARY",      "KUBE-PROXY-FIREWALL", "KUBE-SERVICES",  "KUBE-SOURCE-RANGE-FIREWALL",
    "KUBE-LOAD-BALANCER"};

bool IsKubernetes(const ChainGist& chain) {
  return chain.table == "kube-proxy" ||
         std::find(kKubernetesChains.begin(), kKubernetesChains.end(), chain.name) !=
             kKubernetesChains.end();
}

// Returns whether a rule about device `device` can be about one that begins with `ours`; "docker*"
// is a beginning.
bool CanBeOurs(std::string_view device, std::string_view ours) {
  if (!device.empty() && device.back() == '*') {
    device.remove_suffix(1);
    return device.substr(0, ours.size()) == ours.substr(0, device.size());
  }
  return device.substr(0, ours.size()) == ours;
}

// A rule with two devices is about packets between them: both a pod's and the NIC's.
bool IsAbout(const RuleGist& rule, std::string_view ours) {
  return rule.devices.empty() ||
         std::any_of(rule.devices.begin(), rule.devices.end(),
                     [&](const std::string& device) { return CanBeOurs(device, ours); });
}

// The judgement about a chain and those it leads to.
struct Judgement {
  // The fate of a packet that no rule knows: kAccept, kDrop, or it goes on.
  Fate end = Fate::kNone;
  bool may_accept = false;             // Whether a rule may let a pod's new packets pass.
  const ChainGist* dropper = nullptr;  // The chain with a rule that drops under conditions.
};

class Walk {
 public:
  Walk(const std::vector<ChainGist>& chains, std::string_view ours)
      : chains_(chains), ours_(ours) {}

  // Judges each chain once, however many rules lead to it; a loop, which only a dump that was taken
  // while rules changed can have, ends.
  // NOLINTNEXTLINE(misc-no-recursion): not deeper than kMaxJumps.
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
      if (!IsAbout(rule, ours_)) continue;
      const Judgement of_rule = JudgeRule(chain, rule, jumps);
      judgement.may_accept |= of_rule.may_accept;
      if (judgement.dropper == nullptr) judgement.dropper = of_rule.dropper;
      if (rule.conditional || of_rule.end == Fate::kNone) continue;
      judgement.end = of_rule.end;
      break;
    }
    // A packet that returns, or comes to the end, meets the policy of a chain at a hook.
    if (judgement.end == Fate::kReturn) judgement.end = Fate::kNone;
    if (judgement.end == Fate::kNone && chain.at_forward) {
      judgement.end = chain.drops ? Fate::kDrop : Fate::kAccept;
    }
    return judgement;
  }

  // Takes a rule into account; `end` is for the packets that the rule is about.
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
        if (rule.conditional && !rule.on_state && !IsKubernetes(chain)) judgement.dropper = &chain;
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
          // What a chain reached by goto does not decide, the policy does.
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
  const std::string_view ours_;
  std::map<const ChainGist*, Judgement> known_;
};

}  // namespace

std::vector<ForwardJudgement> JudgeForwardRules(const std::vector<ChainGist>& chains,
                                                std::string_view device_prefix) {
  std::vector<ForwardJudgement> judgements;
  Walk walk(chains, device_prefix);
  for (const ChainGist& chain : chains) {
    if (!chain.at_forward || IsOurs(chain)) continue;
    const Judgement judgement = walk.Judge(chain, 0);
    judgements.push_back({.chain = &chain,
                          .drops_all = judgement.end == Fate::kDrop,
                          .may_accept = judgement.may_accept,
                          .dropper = judgement.dropper});
  }
  return judgements;
}

std::string TitleOf(const ChainGist& chain) {
  return fmt::format("{} {} {}", chain.family, chain.table, chain.name);
}

}  // namespace spoke::nft
