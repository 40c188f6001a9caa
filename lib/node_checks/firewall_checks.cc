// Checks whether others' rules at the hook forward let pods' packets pass.
#include <set>
#include <string_view>

#include "fmt/core.h"
#include "lib/nft/forward_rules.h"
#include "lib/node_checks/checks.h"

namespace spoke::node_checks {
namespace {

using nft::ChainGist;
using nft::ForwardJudgement;

// Returns the remedy. iptables' tables are best changed with iptables: nft's words would not
// survive its restore.
std::string LetPodsPass(const ChainGist& chain) {
  const bool of_iptables =
      chain.name == "FORWARD" && (chain.family == "ip" || chain.family == "ip6");
  if (of_iptables) {
    const std::string_view program = chain.family == "ip6" ? "ip6tables" : "iptables";
    const bool legacy = chain.table.find("legacy") != std::string::npos;
    const std::string name = fmt::format("{}{}", program, legacy ? "-legacy" : "");
    // The rule goes behind those that drop some traffic on purpose, as long as none drops all.
    return fmt::format("{0} {2} FORWARD -i {1}+ -j ACCEPT; {0} {2} FORWARD -o {1}+ -j ACCEPT", name,
                       kPodLinkPrefix, chain.drops ? "-A" : "-I");
  }
  return fmt::format(
      "nft {2} rule {0} iifname '\"{1}*\"' accept; nft {2} rule {0} oifname '\"{1}*\"' "
      "accept; and the same in the configuration of the program that owns the table",
      nft::TitleOf(chain), kPodLinkPrefix, chain.drops ? "add" : "insert");
}

void AddDropping(const ForwardJudgement& judgement, Findings& findings) {
  const ChainGist& chain = *judgement.chain;
  const std::string how = chain.drops ? "has policy drop" : "ends with a rule that drops";
  findings.Add(
      {.severity = judgement.may_accept ? Severity::kWarning : Severity::kBlocking,
       .object = nft::TitleOf(chain),
       .what = judgement.may_accept ? how + "; some rule may let pods' packets pass before"
                                    : how + ", and no rule before lets pods' packets pass",
       .why = "what pods exchange is dropped, with each other too: the fast path is off where "
              "others filter what is forwarded",
       .remedy = LetPodsPass(chain)});
}

}  // namespace

void CheckForwardRules(const NodeFacts& facts, Findings& findings) {
  const bool has_v6 = facts.nic && facts.nic->has_v6;
  std::set<const ChainGist*> named;
  for (const ForwardJudgement& judgement : nft::JudgeForwardRules(facts.chains, kPodLinkPrefix)) {
    if (judgement.chain->family == "ip6" && !has_v6) continue;
    if (judgement.drops_all) {
      AddDropping(judgement, findings);
    } else if (judgement.dropper != nullptr && named.insert(judgement.dropper).second) {
      findings.Add({.severity = Severity::kWarning,
                    .object = nft::TitleOf(*judgement.dropper),
                    .what = "has rules that drop some of what is forwarded",
                    .why = "pods' packets may be among it, so that the fast path is off",
                    .remedy = fmt::format("nft list chain {}", nft::TitleOf(*judgement.dropper))});
    }
  }
  if (!facts.firewall_status.ok()) findings.AddUnknown("forward", facts.firewall_status);
}

}  // namespace spoke::node_checks
