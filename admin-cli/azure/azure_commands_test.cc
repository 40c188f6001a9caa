// Tests of azure: the verb as a table, as JSON, as a fragment, and refused.
#include "admin-cli/testing/command_fixture.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kSubnetId =
    " --subnet-id /subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/"
    "subnets/pods";

class AzureTest : public CommandTest {
 protected:
  // No server is asked.
  AzureTest() { variables_["SPOKE_SERVER"] = "unix:/nonexistent"; }
};

TEST_F(AzureTest, PlanModelShowsTheComputation) {
  const Outcome outcome =
      Run("azure plan-model --pods-per-node 110 --nodes 500 --subnet-prefix 10.0.0.0/15");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Addresses a node              128"));
  EXPECT_THAT(outcome.out, HasSubstr("of the 131072 in 10.0.0.0/15, which holds 1016 such nodes"));
  EXPECT_THAT(outcome.out, HasSubstr("more than 120 pods"));
  EXPECT_THAT(outcome.out, HasSubstr("node_addresses.min            128"));
  EXPECT_THAT(outcome.err, HasSubstr("--subnet-id"));
  EXPECT_THAT(Run("azure plan-model --pods-per-node 110 --nodes 7500").out,
              HasSubstr("at least 15 VNets"));
  EXPECT_THAT(outcome.out, HasSubstr("500     at least: one a node as it starts, which Azure takes "
                                     "at once"));
  EXPECT_THAT(Run("azure plan-model --pods-per-node 110 --nodes 7500").out,
              HasSubstr("for which Azure takes 12m if all start at once"));
}

TEST_F(AzureTest, PlanModelPrintsWholeJsonAndYaml) {
  const std::string line =
      std::string("azure plan-model --pods-per-node 24 --nodes 7000 --blocks") + kSubnetId;
  const nlohmann::json plan = Json(line);
  EXPECT_EQ(plan["addresses_per_node"], 32);
  EXPECT_EQ(plan["ip_configurations"].size(), 2U);
  EXPECT_EQ(plan["ip_configurations"][1]["properties"]["privateIPAddressPrefixLength"], 28);
  EXPECT_EQ(Json("azure plan-model --pods-per-node 24 --nodes 1")["ip_configurations"],
            nlohmann::json::array());
  EXPECT_THAT(Run(line + " -o yaml").out, HasSubstr("scale_sets: 7"));
  EXPECT_EQ(Run(line + " -o name").code, 2);
}

TEST_F(AzureTest, FragmentIsTheListAndNothingElse) {
  const std::string line =
      std::string("azure plan-model --pods-per-node 8 --nodes 1 --fragment") + kSubnetId;
  const Outcome outcome = Run(line);
  EXPECT_EQ(outcome.err, "");
  const auto list = nlohmann::json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(list.is_array()) << outcome.out;
  EXPECT_EQ(list.size(), 16U);
  EXPECT_EQ(Run(line + " -o json").out, outcome.out);
  EXPECT_THAT(Run(line + " -o yaml").out, HasSubstr("- name: \"spoke-model-001\""));
  EXPECT_THAT(Run(line + " --name-prefix pods-").out, HasSubstr("pods-model-016"));
}

TEST_F(AzureTest, FragmentKeepsWhatTheModelHas) {
  const std::string nic = R"({"name":"nic0","properties":{"ipConfigurations":[
      {"name":"first","properties":{"subnet":{"id":"/subscriptions/s/subnets/a"}}}]}})";
  const std::string line =
      "azure plan-model --pods-per-node 8 --nodes 1 --fragment --nic " + WriteFile("nic.json", nic);
  const auto list = nlohmann::json::parse(Run(line).out, nullptr, false);
  ASSERT_EQ(list.size(), 17U);
  EXPECT_EQ(list[0]["name"], "first");
  EXPECT_EQ(list[0]["properties"]["primary"], true);
  input_ = nic;
  EXPECT_EQ(Run("azure plan-model --pods-per-node 8 --nodes 1 --fragment --nic -").out,
            Run(line).out);
}

TEST_F(AzureTest, PlanModelRefusesWhatDoesNotFit) {
  const Outcome small =
      Run("azure plan-model --pods-per-node 110 --nodes 7500 --subnet-prefix 10.0.0.0/16");
  EXPECT_EQ(small.code, 5);
  EXPECT_EQ(small.out, "");
  EXPECT_THAT(small.err, HasSubstr("subnet 10.0.0.0/16 is too small: 7500 nodes take 967505"));
  EXPECT_EQ(Run("azure plan-model --pods-per-node 300 --nodes 1").code, 5);
}

TEST_F(AzureTest, PlanModelRefusesBadInput) {
  const std::string good = "azure plan-model --pods-per-node 8 --nodes 1";
  EXPECT_EQ(Run("azure plan-model --pods-per-node 8").code, 2);
  EXPECT_EQ(Run("azure plan-model --pods-per-node 8 --nodes 0").code, 2);
  EXPECT_EQ(Run(good + " --spare -1").code, 2);
  EXPECT_EQ(Run(good + " --spare 0").code, 0);
  EXPECT_EQ(Run(good + " --subnet-prefix 10.0.0.1/16").code, 2);
  EXPECT_EQ(Run(good + " --subnet-id pods").code, 2);
  EXPECT_EQ(Run(good + " --name-prefix .x").code, 2);
  EXPECT_EQ(Run(good + " --nic " + WriteFile("text", "[]")).code, 2);
  EXPECT_EQ(Run(good + " --nic " +
                WriteFile("deep", "{\"a\":" + std::string(500, '[') + std::string(500, ']') + "}"))
                .code,
            2);
  EXPECT_EQ(Run(good + " --nic /nonexistent").code, 4);
  const Outcome nothing = Run(good + " --fragment");
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("give --subnet-id"));
  EXPECT_THAT(nothing.out, Not(HasSubstr("name")));
}

}  // namespace
}  // namespace spoke::ctl
