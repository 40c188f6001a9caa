#include "netagent/core/fast_path_obstacles.h"

#include <algorithm>
#include <array>

#include "fmt/core.h"
#include "lib/nft/forward_rules.h"
#include "netagent/core/claims.h"

namespace spoke::netagent {
namespace {

std::string FilterIn(const std::vector<nft::ChainGist>& chains) {
  for (const nft::ForwardJudgement& judgement :
       nft::JudgeForwardRules(chains, claims::kLinkPrefix)) {
    if (judgement.dropper != nullptr) {
      return fmt::format("the chain {} has rules that may drop what pods send each other",
                         nft::TitleOf(*judgement.dropper));
    }
    if (judgement.drops_all) {
      return fmt::format("the chain {} drops what it does not know",
                         nft::TitleOf(*judgement.chain));
    }
  }
  return "";
}

}  // namespace

// ip_vs_ctl.c: three lines of headings, then a line for each service, which begins with its
// protocol or FWM, and for each of its servers one that begins with "  ->".
bool HasVirtualServices(std::string_view ip_vs) {
  constexpr std::array<std::string_view, 4> kBeginnings = {"TCP ", "UDP ", "SCTP", "FWM "};
  while (!ip_vs.empty()) {
    const size_t end = std::min(ip_vs.find('\n'), ip_vs.size());
    const std::string_view line = ip_vs.substr(0, end);
    if (std::any_of(kBeginnings.begin(), kBeginnings.end(),
                    [&](std::string_view beginning) { return line.starts_with(beginning); })) {
      return true;
    }
    ip_vs.remove_prefix(std::min(end + 1, ip_vs.size()));
  }
  return false;
}

FastPathObstacles ObstaclesIn(const ObstacleFacts& facts) {
  FastPathObstacles obstacles{.all = FilterIn(facts.chains), .new_pods = {}};
  if (obstacles.all.empty() && HasVirtualServices(facts.ip_vs)) {
    obstacles.all = "kube-proxy translates by IPVS, which nf_tables does not see";
  }
  if (facts.tcp_loose.starts_with('0')) {
    obstacles.new_pods =
        "net.netfilter.nf_conntrack_tcp_loose is 0, so that connections cannot change their way";
  }
  return obstacles;
}

}  // namespace spoke::netagent
