// Tests of lists, paging and lag; instances that come, go and are upgraded; tokens and paths that
// lead nowhere.
#include <set>

#include "gmock/gmock.h"
#include "tests/azure-sim/model_for_test.h"
#include "tests/azure-sim/tokens.h"

namespace spoke::azure_sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ScaleSetTest : public ModelTest {
 protected:
  std::string SetPath(std::string_view below = "", std::string_view api = kInstanceApi) const {
    return fmt::format("{}{}?api-version={}", kSet, below, api);
  }
  // Returns the names of all entries of a list, following its links as they are.
  std::vector<std::string> NamesOf(std::string path, int* pages = nullptr) {
    std::vector<std::string> names;
    for (int page = 1; page < 10'000; ++page) {
      const Json body = GetJson(path);
      for (const Json& each : body["value"]) names.push_back(each["name"]);
      if (pages != nullptr) *pages = page;
      if (!body.contains("nextLink")) return names;
      path = body["nextLink"];
    }
    ADD_FAILURE() << "a list without an end";
    return names;
  }
};

TEST_F(ScaleSetTest, ListsComeInPagesOfAnySize) {
  for (const int size : {1, 2, 3, 100, 120}) {
    Knobs knobs;
    knobs.page_size = size;
    Make(7, knobs);
    int pages = 0;
    EXPECT_EQ(NamesOf(SetPath("/virtualMachines"), &pages).size(), 7) << size;
    EXPECT_EQ(pages, (7 + size - 1) / size);
    const std::vector<std::string> nics = NamesOf(SetPath("/networkInterfaces", kNicApi), &pages);
    EXPECT_EQ(nics.size(), 7) << size;
    EXPECT_EQ(pages, (7 + size - 1) / size);
  }
}

TEST_F(ScaleSetTest, ALinkKeepsWhatWasAskedForAndABadOneIsRefused) {
  Make(3);
  model_->knobs().page_size = 1;
  const Json page = GetJson(SetPath("/virtualMachines") + "&$expand=instanceView");
  const Json second = GetJson(page["nextLink"].get<std::string>());
  EXPECT_EQ(second["value"][0]["instanceId"], "1");
  EXPECT_EQ(second["value"][0]["properties"]["instanceView"]["statuses"][1]["code"],
            "PowerState/running");
  EXPECT_EQ(Get(SetPath("/virtualMachines") + "&$skiptoken=zzzz").status, 400);
}

TEST_F(ScaleSetTest, IdsMayBeSpelledInAnyCase) {
  Make(1);
  model_->knobs().vary_id_case = true;
  std::set<std::string> spellings;
  for (int i = 0; i < 40; ++i) {
    const std::string id = GetJson(InstancePath(0))["id"];
    EXPECT_EQ(Lower(id), Lower(fmt::format("{}/virtualMachines/0", kSet)));
    spellings.insert(id);
    EXPECT_EQ(Get(id + "?api-version=2025-04-01").status, 200) << id;
    if (i % 10 == 9) now_ += absl::Minutes(3);
  }
  EXPECT_GT(spellings.size(), 1);
}

TEST_F(ScaleSetTest, ListsLagBehindWhatComesAndGoes) {
  Make(2);
  model_->knobs().list_lag = absl::Seconds(30);
  ScaleSet& set = *model_->world().FindSet(kSet);
  ASSERT_TRUE(model_->compute().AddInstances(set, 1, now_));
  EXPECT_EQ(Get(InstancePath(2)).status, 200);
  EXPECT_EQ(NamesOf(SetPath("/virtualMachines")).size(), 2);
  now_ += absl::Seconds(30);
  EXPECT_EQ(NamesOf(SetPath("/virtualMachines")).size(), 3);

  model_->compute().RemoveInstance(*World::FindInstance(set, 0), now_);
  EXPECT_EQ(Get(InstancePath(0)).status, 404);
  EXPECT_EQ(NamesOf(SetPath("/virtualMachines")).size(), 3);
  now_ += absl::Seconds(30);
  EXPECT_THAT(NamesOf(SetPath("/virtualMachines")), ElementsAre("pool_1", "pool_2"));
}

TEST_F(ScaleSetTest, ADeletedInstanceIsMarkedThenGoneAndItsAddressesAreFreeLater) {
  Make(SmallSpec(2, "10.0.0.0/29"));  // The subnet has three usable addresses.
  Put(0, BodyWith(0, {"spoke-a"}));
  now_ += absl::Minutes(1);
  const http::Response deleted = Send("DELETE", InstancePath(0));
  EXPECT_EQ(deleted.status, 202);
  EXPECT_TRUE(deleted.headers.Find("Location").has_value());
  const Json marked = GetJson(InstancePath(0));
  EXPECT_EQ(marked["properties"]["provisioningState"], "Deleting");
  EXPECT_TRUE(marked["properties"]["networkProfileConfiguration"].is_null());
  EXPECT_EQ(CodeOf(Put(0, {{"properties", Json::object()}})), "OperationNotAllowed");
  EXPECT_EQ(Get(std::string(*deleted.headers.Find("Location"))).status, 202);
  now_ += absl::Minutes(1);
  EXPECT_EQ(Get(std::string(*deleted.headers.Find("Location"))).status, 204);
  EXPECT_EQ(Poll(deleted)["status"], "Succeeded");
  EXPECT_EQ(Get(InstancePath(0)).status, 404);
  now_ += absl::Minutes(1);
  Put(1, BodyWith(1, {"spoke-b", "spoke-c"}));
  now_ += absl::Minutes(1);
  EXPECT_EQ(AddressesOf(1).size(), 3);
}

TEST_F(ScaleSetTest, ADeletionEndsOnceAllThatItDeletesIsGone) {
  const std::string set = fmt::format("{}?api-version={}", kSet, kInstanceApi);
  for (const std::string& path : {InstancePath(0), set}) {
    SCOPED_TRACE(path);
    Make(4);
    model_->knobs().delete_latency = {absl::Seconds(10), absl::Seconds(40)};
    const http::Response deleted = Send("DELETE", path);
    ASSERT_EQ(deleted.status, 202);
    now_ += absl::Seconds(39);
    EXPECT_EQ(Poll(deleted)["status"], "InProgress");
    now_ += absl::Seconds(1);
    EXPECT_EQ(Poll(deleted)["status"], "Succeeded");
    for (int number = 0; number < (path == set ? 4 : 1); ++number) {
      EXPECT_EQ(Get(InstancePath(number)).status, 404);
    }
  }
}

TEST_F(ScaleSetTest, TypesThatAreNotServedAreNamed) {
  Make(1);
  for (const std::string provider : {"Microsoft.Compute", "Microsoft.Network"}) {
    const http::Response response =
        Get(fmt::format("{}/providers/{}/things?api-version={}", kGroup, provider, kNetworkApi));
    EXPECT_EQ(response.status, 404);
    EXPECT_EQ(CodeOf(response), "InvalidResourceType");
    EXPECT_THAT(response.body, testing::AllOf(testing::HasSubstr("'things'"),
                                              testing::HasSubstr("'" + provider + "'")));
  }
}

TEST_F(ScaleSetTest, AddressesOfADeletedInstanceStayTakenForAWhile) {
  Make(SmallSpec(3, "10.0.0.0/29"));
  model_->knobs().free_after_delete = absl::Minutes(10);
  model_->knobs().full_subnet = FullSubnet::kSync;
  model_->compute().RemoveInstance(*World::FindInstance(*model_->world().FindSet(kSet), 0), now_);
  EXPECT_EQ(CodeOf(Put(1, BodyWith(1, {"spoke-a"}))), "SubnetIsFull");
  now_ += absl::Minutes(10);
  EXPECT_EQ(Put(1, BodyWith(1, {"spoke-a"})).status, 200);
}

TEST_F(ScaleSetTest, AnUpgradeTakesWhatIsNotInTheSetsModel) {
  SimSpec spec = SmallSpec(1);
  spec.scale_sets[0].baked_addresses = 2;
  spec.scale_sets[0].baked_blocks = 1;
  Make(spec);
  EXPECT_EQ(AddressesOf(0).size(), 4);  // The instances are born with them.
  EXPECT_EQ(AddressesOf(0)["spoke-m2"], "10.0.0.16");
  ASSERT_EQ(Send("PUT", InstancePath(0, kBlockApi), BodyWith(0, {"spoke-a"}, true)).status, 200);
  now_ += absl::Minutes(1);
  EXPECT_EQ(AddressesOf(0).size(), 5);
  const Json own = GetJson(InstancePath(0));
  EXPECT_EQ(own["properties"]["latestModelApplied"], false);
  EXPECT_EQ(own["properties"]["modelDefinitionApplied"], "VirtualMachine");

  const http::Response upgrade = Send("POST", SetPath("/manualupgrade"), {{"instanceIds", {"0"}}});
  EXPECT_EQ(upgrade.status, 202);
  now_ += absl::Minutes(1);
  EXPECT_EQ(Poll(upgrade)["status"], "Succeeded");
  EXPECT_EQ(AddressesOf(0).size(), 4);
  EXPECT_EQ(GetJson(InstancePath(0))["properties"]["latestModelApplied"], true);
}

TEST_F(ScaleSetTest, AReimageKeepsAddressesUnlessToldOtherwise) {
  Make(1);
  Put(0, BodyWith(0, {"spoke-a"}));
  now_ += absl::Minutes(1);
  const std::string path =
      fmt::format("{}/virtualMachines/0/reimage?api-version={}", kSet, kInstanceApi);
  EXPECT_EQ(Send("POST", path).status, 202);
  now_ += absl::Minutes(1);
  EXPECT_EQ(AddressesOf(0).size(), 2);
  model_->knobs().reimage_keeps_addresses = false;
  EXPECT_EQ(Send("POST", path).status, 202);
  now_ += absl::Minutes(1);
  EXPECT_EQ(AddressesOf(0).size(), 1);
}

TEST_F(ScaleSetTest, ASetsNewModelIsForNewInstances) {
  Make(1);
  Json list = GetJson(SetPath())["properties"]["virtualMachineProfile"]["networkProfile"]
                                ["networkInterfaceConfigurations"];
  Json& configs = list[0]["properties"]["ipConfigurations"];
  configs[0]["properties"]["primary"] = true;
  configs.push_back({{"name", "spoke-m0"}, {"properties", configs[0]["properties"]}});
  configs[1]["properties"]["primary"] = false;
  const Json body = {{"sku", {{"capacity", 2}}},
                     {"properties",
                      {{"virtualMachineProfile",
                        {{"networkProfile", {{"networkInterfaceConfigurations", list}}}}}}}};
  const http::Response patch = Send("PATCH", SetPath(), body);
  ASSERT_EQ(patch.status, 200) << patch.body;
  EXPECT_EQ(Send("PATCH", SetPath(), body).status, 409);
  now_ += absl::Minutes(1);
  EXPECT_EQ(Poll(patch)["status"], "Succeeded");
  EXPECT_EQ(AddressesOf(0).size(), 1);
  EXPECT_EQ(AddressesOf(1).size(), 2);
  EXPECT_EQ(GetJson(InstancePath(0))["properties"]["latestModelApplied"], false);
  Send("PATCH", SetPath(), {{"sku", {{"capacity", 1}}}});
  now_ += absl::Minutes(2);
  EXPECT_EQ(Get(InstancePath(1)).status, 404);
  EXPECT_EQ(GetJson(SetPath())["sku"]["capacity"], 1);
}

TEST_F(ScaleSetTest, NicListsCanBeMissingEmptyOrNull) {
  Make(0);
  EXPECT_EQ(Get(SetPath("/networkInterfaces", kNicApi)).status, 404);
  model_->knobs().empty_set_has_no_nic_list = false;
  EXPECT_EQ(GetJson(SetPath("/networkInterfaces", kNicApi))["value"].size(), 0);
  Make(1);
  EXPECT_EQ(Get(SetPath("/networkInterfaces", kInstanceApi)).status, 400);
  model_->knobs().nic_list_null = 1;
  EXPECT_TRUE(GetJson(NicsPath(0))["value"][0]["properties"]["ipConfigurations"].is_null());
  model_->knobs().nic_list_empty = 1;
  EXPECT_EQ(GetJson(NicsPath(0))["value"].size(), 0);
  EXPECT_EQ(Send("PUT", NicsPath(0), Json::object()).status, 405);
}

TEST_F(ScaleSetTest, UnknownInstancesAndServerErrors) {
  Make(1);
  EXPECT_EQ(Get(InstancePath(7)).status, 404);
  model_->knobs().unknown_instance_status = 400;
  EXPECT_EQ(Get(InstancePath(7)).status, 400);
  model_->knobs().server_errors = 1;
  EXPECT_EQ(Get(InstancePath(0)).status, 503);
  model_->knobs().server_errors = 0;
  model_->knobs().lost_reads = 1;
  EXPECT_EQ(Get(InstancePath(0)).status, 0);
}

TEST_F(ScaleSetTest, OperationsAreFoundUnderTheirWholeUrlOnlyAndNotForEver) {
  Make(1);
  const http::Response put = Put(0, BodyWith(0, {}));
  const std::string url(*put.headers.Find("Azure-AsyncOperation"));
  EXPECT_EQ(Get(url).status, 200);
  EXPECT_EQ(Get(url.substr(0, url.find('?')) + "?api-version=2025-04-01").status, 404);
  now_ += absl::Hours(3);
  EXPECT_EQ(Get(url).status, 404);
}

TEST_F(ScaleSetTest, TokensAreWantedAndExpire) {
  Knobs knobs;
  knobs.require_token = true;
  Make(1, knobs);
  const auto status = [&](const std::string& authorization) {
    http::Headers headers;
    if (!authorization.empty()) headers.Add("Authorization", authorization);
    const http::Response response = Send("GET", InstancePath(0), {}, headers);
    EXPECT_EQ(response.headers.Find("WWW-Authenticate").has_value(), response.status == 401);
    return response.status;
  };
  const std::string good = "Bearer " + FormatToken({"agent", now_, now_ + absl::Hours(1)});
  EXPECT_EQ(status(""), 401);
  EXPECT_EQ(status("Bearer rubbish"), 401);
  EXPECT_EQ(status("Basic abc"), 401);
  EXPECT_EQ(status(good), 200);
  model_->knobs().tokens_valid_from = now_ + absl::Seconds(1);  // The token is revoked.
  EXPECT_EQ(status(good), 401);
  model_->knobs().tokens_valid_from = absl::InfinitePast();
  now_ += absl::Hours(1);
  EXPECT_EQ(status(good), 401);
}

TEST_F(ScaleSetTest, WhatIsNotThereSaysSoAtItsLevel) {
  Make(1);
  EXPECT_EQ(CodeOf(Get("/subscriptions/other/resourceGroups/rg/providers/Microsoft.Compute/"
                       "virtualMachineScaleSets/pool?api-version=2025-04-01")),
            "SubscriptionNotFound");
  EXPECT_EQ(CodeOf(Get(kSet)), "MissingApiVersionParameter");
  EXPECT_EQ(CodeOf(Get(std::string(kGroup) + "/providers/Microsoft.Storage/x/y?api-version=1")),
            "InvalidResourceNamespace");
  for (const char* path : {"", "/", "//", "/subscriptions", "/subscriptions/sub?api-version=1",
                           "/subscriptions/sub/resourceGroups/rg?api-version=1",
                           "/subscriptions/sub/resourceGroups/rg/providers?api-version=1"}) {
    EXPECT_GE(Get(path).status, 400) << path;
  }
}

// 200,000 addresses: each is on one NIC, and one instance is found as fast among all of them.
TEST_F(ScaleSetTest, HoldsAsManyAsTheLargestClusters) {
  SimSpec spec;
  for (int i = 0; i < 8; ++i) {
    SimSpec one = SmallSpec(940, fmt::format("10.{}.0.0/16", i));
    one.subnets[0].id += fmt::format("{}", i);
    one.scale_sets[0].subnet_id = one.subnets[0].id;
    one.scale_sets[0].name += fmt::format("{}", i);
    one.scale_sets[0].baked_addresses = 26;
    spec.subnets.push_back(one.subnets[0]);
    spec.scale_sets.push_back(one.scale_sets[0]);
  }
  Make(spec);
  const std::vector<ArmModel::OnWire> wire = model_->Wire();
  EXPECT_EQ(wire.size(), 8 * 940 * 27);
  std::set<ip::Prefix> ranges;
  for (const ArmModel::OnWire& each : wire) ranges.insert(each.entry->range);
  EXPECT_EQ(ranges.size(), wire.size());
  EXPECT_EQ(Get(fmt::format("{}7/virtualMachines/939?api-version={}", kSet, kInstanceApi)).status,
            200);
}

}  // namespace
}  // namespace spoke::azure_sim
