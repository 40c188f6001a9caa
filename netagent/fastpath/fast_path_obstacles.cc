#include "netagent/fastpath/fast_path_obstacles.h"

#include "fmt/core.h"
#include "lib/nft/forward_rules.h"
#include "netagent/claims.h"

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

FastPathObstacles ObstaclesIn(const ObstacleFacts& facts) {
  FastPathObstacles obstacles{.all = FilterIn(facts.chains), .new_pods = {}};
  if (obstacles.all.empty() && facts.virtual_services) {
    obstacles.all = "kube-proxy translates by IPVS, which nf_tables does not see";
  }
  if (facts.tcp_loose.starts_with('0')) {
    obstacles.new_pods =
        "net.netfilter.nf_conntrack_tcp_loose is 0, so that connections cannot change their way";
  }
  return obstacles;
}

}  // namespace spoke::netagent
