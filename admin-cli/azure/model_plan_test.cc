#include "admin-cli/azure/model_plan.h"

#include <set>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSubnet =
    "/subscriptions/S/resourceGroups/g/providers/Microsoft.Network/"
    "virtualNetworks/v/subnets/pods";

ModelInput Input(uint32_t nodes, uint32_t pods, bool blocks = false) {
  return {.nodes = nodes, .pods_per_node = pods, .blocks = blocks, .subnet_id = kSubnet};
}

ModelPlan Plan(const ModelInput& input) {
  auto plan = PlanModel(input);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : ModelPlan();
}

Json Nic(const std::string& configurations) {
  return Json::parse(R"({"name":"nic0","properties":{"primary":true,"ipConfigurations":)" +
                     configurations + "}}");
}

struct Case {
  const char* name;
  uint32_t nodes;
  uint32_t pods;
  bool blocks;
  uint32_t want_ours;
  uint64_t want_addresses;
  int want_prefix_length;
  uint32_t want_vnets;
};

class PlanModelTest : public testing::TestWithParam<Case> {};

TEST_P(PlanModelTest, CountsWhatTheModelAndTheSubnetNeed) {
  const Case& c = GetParam();
  const ModelPlan plan = Plan(Input(c.nodes, c.pods, c.blocks));
  EXPECT_EQ(plan.ours, c.want_ours);
  EXPECT_EQ(plan.subnet_addresses, c.want_addresses);
  EXPECT_EQ(plan.prefix_length, c.want_prefix_length);
  EXPECT_EQ(plan.vnets, c.want_vnets);
  EXPECT_EQ(plan.configurations.size(), c.want_ours);
  // The law: a node with all its pods has the spare addresses too, and its NIC is within bounds.
  EXPECT_GE(plan.addresses_per_node, c.pods + 8);
  EXPECT_GE(plan.pods_without_calls, c.pods);
  EXPECT_LE(plan.ours + plan.others, kMaxOnNic);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PlanModelTest,
    testing::Values(Case{"OneNode", 1, 8, false, 16, 1 * 17 + 5, 27, 1},
                    Case{"SinglesOfALargeCluster", 7500, 110, false, 128, 7500 * 129 + 5, 12, 15},
                    Case{"BlocksOfALargeCluster", 7500, 110, true, 8, 16 * (2 + 60000 + 468), 12,
                         2},
                    Case{"SmallBlocks", 7500, 24, true, 2, 16 * (2 + 15000 + 468), 14, 1},
                    Case{"FewNodesWithBlocks", 27, 16, true, 2, 16 * (2 + 54), 22, 1},
                    Case{"FullNic", 10, 247, false, 255, 10 * 256 + 5, 20, 1},
                    Case{"NoSubnetIsLargeEnough", 1000000, 100, false, 112, 113000005, 0, 1725}),
    [](const auto& test) { return test.param.name; });

TEST(PlanModel, NamesEveryConfigurationOnceAndMarksNoneAsPrimary) {
  const ModelPlan plan = Plan(Input(1, 24, true));
  const Json want = Json::parse(R"({"name":"spoke-model-001","properties":{"primary":false,
      "subnet":{"id":")" + std::string(kSubnet) +
                                R"("},"privateIPAddressVersion":"IPv4",
      "privateIPAddressPrefixLength":28}})");
  EXPECT_EQ(plan.configurations[0], want);
  EXPECT_EQ(plan.configurations[1]["name"], "spoke-model-002");
  const ModelPlan singles = Plan(Input(1, 100));
  std::set<std::string> names;
  for (const Json& entry : singles.configurations) {
    names.insert(entry["name"].get<std::string>());
    EXPECT_FALSE(entry["properties"].contains("privateIPAddressPrefixLength"));
  }
  EXPECT_EQ(names.size(), 112U);
}

TEST(PlanModel, KeepsWhatTheNicHasAndGoesByItsPrimary) {
  ModelInput input = Input(1, 8);
  input.subnet_id.clear();
  input.nic = Nic(R"([{"name":"lb","properties":{"primary":false,"x":1}},
                      {"name":"first","properties":{"primary":true,"subnet":{"id":"/subscriptions/S/subnets/a"},
                       "applicationSecurityGroups":[{"id":"/asg"}]}},
                      {"name":"spoke-model-002","properties":{"subnet":{"id":"/subscriptions/S/subnets/a"}}}])");
  const ModelPlan plan = Plan(input);
  EXPECT_EQ(plan.others, 2U);
  EXPECT_EQ(plan.ours, 16U);
  EXPECT_EQ(plan.ours_already, 1U);
  ASSERT_EQ(plan.configurations.size(), 18U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plan.configurations[i], input.nic["properties"]["ipConfigurations"][i]);
  }
  EXPECT_EQ(plan.configurations[3]["name"], "spoke-model-001");
  EXPECT_EQ(plan.configurations[4]["name"], "spoke-model-003");
  EXPECT_EQ(plan.configurations[3]["properties"]["subnet"]["id"], "/subscriptions/S/subnets/a");
  EXPECT_EQ(plan.configurations[3]["properties"]["applicationSecurityGroups"][0]["id"], "/asg");
  EXPECT_EQ(plan.subnet_addresses, 18U + kReservedInSubnet);

  // Once it is in the model, there is nothing more to do.
  input.nic["properties"]["ipConfigurations"] = plan.configurations;
  EXPECT_EQ(Plan(input).configurations, plan.configurations);
}

TEST(PlanModel, FindsThePrimaryNicOfAScaleSetAndMarksItsPrimaryEntry) {
  ModelInput input = Input(1, 8);
  const Json nic = Nic(R"([{"name":"only","properties":{"subnet":{"id":"/x"}}}])");
  Json other = nic;
  other["properties"]["primary"] = false;
  input.nic["properties"]["virtualMachineProfile"]["networkProfile"]
           ["networkInterfaceConfigurations"] = {other, nic};
  const ModelPlan plan = Plan(input);
  EXPECT_EQ(plan.configurations[0]["name"], "only");
  EXPECT_EQ(plan.configurations[0]["properties"]["primary"], true);
  EXPECT_EQ(plan.configurations[1]["properties"]["subnet"]["id"], kSubnet);
}

TEST(PlanModel, HasNoFragmentWithoutASubnet) {
  ModelInput input = Input(1, 8);
  input.subnet_id.clear();
  EXPECT_TRUE(Plan(input).configurations.is_null());
}

TEST(PlanModel, SaysHowLongCallsWouldTakeInstead) {
  EXPECT_EQ(Plan(Input(1500, 8)).start_without, absl::ZeroDuration());
  EXPECT_EQ(Plan(Input(7500, 8)).start_without, absl::Minutes(12));
}

TEST(PlanModel, RefusesASubnetThatIsTooSmallAndSaysWhatWouldDo) {
  ModelInput input = Input(100, 8);
  input.subnet = *ip::Prefix::Parse("10.0.0.0/24");
  const absl::Status status = PlanModel(input).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()),
            "subnet 10.0.0.0/24 is too small: 100 nodes take 1705 addresses of its 256; it holds "
            "14 such nodes, and a /21 holds all");
  input.nodes = 14;
  EXPECT_EQ(Plan(input).nodes_that_fit, 14U);
}

TEST(PlanModel, RefusesMoreThanAVnetHolds) {
  ModelInput input = Input(7500, 110);
  input.subnet = *ip::Prefix::Parse("10.0.0.0/8");
  const absl::Status status = PlanModel(input).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.ToString().find("over 15 VNets, or plan with blocks"), std::string::npos)
      << status;
  input.blocks = true;
  input.nodes = 7000;
  EXPECT_TRUE(PlanModel(input).ok()) << PlanModel(input).status();
}

TEST(PlanModel, RefusesMoreThanANicHolds) {
  EXPECT_EQ(PlanModel(Input(1, 248)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(PlanModel(Input(1, 248, true)).ok());
  EXPECT_EQ(PlanModel(Input(1, 5000, true)).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(PlanModel, RefusesBadInput) {
  const auto refuses = [](const auto& spoil) {
    ModelInput input = Input(1, 8);
    spoil(input);
    EXPECT_EQ(PlanModel(input).status().code(), absl::StatusCode::kInvalidArgument);
  };
  refuses([](ModelInput& i) { i.nodes = 0; });
  refuses([](ModelInput& i) { i.pods_per_node = 0; });
  refuses([](ModelInput& i) { i.batch = 0; });
  refuses([](ModelInput& i) { i.name_prefix = ""; });
  refuses([](ModelInput& i) { i.name_prefix = "-a"; });
  refuses([](ModelInput& i) { i.name_prefix = "a b"; });
  refuses([](ModelInput& i) { i.name_prefix = std::string(99, 'a'); });
  refuses([](ModelInput& i) { i.subnet_id = "pods"; });
  refuses([](ModelInput& i) { i.subnet_id = std::string(kSubnet) + "\"x"; });
  refuses([](ModelInput& i) { i.subnet = *ip::Prefix::Parse("10.0.0.0/30"); });
  refuses([](ModelInput& i) { i.subnet = *ip::Prefix::Parse("fd00::/64"); });
  refuses([](ModelInput& i) { i.nic = "x"; });
  refuses([](ModelInput& i) { i.nic = Json::object(); });
  refuses([](ModelInput& i) { i.nic = Nic("[]"); });
  refuses([](ModelInput& i) { i.nic = Nic(R"([{"name":"a"}])"); });
  refuses([](ModelInput& i) { i.nic = Nic("[7]"); });
  refuses([](ModelInput& i) {  // A block stands where singles are planned.
    i.nic = Nic(R"([{"name":"a","properties":{}},
                    {"name":"spoke-b","properties":{"privateIPAddressPrefixLength":28}}])");
  });
}

}  // namespace
}  // namespace spoke::ctl
