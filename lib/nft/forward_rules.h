// Whether the rules of others at the hook forward let pass what pods send and receive. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "lib/nft/firewall.h"

namespace spoke::nft {

// The judgement about a chain at the hook forward, and about those it leads to, for packets between
// devices whose names begin with a prefix and any others.
struct ForwardJudgement {
  const ChainGist* chain = nullptr;
  bool drops_all = false;   // Whether what no rule knows is dropped.
  bool may_accept = false;  // Whether a rule may let new packets of such a device pass before.
  // The first chain with a rule that drops some of what is forwarded, whatever its connection's
  // state; null: none. kube-proxy's and the kubelet's own chains do not count: they drop what must
  // not be forwarded anywhere.
  const ChainGist* dropper = nullptr;

  bool operator==(const ForwardJudgement&) const = default;
};

// Judges each chain at the hook forward except those of the table "spoke" of family inet, in their
// order. Points into `chains`. A loop, which only a dump that was taken while rules changed can
// have, ends.
std::vector<ForwardJudgement> JudgeForwardRules(const std::vector<ChainGist>& chains,
                                                std::string_view device_prefix);

// Returns a title such as "ip filter FORWARD".
std::string TitleOf(const ChainGist& chain);

}  // namespace spoke::nft
