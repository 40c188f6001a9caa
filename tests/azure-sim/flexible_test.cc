// Tests of Flexible scale sets: machines and NICs of their own.
#include "gmock/gmock.h"
#include "tests/azure-sim/model_for_test.h"

namespace spoke::azure_sim {
namespace {

class FlexibleTest : public ModelTest {
 protected:
  void SetUp() override {
    SimSpec spec = SmallSpec(2, "10.0.0.0/24", Orchestration::kFlexible);
    spec.scale_sets[0].first = {{"", "vm0", {}, {}}, {"", "vm1", {}, {}}};
    Make(spec);
  }
  static std::string NicPath(std::string_view name = "vm0-nic") {
    return fmt::format("{}/providers/Microsoft.Network/networkInterfaces/{}?api-version={}", kGroup,
                       name, kNetworkApi);
  }
  static std::string MachinePath(std::string_view below = "") {
    return fmt::format("{}/providers/Microsoft.Compute/virtualMachines{}?api-version={}", kGroup,
                       below, kInstanceApi);
  }
  // Returns the NIC as it is, and one more entry.
  Json NicWith(std::string_view name, int block_length = 0) {
    Json nic = GetJson(NicPath());
    Json& entries = nic["properties"]["ipConfigurations"];
    Json properties = {{"primary", false},
                       {"privateIPAllocationMethod", "Dynamic"},
                       {"subnet", {{"id", kSubnet}}}};
    if (block_length != 0) properties["privateIPAddressPrefixLength"] = block_length;
    entries.push_back({{"name", name}, {"properties", properties}});
    return nic;
  }
  size_t Entries() { return GetJson(NicPath())["properties"]["ipConfigurations"].size(); }
};

TEST_F(FlexibleTest, TheMachinesOfASetAreFoundByItsId) {
  const Json all = GetJson(MachinePath() + "&$filter='virtualMachineScaleSet/id'%20eq%20'" +
                           std::string(kSet) + "'");
  ASSERT_EQ(all["value"].size(), 2);
  EXPECT_EQ(all["value"][0]["properties"]["networkProfile"]["networkInterfaces"][0]["id"],
            fmt::format("{}/providers/Microsoft.Network/networkInterfaces/vm0-nic", kGroup));
  const Json none =
      GetJson(MachinePath() + "&$filter='virtualMachineScaleSet/id' eq '/subscriptions/x'");
  EXPECT_EQ(none["value"].size(), 0);
  EXPECT_EQ(Get(MachinePath() + "&$filter=name eq 'x'").status, 400);
  EXPECT_EQ(GetJson(MachinePath("/vm1"))["name"], "vm1");
  EXPECT_EQ(Get(MachinePath("/vm7")).status, 404);
}

TEST_F(FlexibleTest, TheSetsOwnListHasIdsOnly) {
  const Json list = GetJson(fmt::format("{}/virtualMachines?api-version={}", kSet, kInstanceApi));
  ASSERT_EQ(list["value"].size(), 2);
  EXPECT_FALSE(list["value"][0].contains("properties"));
}

TEST_F(FlexibleTest, AnAttachedNicIsWrittenAsynchronously) {
  const http::Response put = Send("PUT", NicPath(), NicWith("spoke-a"));
  ASSERT_EQ(put.status, 200) << put.body;
  EXPECT_EQ(put.headers.Find("Retry-After"), "10");
  EXPECT_EQ(Poll(put)["status"], "InProgress");
  EXPECT_EQ(Entries(), 1);
  now_ += absl::Minutes(1);
  EXPECT_EQ(Poll(put), Json({{"status", "Succeeded"}}));
  const Json entries = GetJson(NicPath())["properties"]["ipConfigurations"];
  ASSERT_EQ(entries.size(), 2);
  EXPECT_EQ(entries[1]["properties"]["privateIPAddress"], "10.0.0.6");
}

TEST_F(FlexibleTest, ABlockIsSixteenAddressesOnABoundary) {
  ASSERT_EQ(Send("PUT", NicPath(), NicWith("spoke-a", 28)).status, 200);
  now_ += absl::Minutes(1);
  const Json entry = GetJson(NicPath())["properties"]["ipConfigurations"][1]["properties"];
  EXPECT_EQ(entry["privateIPAddress"], "10.0.0.16");
  EXPECT_EQ(entry["privateIPAddressPrefixLength"], 28);
  EXPECT_EQ(Send("PUT", NicPath(), NicWith("spoke-b", 27)).status, 400);
}

TEST_F(FlexibleTest, WhatWasReadCanBeWrittenBack) {
  const Json nic = GetJson(NicPath());
  ASSERT_EQ(Send("PUT", NicPath(), nic, {{"If-Match", nic["etag"].get<std::string>()}}).status,
            200);
  now_ += absl::Minutes(1);
  EXPECT_EQ(Entries(), 1);
  EXPECT_EQ(Send("PUT", NicPath(), nic, {{"If-Match", nic["etag"].get<std::string>()}}).status,
            412);
}

TEST_F(FlexibleTest, AFailedOrSupersededOperationLeavesTheNicAlone) {
  model_->knobs().failed_operations = 1;
  const http::Response failed = Send("PUT", NicPath(), NicWith("spoke-a"));
  now_ += absl::Minutes(1);
  EXPECT_EQ(Poll(failed)["status"], "Failed");
  EXPECT_EQ(Entries(), 1);
  EXPECT_EQ(GetJson(NicPath())["properties"]["provisioningState"], "Failed");

  model_->knobs().failed_operations = 0;
  const http::Response first = Send("PUT", NicPath(), NicWith("spoke-a"));
  EXPECT_EQ(Send("PUT", NicPath(), NicWith("spoke-b")).status, 409);
  model_->knobs().on_concurrent_write = OnConcurrentWrite::kPreempt;
  const http::Response second = Send("PUT", NicPath(), NicWith("spoke-b"));
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(Poll(first)["error"]["code"], "CanceledAndSupersededDueToAnotherOperation");
  now_ += absl::Minutes(1);
  EXPECT_EQ(GetJson(NicPath())["properties"]["ipConfigurations"][1]["name"], "spoke-b");
}

TEST_F(FlexibleTest, ThePrimaryEntryStays) {
  Json nic = NicWith("spoke-a");
  nic["properties"]["ipConfigurations"].erase(0);
  EXPECT_EQ(CodeOf(Send("PUT", NicPath(), nic)), "IpConfigDeleteNotSupported");
  EXPECT_EQ(Send("DELETE", NicPath()).status, 400);
}

TEST_F(FlexibleTest, ADeletedMachineTakesItsNicAlong) {
  EXPECT_EQ(Send("DELETE", MachinePath("/vm0")).status, 202);
  now_ += absl::Minutes(1);
  EXPECT_EQ(Get(MachinePath("/vm0")).status, 404);
  EXPECT_EQ(Get(NicPath()).status, 404);
  EXPECT_EQ(Get(NicPath("vm1-nic")).status, 200);
}

TEST_F(FlexibleTest, SubnetsShowTheirUseUntilItIsTooMuch) {
  const std::string path = fmt::format("{}?api-version={}", kSubnet, kNetworkApi);
  EXPECT_EQ(GetJson(path)["properties"]["ipConfigurations"].size(), 2);
  model_->knobs().subnet_ip_configurations_most = 1;
  EXPECT_FALSE(GetJson(path)["properties"].contains("ipConfigurations"));
  const Json usages = GetJson(
      fmt::format("{}/providers/Microsoft.Network/virtualNetworks/vnet/usages?api-version={}",
                  kGroup, kNetworkApi));
  EXPECT_EQ(usages["value"][0]["currentValue"], 2);
  EXPECT_EQ(usages["value"][0]["limit"], 251);
}

}  // namespace
}  // namespace spoke::azure_sim
