#include "netagent/fastpath/fast_path_obstacles.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using nft::ChainGist;
using nft::Fate;
using nft::RuleGist;
using testing::HasSubstr;

ChainGist Chain(const std::string& name, bool at_forward, std::vector<RuleGist> rules,
                bool drops = false) {
  return {"ip", "filter", name, at_forward, drops, std::move(rules)};
}
RuleGist Jump(const std::string& target) { return {.fate = Fate::kJump, .target = target}; }
RuleGist Conditional(Fate fate) { return {.fate = fate, .conditional = true}; }

std::string FilterOf(std::vector<ChainGist> chains) {
  return ObstaclesIn({.chains = std::move(chains), .virtual_services = false, .tcp_loose = {}}).all;
}

TEST(FastPathObstacles, KubernetesOwnChainsAreNone) {
  for (const char* name : {"KUBE-FORWARD", "KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES",
                           "KUBE-PROXY-FIREWALL", "KUBE-FIREWALL"}) {
    EXPECT_EQ(FilterOf({Chain("FORWARD", true, {Jump(name)}),
                        Chain(name, false, {Conditional(Fate::kReject)})}),
              "")
        << name;
  }
  ChainGist forward{"ip", "kube-proxy", "filter-forward", true, false, {Conditional(Fate::kDrop)}};
  EXPECT_EQ(FilterOf({forward}), "");
  EXPECT_EQ(FilterOf({}), "");
}

TEST(FastPathObstacles, OthersThatBeginLikeThemAreFilters) {
  for (const char* name : {"KUBE-ROUTER-FORWARD", "KUBE-POD-FW-ABCDEF", "KUBE-NWPLCY-ABC",
                           "cali-FORWARD", "DOCKER-USER"}) {
    EXPECT_THAT(FilterOf({Chain("FORWARD", true, {Jump(name)}),
                          Chain(name, false, {Conditional(Fate::kDrop)})}),
                HasSubstr(name));
  }
}

TEST(FastPathObstacles, APolicyThatDropsIsOne) {
  EXPECT_THAT(FilterOf({Chain("FORWARD", true, {}, /*drops=*/true)}),
              HasSubstr("ip filter FORWARD"));
}

TEST(FastPathObstacles, RulesAboutOthersDevicesOrStatesAreNone) {
  RuleGist docker = Conditional(Fate::kDrop);
  docker.devices = {"docker0"};
  RuleGist invalid = Conditional(Fate::kDrop);
  invalid.on_state = true;
  EXPECT_EQ(FilterOf({Chain("FORWARD", true, {docker, invalid})}), "");
}

TEST(FastPathObstacles, IpvsIsOneOnceItHasAService) {
  EXPECT_EQ(ObstaclesIn({}).all, "");
  EXPECT_THAT(ObstaclesIn({.chains = {}, .virtual_services = true, .tcp_loose = {}}).all,
              HasSubstr("IPVS"));
}

TEST(FastPathObstacles, StrictTrackingKeepsNewPodsFromItAlone) {
  EXPECT_EQ(ObstaclesIn({.chains = {}, .virtual_services = false, .tcp_loose = "1\n"}),
            FastPathObstacles());
  const FastPathObstacles strict =
      ObstaclesIn({.chains = {}, .virtual_services = false, .tcp_loose = "0\n"});
  EXPECT_EQ(strict.all, "");
  EXPECT_THAT(strict.new_pods, HasSubstr("tcp_loose"));
}

}  // namespace
}  // namespace spoke::netagent
