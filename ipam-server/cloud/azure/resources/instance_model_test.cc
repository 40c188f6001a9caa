#include "ipam-server/cloud/azure/resources/instance_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "gtest/gtest.h"

namespace spoke::ipam::azure {
namespace {

using nlohmann::json;

constexpr std::string_view kInstance = R"({
  "name":"Pool_3","instanceId":"3","location":"eastus2","etag":"\"7\"",
  "id":"/subscriptions/S/resourceGroups/RG/providers/Microsoft.Compute/virtualMachineScaleSets/Pool/virtualMachines/3",
  "properties":{"latestModelApplied":true,"provisioningState":"Succeeded","vmId":"ABC-1",
    "storageProfile":{"imageReference":{"id":"/subscriptions/other/galleries/g"}},
    "networkProfileConfiguration":{"networkInterfaceConfigurations":[
      {"name":"storage","properties":{"primary":false,"ipConfigurations":[
        {"name":"s0","properties":{"subnet":{"id":"/subscriptions/S/subnets/storage"}}}]}},
      {"name":"nic0","properties":{"primary":true,"enableAcceleratedNetworking":true,
        "networkSecurityGroup":{"id":"/nsg"},"aFieldOfTomorrow":{"x":[1,2]},
        "ipConfigurations":[
          {"name":"first","properties":{"subnet":{"id":"/subscriptions/S/subnets/Pods"},
            "privateIPAddressVersion":"IPv4","applicationSecurityGroups":[{"id":"/asg1"}],
            "loadBalancerBackendAddressPools":[{"id":"/lb"}],
            "publicIPAddressConfiguration":{"name":"pub","properties":{"idleTimeoutInMinutes":4}}}},
          {"name":"spoke-a","properties":{"primary":false,"subnet":{"id":"/subscriptions/S/subnets/Pods"},
            "privateIPAddressVersion":"IPv4"}}]}}]}}})";

json Document() { return json::parse(kInstance); }

json& Configurations(json& document) {
  return document["properties"]["networkProfileConfiguration"]["networkInterfaceConfigurations"][1]
                 ["properties"]["ipConfigurations"];
}

InstanceModel Model(const json& document) {
  auto model = DecodeInstance(document);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

NicChange Change(std::vector<NewConfiguration> add, std::vector<std::string> remove) {
  return {
      .nic_name = "NIC0", .add = std::move(add), .remove = std::move(remove), .prefix = "spoke-"};
}

// The body of the PUT, decoded.
json Put(const json& document, const NicChange& change) {
  const auto body = BuildInstancePut(Model(document), change);
  EXPECT_TRUE(body.ok()) << body.status();
  return json::parse(*body);
}

TEST(DecodeInstance, KnowsWhatIsOnEachNic) {
  const InstanceModel model = Model(Document());
  EXPECT_EQ(model.id.name(), "3");
  EXPECT_EQ(model.instance_id, "3");
  EXPECT_EQ(model.location, "eastus2");
  EXPECT_EQ(model.etag, "\"7\"");
  EXPECT_EQ(model.provisioning_state, "Succeeded");
  EXPECT_EQ(model.vm_id, "abc-1");
  EXPECT_TRUE(model.latest_model_applied);
  ASSERT_TRUE(model.nics.has_value());
  const ModelNic want{
      .name = "nic0",
      .primary = true,
      .configurations = {{"first", true, ip::Family::kV4, 32, "/subscriptions/s/subnets/pods"},
                         {"spoke-a", false, ip::Family::kV4, 32, "/subscriptions/s/subnets/pods"}}};
  EXPECT_EQ(model.nics->at(1), want);
}

TEST(DecodeInstance, TakesTheEtagOfTheHeaderWhenTheBodyHasNone) {
  json document = Document();
  EXPECT_EQ(DecodeInstance(http::Response{200, {{"etag", "\"8\""}}, document.dump()})->etag,
            "\"7\"");
  document.erase("etag");
  EXPECT_EQ(DecodeInstance(http::Response{200, {{"etag", "\"8\""}}, document.dump()})->etag,
            "\"8\"");
}

TEST(DecodeInstance, TellsAnInstanceWithoutNetworkProfile) {
  json document = Document();
  document["properties"]["networkProfileConfiguration"] = nullptr;
  EXPECT_EQ(Model(document).nics, std::nullopt);
  document["properties"].erase("networkProfileConfiguration");
  EXPECT_EQ(Model(document).nics, std::nullopt);
  EXPECT_EQ(BuildInstancePut(Model(document), Change({}, {})).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(DecodeInstance, RefusesOtherShapes) {
  const auto refuses = [](const auto& spoil) {
    json document = Document();
    spoil(document);
    EXPECT_EQ(DecodeInstance(document).status().code(), absl::StatusCode::kInvalidArgument)
        << document;
  };
  refuses([](json& d) { d = json::array(); });
  refuses([](json& d) { d["id"] = "/subscriptions/S"; });
  refuses([](json& d) { d["id"] = 7; });
  refuses([](json& d) { d.erase("properties"); });
  refuses([](json& d) { d["properties"] = "x"; });
  refuses([](json& d) { d["properties"]["networkProfileConfiguration"] = json::array(); });
  refuses([](json& d) { Configurations(d) = "none"; });
  refuses([](json& d) { Configurations(d) = nullptr; });
  refuses([](json& d) { Configurations(d)[0] = 1; });
  refuses([](json& d) { Configurations(d)[0]["name"] = ""; });
  refuses([](json& d) { Configurations(d)[1]["properties"]["privateIPAddressPrefixLength"] = 99; });
}

TEST(BuildInstancePut, SendsTheLocationAndTheNetworkProfileAlone) {
  const json body = Put(Document(), Change({{"spoke-b"}}, {}));
  EXPECT_EQ(body["location"], "eastus2");
  EXPECT_EQ(body.size(), 2U);
  EXPECT_EQ(body["properties"].size(), 1U);
  EXPECT_TRUE(body["properties"].contains("networkProfileConfiguration"));
}

// One dropped field is one that Azure changes: load balancers, public addresses, security groups.
TEST(BuildInstancePut, SendsEveryOtherFieldAsItWas) {
  json document = Document();
  const json body = Put(document, Change({}, {}));
  Configurations(document)[0]["properties"]["primary"] = true;  // It is made explicit.
  EXPECT_EQ(body["properties"]["networkProfileConfiguration"],
            document["properties"]["networkProfileConfiguration"]);
}

TEST(BuildInstancePut, AddsWithTheSubnetAndTheSecurityGroupsOfThePrimary) {
  json body =
      Put(Document(),
          Change({{"spoke-b"}, {"spoke-c", ip::Family::kV4, 28}, {"spoke-d", ip::Family::kV6, 128}},
                 {"spoke-a"}));
  const json& list = Configurations(body);
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list[0]["properties"]["primary"], true);
  const json want = json::parse(R"({"name":"spoke-b","properties":{"primary":false,
      "privateIPAddressVersion":"IPv4","subnet":{"id":"/subscriptions/S/subnets/Pods"},
      "applicationSecurityGroups":[{"id":"/asg1"}]}})");
  EXPECT_EQ(list[1], want);
  EXPECT_EQ(list[2]["properties"]["privateIPAddressPrefixLength"], 28);
  EXPECT_EQ(list[3]["properties"]["privateIPAddressVersion"], "IPv6");
  EXPECT_FALSE(list[3]["properties"].contains("privateIPAddressPrefixLength"));
}

TEST(BuildInstancePut, ChangesNothingWhenSentAgain) {
  const NicChange change = Change({{"spoke-b"}}, {"spoke-a", "spoke-never-there"});
  json document = Document();
  json once = Put(document, change);
  Configurations(document) = Configurations(once);
  EXPECT_EQ(Put(document, change), once);
}

TEST(BuildInstancePut, MarksThePrimaryOnlyAmongSeveral) {
  json document = Document();
  Configurations(document).erase(1);
  json alone = Put(document, Change({}, {}));
  EXPECT_FALSE(Configurations(alone)[0]["properties"].contains("primary"));
  json two = Put(document, Change({{"spoke-b"}}, {}));
  EXPECT_EQ(Configurations(two)[0]["properties"]["primary"], true);
}

TEST(BuildInstancePut, GoesByThePrimaryWhereverItIs) {
  json document = Document();
  Configurations(document)[1]["name"] = "last";
  Configurations(document)[1]["properties"]["primary"] = true;
  Configurations(document)[1]["properties"]["subnet"]["id"] = "/subscriptions/S/subnets/Other";
  json body = Put(document, Change({{"spoke-b"}}, {}));
  EXPECT_EQ(Configurations(body)[2]["properties"]["subnet"]["id"],
            "/subscriptions/S/subnets/Other");
  EXPECT_FALSE(Configurations(body)[0]["properties"].contains("primary"));
}

TEST(BuildInstancePut, NeverTouchesThePrimaryOrWhatIsNotOurs) {
  json document = Document();
  const auto code = [&document](const NicChange& change) {
    return BuildInstancePut(Model(document), change).status().code();
  };
  EXPECT_EQ(code(Change({}, {"first"})), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Change({{"mine"}}, {})), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Change({{"spoke-"}}, {})), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Change({{"spoke-b", ip::Family::kV4, 0}}, {})),
            absl::StatusCode::kInvalidArgument);
  NicChange no_prefix = Change({{"spoke-b"}}, {});
  no_prefix.prefix.clear();
  EXPECT_EQ(code(no_prefix), absl::StatusCode::kInvalidArgument);
  // The primary stays even if somebody gave it a name like ours.
  Configurations(document)[0]["name"] = "spoke-first";
  EXPECT_EQ(code(Change({}, {"spoke-first"})), absl::StatusCode::kInvalidArgument);
}

TEST(BuildInstancePut, RefusesWhatItCannotGoBy) {
  const auto code = [](const json& document) {
    return BuildInstancePut(Model(document), Change({{"spoke-b"}}, {})).status().code();
  };
  json two_primaries = Document();
  for (json& entry : Configurations(two_primaries)) entry["properties"]["primary"] = true;
  EXPECT_EQ(code(two_primaries), absl::StatusCode::kFailedPrecondition);
  json empty = Document();
  Configurations(empty) = json::array();
  EXPECT_EQ(code(empty), absl::StatusCode::kFailedPrecondition);
  json no_subnet = Document();
  Configurations(no_subnet)[0]["properties"].erase("subnet");
  EXPECT_EQ(code(no_subnet), absl::StatusCode::kFailedPrecondition);
  NicChange other = Change({{"spoke-b"}}, {});
  other.nic_name = "nic7";
  EXPECT_EQ(BuildInstancePut(Model(Document()), other).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(BuildInstancePut, StaysWithinWhatAVmMayHave) {
  // The NIC has 2 and another one 1: 253 more make 256.
  NicChange change = Change({}, {});
  for (size_t i = 0; i < kMaxConfigurations - 3; ++i) {
    change.add.push_back({fmt::format("spoke-{:04}", i)});
  }
  json body = Put(Document(), change);
  EXPECT_EQ(Configurations(body).size(), kMaxConfigurations - 1);
  change.add.push_back({"spoke-one-more"});
  EXPECT_EQ(BuildInstancePut(Model(Document()), change).status().code(),
            absl::StatusCode::kResourceExhausted);
  // Room made by the same change counts.
  change.remove = {"spoke-a"};
  EXPECT_TRUE(BuildInstancePut(Model(Document()), change).ok());
}

TEST(InstancePutVersion, IsTheNewOneForBlocksAlone) {
  json document = Document();
  EXPECT_EQ(InstancePutVersion(Model(document), Change({{"spoke-b"}}, {})), kComputeVersion);
  EXPECT_EQ(InstancePutVersion(Model(document), Change({{"spoke-b", ip::Family::kV4, 28}}, {})),
            kComputeBlocksVersion);
  // An old version would not see the length, and send the entry back without it.
  Configurations(document)[1]["properties"]["privateIPAddressPrefixLength"] = 28;
  EXPECT_EQ(InstancePutVersion(Model(document), Change({}, {})), kComputeBlocksVersion);
}

}  // namespace
}  // namespace spoke::ipam::azure
