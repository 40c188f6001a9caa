#include "netagent/policy/reach_targets.h"

#include <string>

#include "fmt/core.h"
#include "gtest/gtest.h"
#include "lib/policy/testing/blocks.h"

namespace spoke::netagent {
namespace {

using node_checks::ReachTargets;
using policy::ClusterNetwork;
using policy::Endpoints;

Policy Of(const std::vector<policy::Value>& values) {
  Policy policy{.version = 1};
  for (const policy::Value& value : values) {
    const std::string key = fmt::format("ClusterNetwork/{}", policy.entries.size());
    policy.entries[key] = {.key = key, .bytes = "", .value = value};
  }
  return policy;
}

TEST(ReachTargets, AreThoseOfAllClusterNetworksEachOnce) {
  EXPECT_EQ(ReachTargetsOf(Policy()), ReachTargets());
  const ClusterNetwork first{.hub_probes = Endpoints({"10.8.0.11:443", "10.8.0.10:443"}),
                             .peer_spoke_probes = Endpoints({"10.32.0.1:22"})};
  const ClusterNetwork second{.hub_probes = Endpoints({"10.8.0.10:443", "[fd08::1]:443"})};
  EXPECT_EQ(ReachTargetsOf(Of({policy::Team{{"web"}}, second, first})),
            (ReachTargets{.hub = Endpoints({"10.8.0.10:443", "10.8.0.11:443", "[fd08::1]:443"}),
                          .peer_spoke = Endpoints({"10.32.0.1:22"})}));
}

TEST(ReachTargets, ManyObjectsDoNotMakeANodeTryMoreThanItsLimit) {
  std::vector<policy::Value> values;
  for (uint16_t i = 1; i <= 100; ++i) {
    values.push_back(ClusterNetwork{.hub_probes = {{ip::Address::V4(0x0A080001), i}},
                                    .peer_spoke_probes = {{ip::Address::V4(0x0A200001), i}}});
  }
  const ReachTargets targets = ReachTargetsOf(Of(values));
  ASSERT_EQ(targets.hub.size(), kMaxReachTargets);
  EXPECT_EQ(targets.hub.back().port, kMaxReachTargets);
  EXPECT_EQ(targets.peer_spoke.size(), kMaxReachTargets);
}

}  // namespace
}  // namespace spoke::netagent
