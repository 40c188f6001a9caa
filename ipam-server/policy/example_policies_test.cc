// The files operators start from must be ones the server takes, all together.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/policy/kinds/pool.h"
#include "ipam-server/policy/policy_file.h"
#include "lib/os/file.h"

namespace spoke::ipam {
namespace {

TEST(ExamplePolicies, AreAcceptedTogetherAndShowTheDefaults) {
  std::vector<PolicyFileText> files;
  for (const char* name :
       {"pools.yaml", "cluster-network.yaml", "teams.yaml", "destination-groups.yaml",
        "egress.yaml", "bandwidth-limits.yaml", "bandwidth-budgets.yaml", "node-remedies.yaml"}) {
    auto text = os::ReadFile(std::string(SPOKE_SOURCE_DIR "/conf/policies/") + name);
    ASSERT_TRUE(text.ok()) << text.status();
    files.push_back({name, *std::move(text)});
  }
  // The pool of conf/ipam-server.yaml stands beside them.
  PoolSpec configured;
  configured.name = "default";
  configured.cidr = *ip::Prefix::Parse("10.20.64.0/18");
  PolicyWorld world;
  world.configured.push_back(ConfiguredPool(configured));
  const auto plan =
      PlanApply({}, ParsePolicyFiles(files), world, absl::FromUnixMillis(1'700'000'000'000));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->changes.size(), 18U);
  const PoolSpec* shared = PoolOf(*plan->next.Find({"Pool", "shared"}));
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(shared->reserve_first, PoolSpec().reserve_first);
  EXPECT_EQ(shared->reserve_last, PoolSpec().reserve_last);
  EXPECT_EQ(PoolOf(*plan->next.Find({"Pool", "training"}))->target, TargetPolicy());
}

}  // namespace
}  // namespace spoke::ipam
