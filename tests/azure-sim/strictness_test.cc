// Tests of what Azure refuses of a client that is wrong, and what not every cloud has.
#include <functional>
#include <set>

#include "gmock/gmock.h"
#include "tests/azure-sim/model_for_test.h"

namespace spoke::azure_sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kNetwork =
    "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet";

class StrictnessTest : public ModelTest {
 protected:
  void SetUp() override { Make(2); }
  void MakeFlexible() {
    SimSpec spec = SmallSpec(2, "10.0.0.0/24", Orchestration::kFlexible);
    spec.scale_sets[0].first = {{"", "vm0", {}, {}}, {"", "vm1", {}, {}}};
    Make(spec);
  }
  static std::string Versioned(std::string_view path, std::string_view version) {
    return fmt::format("{}?api-version={}", path, version);
  }
  static std::string SetPath() { return Versioned(kSet, kInstanceApi); }
  static std::string NicPath(std::string_view name = "vm0-nic",
                             std::string_view version = kNetworkApi) {
    return Versioned(
        fmt::format("{}/providers/Microsoft.Network/networkInterfaces/{}", kGroup, name), version);
  }
  static std::string MachinePath(std::string_view name = "vm0") {
    return Versioned(fmt::format("{}/providers/Microsoft.Compute/virtualMachines/{}", kGroup, name),
                     kInstanceApi);
  }
  // Returns the network profile of an instance, as a body of its own, with one change.
  template <typename Change>
  Json Changed(Change change) {
    Json body = BodyWith(0, {"spoke-a"});
    change(body["properties"]["networkProfileConfiguration"]["networkInterfaceConfigurations"][0]);
    return body;
  }
  std::vector<std::string> NamesOf(std::string path, int* pages) {
    std::vector<std::string> names;
    for (*pages = 1; *pages < 1000; ++*pages) {
      const Json body = GetJson(path);
      for (const Json& each : body["value"]) names.push_back(each["name"]);
      if (!body.contains("nextLink")) break;
      path = body["nextLink"];
    }
    return names;
  }
  static std::string MessageOf(const http::Response& response) {
    return Json::parse(response.body, nullptr, false)["error"]["message"].get<std::string>();
  }
};

// -- Versions.

TEST_F(StrictnessTest, AResourceWantsAVersionOfItsOwnProvider) {
  const http::Response compute = Get(Versioned(kSet, kNetworkApi));
  EXPECT_EQ(compute.status, 400);
  EXPECT_EQ(CodeOf(compute), "NoRegisteredProviderFound");
  EXPECT_THAT(MessageOf(compute),
              testing::AllOf(HasSubstr("location 'eastus2'"), HasSubstr("'2025-05-01'"),
                             HasSubstr("type 'virtualMachineScaleSets'"),
                             HasSubstr("2024-11-01, 2025-04-01, ")));
  EXPECT_EQ(CodeOf(Get(Versioned(kNetwork, kInstanceApi))), "NoRegisteredProviderFound");
  EXPECT_EQ(CodeOf(Send("PUT", InstancePath(0, "2025-04-02"), BodyWith(0, {}))),
            "NoRegisteredProviderFound");
  EXPECT_EQ(CodeOf(Get(Versioned(fmt::format("{}/networkInterfaces", kSet), kNetworkApi))),
            "NoRegisteredProviderFound");
  EXPECT_EQ(Get(Versioned(kNetwork, "2023-11-01")).status, 200);
  EXPECT_EQ(Get(Versioned(kSet, "2022-03-01")).status, 200);
}

TEST_F(StrictnessTest, AListDoesNotExistInAVersionThatItDoesNotHave) {
  const http::Response list = Get(
      Versioned("/subscriptions/sub/providers/Microsoft.Network/virtualNetworks", kInstanceApi));
  EXPECT_EQ(list.status, 404);
  EXPECT_EQ(CodeOf(list), "InvalidResourceType");
  EXPECT_THAT(MessageOf(list),
              testing::AllOf(HasSubstr("'virtualNetworks'"), HasSubstr("'Microsoft.Network'"),
                             HasSubstr("2025-03-01, 2025-05-01")));
  EXPECT_EQ(list.headers.Find("X-Ms-Failure-Cause"), "gateway");
}

TEST_F(StrictnessTest, WhatIsNoVersionIsSaidToBeNone) {
  for (const char* version : {"latest", "2025-4-1", "2025-04-01-beta", "2025-04-011", "1"}) {
    EXPECT_EQ(CodeOf(Get(Versioned(kSet, version))), "InvalidApiVersionParameter") << version;
  }
  EXPECT_EQ(CodeOf(Get(Versioned("/subscriptions/sub", kInstanceApi))),
            "InvalidApiVersionParameter");
  EXPECT_EQ(CodeOf(Get(Versioned("/subscriptions/sub/resourceGroups/rg", "2021-04-01"))),
            "NotSimulated");
}

// -- Bodies.

struct Member {
  const char* name;
  std::function<void(Json&)> add;  // Adds it to the first NIC configuration of an instance.
  const char* code;
  const char* says;
};

class UnknownMember : public StrictnessTest, public testing::WithParamInterface<Member> {};

TEST_P(UnknownMember, IsRefusedAndNothingChanges) {
  const std::string etag = GetJson(InstancePath(0))["etag"];
  const http::Response put = Put(0, Changed(GetParam().add));
  EXPECT_EQ(put.status, 400) << put.body;
  EXPECT_EQ(CodeOf(put), GetParam().code);
  EXPECT_THAT(MessageOf(put), HasSubstr(GetParam().says));
  now_ += absl::Minutes(1);
  EXPECT_EQ(GetJson(InstancePath(0))["etag"], etag);
  EXPECT_EQ(AddressesOf(0).size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(
    Members, UnknownMember,
    testing::Values(
        Member{"OfANic", [](Json& nic) { nic["mtu"] = 9000; }, "BadRequest",
               "Could not find member 'mtu' on object of type"},
        Member{"OfItsProperties", [](Json& nic) { nic["properties"]["speed"] = 1; }, "BadRequest",
               "Path 'properties.networkProfileConfiguration.networkInterfaceConfigurations[0]."
               "properties.speed', line 1, position "},
        Member{"OfAnIpConfiguration",
               [](Json& nic) {
                 nic["properties"]["ipConfigurations"][1]["properties"]["privateIPAddress"] =
                     "10.0.0.9";
               },
               "BadRequest", "Could not find member 'privateIPAddress' on object of type"},
        Member{"OfAReference",
               [](Json& nic) {
                 nic["properties"]["ipConfigurations"][1]["properties"]["subnet"]["name"] = "pods";
               },
               "BadRequest", "Could not find member 'name'"},
        Member{"OfALaterVersion",
               [](Json& nic) {
                 nic["properties"]["ipConfigurations"][1]["properties"]
                    ["privateIPAddressPrefixLength"] = 28;
               },
               "BadRequest", "Could not find member 'privateIPAddressPrefixLength'"},
        Member{"SpelledOtherwise", [](Json& nic) { nic["Name"] = "nic"; }, "BadRequest",
               "Could not find member 'Name'"},
        Member{"InPlaceOfAnObject", [](Json& nic) { nic["properties"] = Json::array(); },
               "BadRequest", "Error converting value of type array"}),
    [](const auto& test) { return test.param.name; });

TEST_F(StrictnessTest, AMemberAtTheTopIsResourceManagersToRefuse) {
  Json body = BodyWith(0, {"spoke-a"});
  body["property"] = 1;
  const http::Response put = Put(0, body);
  EXPECT_EQ(CodeOf(put), "InvalidRequestContent");
  EXPECT_THAT(MessageOf(put), HasSubstr("'Could not find member 'property' on object of type "
                                        "'ResourceDefinition'. Path 'property', line 1, "));
  EXPECT_EQ(CodeOf(Put(0, {{"properties", 7}})), "BadRequest");
}

TEST_F(StrictnessTest, NetworkSaysItInDetails) {
  MakeFlexible();
  Json nic = GetJson(NicPath());
  nic["properties"]["ipConfigurations"][0]["properties"]["weight"] = 1;
  const http::Response put = Send("PUT", NicPath(), nic);
  EXPECT_EQ(put.status, 400);
  EXPECT_EQ(CodeOf(put), "InvalidRequestFormat");
  const Json details = Json::parse(put.body)["error"]["details"];
  ASSERT_EQ(details.size(), 1U);
  EXPECT_EQ(details[0]["code"], "InvalidJson");
  EXPECT_THAT(details[0]["message"].get<std::string>(), HasSubstr("'weight'"));
}

TEST_F(StrictnessTest, BlocksOfANicWantTheVersionThatBroughtThem) {
  MakeFlexible();
  Json nic = GetJson(NicPath());
  nic["properties"]["ipConfigurations"].push_back({{"name", "spoke-a"},
                                                   {"properties",
                                                    {{"primary", false},
                                                     {"privateIPAllocationMethod", "Dynamic"},
                                                     {"privateIPAddressPrefixLength", 28},
                                                     {"subnet", {{"id", kSubnet}}}}}});
  EXPECT_EQ(CodeOf(Send("PUT", NicPath("vm0-nic", "2023-09-01"), nic)), "InvalidRequestFormat");
  EXPECT_EQ(Send("PUT", NicPath("vm0-nic", "2023-11-01"), nic).status, 200);
}

TEST_F(StrictnessTest, WhatWasReadCanBeWrittenBack) {
  model_->knobs().reads_image_references = true;
  const http::Response instance = Put(0, GetJson(InstancePath(0)));
  EXPECT_EQ(instance.status, 200) << instance.body;
  const http::Response set = Send("PUT", SetPath(), GetJson(SetPath()));
  EXPECT_EQ(set.status, 200) << set.body;
  MakeFlexible();
  const http::Response nic = Send("PUT", NicPath(), GetJson(NicPath()));
  EXPECT_EQ(nic.status, 200) << nic.body;
  const http::Response machine = Send("PUT", MachinePath(), GetJson(MachinePath()));
  EXPECT_EQ(machine.status, 200) << machine.body;
  const std::string subnet = Versioned(kSubnet, kNetworkApi);
  EXPECT_EQ(Send("PUT", subnet, GetJson(subnet)).status, 200);
}

TEST_F(StrictnessTest, OtherBodiesHaveTheirMembersToo) {
  const std::string upgrade = Versioned(fmt::format("{}/manualupgrade", kSet), kInstanceApi);
  EXPECT_EQ(Send("POST", upgrade, {{"instances", {"0"}}}).status, 400);
  EXPECT_EQ(Send("PATCH", SetPath(), {{"location", "eastus2"}}).status, 400);
  EXPECT_EQ(Send("PATCH", Versioned(kNetwork, kNetworkApi), {{"tag", Json::object()}}).status, 400);
  EXPECT_EQ(Send("PUT", Versioned(kSubnet, kNetworkApi), {{"addressPrefix", "10.0.0.0/16"}}).status,
            400);
  MakeFlexible();
  EXPECT_EQ(Send("PATCH", MachinePath(), {{"resources", Json::array()}}).status, 400);
  EXPECT_EQ(Send("PATCH", NicPath(), {{"properties", Json::object()}}).status, 400);
}

// -- Locations.

TEST_F(StrictnessTest, AResourceStaysWhereItIs) {
  Json body = BodyWith(0, {"spoke-a"});
  body["location"] = "westus";
  const http::Response put = Put(0, body);
  EXPECT_EQ(put.status, 409);
  EXPECT_EQ(CodeOf(put), "InvalidResourceLocation");
  EXPECT_THAT(MessageOf(put), testing::AllOf(HasSubstr("'eastus2'"), HasSubstr("'westus'")));
  body["location"] = "East US 2";
  EXPECT_EQ(Put(0, body).status, 200);

  Json set = GetJson(SetPath());
  set["location"] = "westus";
  EXPECT_EQ(CodeOf(Send("PUT", SetPath(), set)), "InvalidResourceLocation");
  MakeFlexible();
  for (const std::string& path : {NicPath(), MachinePath()}) {
    Json moved = GetJson(path);
    moved["location"] = "westus";
    EXPECT_EQ(CodeOf(Send("PUT", path, moved)), "InvalidResourceLocation") << path;
    moved.erase("location");
    EXPECT_EQ(CodeOf(Send("PUT", path, moved)), "LocationRequired") << path;
  }
}

// -- Preconditions.

TEST_F(StrictnessTest, WhatIsThereIsNotMadeAnew) {
  const http::Headers anew = {{"If-None-Match", "*"}};
  EXPECT_EQ(Put(0, BodyWith(0, {"spoke-a"}), anew).status, 412);
  EXPECT_EQ(Send("PUT", SetPath(), GetJson(SetPath()), anew).status, 412);
  const std::string subnet = Versioned(kSubnet, kNetworkApi);
  EXPECT_EQ(Send("PUT", subnet, GetJson(subnet), anew).status, 412);
  MakeFlexible();
  for (const std::string& path : {NicPath(), MachinePath()}) {
    EXPECT_EQ(Send("PUT", path, GetJson(path), anew).status, 412) << path;
  }
  Json nic = GetJson(NicPath());
  nic["properties"]["ipConfigurations"][0]["properties"].erase("privateIPAddress");
  EXPECT_EQ(Send("PUT", NicPath("another"), nic, anew).status, 201);
}

TEST_F(StrictnessTest, WhatIsNotThereMatchesNoEtag) {
  MakeFlexible();
  const Json nic = GetJson(NicPath());
  EXPECT_EQ(Send("PUT", NicPath("another"), nic, {{"If-Match", "*"}}).status, 412);
  EXPECT_EQ(Get(NicPath("another")).status, 404);
}

// -- What is not there.

TEST_F(StrictnessTest, DeletingWhatIsNotThereIsNoMistake) {
  EXPECT_EQ(Send("DELETE", Versioned(fmt::format("{}x", kSet), kInstanceApi)).status, 204);
  EXPECT_EQ(Send("DELETE", InstancePath(7)).status, 204);
  EXPECT_EQ(Send("DELETE", NicPath("none")).status, 204);
  EXPECT_EQ(Send("DELETE", MachinePath("none")).status, 204);
}

TEST_F(StrictnessTest, AParentThatIsNotThereIsNamed) {
  for (const std::string& path :
       {Versioned(fmt::format("{}x/virtualMachines/0", kSet), kInstanceApi),
        Versioned(fmt::format("{}x/virtualMachines/0/networkInterfaces", kSet), kNicApi),
        Versioned(fmt::format("{}x/subnets/pods", kNetwork), kNetworkApi)}) {
    const http::Response response = Get(path);
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_EQ(CodeOf(response), "ParentResourceNotFound") << path;
  }
}

// -- Lists.

TEST_F(StrictnessTest, SetsNetworksAndSubnetsComeInPages) {
  SimSpec spec = SmallSpec(1);
  for (int i = 0; i < 4; ++i) {
    SubnetSpec subnet = spec.subnets[0];
    subnet.prefix = *ip::Prefix::Parse(fmt::format("10.{}.0.0/24", i + 1));
    subnet.id += fmt::format("{}", i);
    spec.subnets.push_back(subnet);
    subnet.id = fmt::format("{}{}/subnets/pods", kNetwork, i);
    spec.subnets.push_back(subnet);
    ScaleSetSpec set = spec.scale_sets[0];
    set.name += fmt::format("{}", i);
    spec.scale_sets.push_back(set);
  }
  Make(spec);
  const std::string in_group = fmt::format("{}/providers/", kGroup);
  const std::string in_all = "/subscriptions/sub/providers/";
  for (const std::string& path :
       {Versioned(in_group + "Microsoft.Compute/virtualMachineScaleSets", kInstanceApi),
        Versioned(in_all + "Microsoft.Compute/virtualMachineScaleSets", kInstanceApi),
        Versioned(in_all + "Microsoft.Compute/locations/eastus2/virtualMachineScaleSets",
                  kInstanceApi),
        Versioned(in_group + "Microsoft.Network/virtualNetworks", kNetworkApi),
        Versioned(in_all + "Microsoft.Network/virtualNetworks", kNetworkApi),
        Versioned(fmt::format("{}/subnets", kNetwork), kNetworkApi)}) {
    for (const int size : {1, 2, 5, 100}) {
      model_->knobs().page_size = size;
      int pages = 0;
      const std::vector<std::string> names = NamesOf(path, &pages);
      EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 5U) << path;
      EXPECT_EQ(names.size(), 5U) << path;
      EXPECT_EQ(pages, (5 + size - 1) / size) << path;
    }
    EXPECT_EQ(Get(path + "&$skiptoken=zz").status, 400) << path;
  }
}

TEST_F(StrictnessTest, InstancesAreFilteredAndSelectedAsDocumented) {
  ASSERT_EQ(Put(0, BodyWith(0, {"spoke-a"})).status, 200);
  const std::string list = Versioned(fmt::format("{}/virtualMachines", kSet), kInstanceApi);
  int pages = 0;
  const std::string filter = list + "&$filter=properties/latestModelApplied%20eq%20";
  EXPECT_THAT(NamesOf(filter + "true", &pages), ElementsAre("pool_1"));
  EXPECT_THAT(NamesOf(filter + "false", &pages), ElementsAre("pool_0"));
  EXPECT_EQ(NamesOf(list + "&$filter=startswith(instanceView/statuses/code,%20'PowerState')%20eq%20"
                           "true",
                    &pages)
                .size(),
            2U);
  EXPECT_EQ(Get(list + "&$filter=name%20eq%20'x'").status, 400);
  const Json one = GetJson(list + "&$expand=instanceView&$select=instanceView")["value"][0];
  EXPECT_TRUE(one["properties"].contains("instanceView"));
  EXPECT_FALSE(one["properties"].contains("networkProfileConfiguration"));
  EXPECT_EQ(Get(list + "&$select=osProfile").status, 400);
  EXPECT_EQ(Get(list + "&$expand=everything").status, 400);
}

TEST_F(StrictnessTest, AListOfMachinesCanShowHowTheyRunAlone) {
  MakeFlexible();
  const Json all = GetJson(
      Versioned("/subscriptions/sub/providers/Microsoft.Compute/virtualMachines", kInstanceApi) +
      "&statusOnly=true");
  ASSERT_EQ(all["value"].size(), 2U);
  EXPECT_TRUE(all["value"][0]["properties"].contains("instanceView"));
  EXPECT_FALSE(all["value"][0]["properties"].contains("storageProfile"));
}

// -- Tags.

TEST_F(StrictnessTest, TagsAreKeptWhereAzureKeepsThem) {
  const Json tags = {{"team", "a"}};
  ASSERT_EQ(Send("PATCH", SetPath(), {{"tags", tags}}).status, 200);
  EXPECT_EQ(GetJson(SetPath())["tags"], tags);
  const std::string network = Versioned(kNetwork, kNetworkApi);
  ASSERT_EQ(Send("PATCH", network, {{"tags", tags}}).status, 200);
  EXPECT_EQ(GetJson(network)["tags"], tags);

  MakeFlexible();
  ASSERT_EQ(Send("PATCH", MachinePath(), {{"tags", tags}}).status, 200);
  EXPECT_EQ(GetJson(MachinePath())["tags"], tags);
  ASSERT_EQ(Send("PATCH", NicPath(), {{"tags", tags}}).status, 200);
  Json nic = GetJson(NicPath());
  EXPECT_EQ(nic["tags"], tags);
  nic["tags"]["more"] = "b";
  ASSERT_EQ(Send("PUT", NicPath(), nic).status, 200);
  now_ += absl::Minutes(1);
  EXPECT_EQ(GetJson(NicPath())["tags"].size(), 2U);
  nic.erase("tags");
  ASSERT_EQ(Send("PUT", NicPath(), nic).status, 200);
  EXPECT_FALSE(GetJson(NicPath()).contains("tags")) << "a PUT is the whole NIC";
}

// -- Operations.

TEST_F(StrictnessTest, WhatAPostBeganEndsAsTheOfficialClientsExpect) {
  for (const auto& [path, body] :
       {std::pair<std::string, Json>(
            Versioned(fmt::format("{}/virtualMachines/0/reimage", kSet), kInstanceApi), Json()),
        std::pair<std::string, Json>(Versioned(fmt::format("{}/manualupgrade", kSet), kInstanceApi),
                                     {{"instanceIds", {"0"}}})}) {
    const http::Response post = Send("POST", path, body);
    ASSERT_EQ(post.status, 202) << post.body;
    ASSERT_TRUE(post.headers.Find("Location").has_value());
    const std::string location(*post.headers.Find("Location"));
    EXPECT_EQ(Get(location).status, 202);
    now_ += absl::Minutes(1);
    EXPECT_EQ(Poll(post)["status"], "Succeeded");
    EXPECT_EQ(Get(location).status, 200);
  }
}

TEST_F(StrictnessTest, AnOperationMayFailAfterTheNicWasWritten) {
  Knobs knobs;
  knobs.failed_operations = 1;
  knobs.failed_after_write = 1;
  knobs.failed_operation_code = "VMExtensionProvisioningError";
  Make(2, knobs);
  const http::Response put = Put(0, BodyWith(0, {"spoke-a"}));
  now_ += absl::Minutes(1);
  EXPECT_EQ(Poll(put)["status"], "Failed");
  EXPECT_EQ(Poll(put)["error"]["code"], "VMExtensionProvisioningError");
  EXPECT_EQ(GetJson(InstancePath(0))["properties"]["provisioningState"], "Failed");
  EXPECT_EQ(AddressesOf(0).size(), 2U);

  MakeFlexible();
  model_->knobs() = knobs;
  Json nic = GetJson(NicPath());
  nic["properties"]["ipConfigurations"].push_back(
      {{"name", "spoke-a"}, {"properties", {{"primary", false}, {"subnet", {{"id", kSubnet}}}}}});
  const http::Response written = Send("PUT", NicPath(), nic);
  now_ += absl::Minutes(1);
  EXPECT_EQ(Poll(written)["status"], "Failed");
  EXPECT_EQ(GetJson(NicPath())["properties"]["ipConfigurations"].size(), 2U);
}

// -- Clouds that have less.

bool HasGlobalLimit(const http::Response& response) {
  for (const http::Header& header : response.headers) {
    if (header.name.find("-global-") != std::string::npos) return true;
  }
  return false;
}

TEST_F(StrictnessTest, ACloudsNetworkMaySayLessOfItsLimits) {
  MakeFlexible();
  EXPECT_TRUE(HasGlobalLimit(Get(NicPath())));
  model_->knobs().network_global_limits = false;
  model_->knobs().network_async_notification = false;
  const http::Response read = Get(NicPath());
  EXPECT_FALSE(HasGlobalLimit(read));
  EXPECT_TRUE(read.headers.Find("x-ms-ratelimit-remaining-subscription-reads").has_value());
  EXPECT_TRUE(HasGlobalLimit(Get(SetPath()))) << "Compute goes on";
  const http::Response put = Send("PUT", NicPath(), GetJson(NicPath()));
  EXPECT_TRUE(put.headers.Find("Azure-AsyncOperation").has_value());
  EXPECT_FALSE(put.headers.Find("Azure-AsyncNotification").has_value());
}

TEST_F(StrictnessTest, ACloudsComputeMayKnowNoBlocks) {
  const Json body = BodyWith(0, {"spoke-a"}, true);
  model_->knobs().compute_blocks = ComputeBlocks::kNoVersion;
  const http::Response put = Send("PUT", InstancePath(0, kBlockApi), body);
  EXPECT_EQ(CodeOf(put), "NoRegisteredProviderFound");
  EXPECT_THAT(MessageOf(put), HasSubstr(", 2026-04-01'")) << "the newest that is left";
  EXPECT_EQ(CodeOf(Get(InstancePath(0, kBlockApi))), "NoRegisteredProviderFound");

  model_->knobs().compute_blocks = ComputeBlocks::kNoField;
  const http::Response field = Send("PUT", InstancePath(0, kBlockApi), body);
  EXPECT_EQ(CodeOf(field), "BadRequest");
  EXPECT_THAT(MessageOf(field), HasSubstr("'privateIPAddressPrefixLength'"));
  EXPECT_EQ(Send("PUT", InstancePath(0, kBlockApi), BodyWith(0, {"spoke-a"})).status, 200);
}

TEST_F(StrictnessTest, KnobsOfOtherCloudsAreSetByName) {
  Knobs knobs;
  ASSERT_TRUE(MergeKnobs(R"({"compute_blocks": "no-field", "network_global_limits": false,
                             "network_async_notification": false, "failed_after_write": 0.5})",
                         &knobs)
                  .ok());
  EXPECT_EQ(knobs.compute_blocks, ComputeBlocks::kNoField);
  EXPECT_FALSE(knobs.network_global_limits);
  EXPECT_FALSE(MergeKnobs(R"({"compute_blocks": "some"})", &knobs).ok());
}

}  // namespace
}  // namespace spoke::azure_sim
