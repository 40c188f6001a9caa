#include "ipam-server/cloud/azure/resources/nic_resource.h"

#include <utility>

#include "gtest/gtest.h"

namespace spoke::ipam::azure {
namespace {

using nlohmann::json;

constexpr std::string_view kNic = R"({
  "name":"nic0","etag":"W/\"1\"","location":"eastus","tags":{"k":"v"},
  "id":"/subscriptions/S/resourceGroups/RG/providers/Microsoft.Network/networkInterfaces/nic0",
  "properties":{"provisioningState":"Succeeded","macAddress":"00-0D-3A-31-45-48","primary":true,
    "networkSecurityGroup":{"id":"/nsg"},
    "virtualMachine":{"id":"/subscriptions/S/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/VM"},
    "ipConfigurations":[
      {"name":"spoke-block","etag":"W/\"1\"","properties":{"provisioningState":"Succeeded",
        "privateIPAddress":"10.0.0.16","privateIPAddressPrefixLength":28,"primary":false}},
      {"name":"spoke-a","properties":{"provisioningState":"Updating","primary":false}},
      {"name":"first","properties":{"provisioningState":"Succeeded","privateIPAddress":"10.0.0.4",
        "privateIPAllocationMethod":"Dynamic","subnet":{"id":"/subscriptions/S/subnets/Pods","name":"Pods"},
        "primary":true,"privateIPAddressVersion":"IPv4"}}]}})";

json Document() { return json::parse(kNic); }
json& Configurations(json& document) { return document["properties"]["ipConfigurations"]; }

NicResource Nic(const json& document) {
  auto nic = DecodeNic(document);
  EXPECT_TRUE(nic.ok()) << nic.status();
  return *std::move(nic);
}

ip::Prefix Range(std::string_view text) { return *ip::Prefix::Parse(text); }

TEST(DecodeNic, KnowsItsAddressesSortedByName) {
  const NicResource nic = Nic(Document());
  EXPECT_EQ(nic.id.kind(), ResourceKind::kNic);
  EXPECT_EQ(nic.name, "nic0");
  EXPECT_EQ(nic.etag, "W/\"1\"");
  EXPECT_EQ(nic.mac->ToString(), "00:0d:3a:31:45:48");
  EXPECT_TRUE(nic.primary);
  EXPECT_EQ(nic.machine->name(), "vm");
  const std::vector<NicConfiguration> want = {
      {"first", true, "Succeeded", Range("10.0.0.4/32"), "/subscriptions/s/subnets/pods"},
      {"spoke-a", false, "Updating", std::nullopt, ""},
      {"spoke-block", false, "Succeeded", Range("10.0.0.16/28"), ""}};
  EXPECT_EQ(nic.configurations, want);
  EXPECT_TRUE(want[0].IsUsable());
  EXPECT_FALSE(want[1].IsUsable());
}

TEST(DecodeNic, DoesNotAssignAnAddressThatIsStillComing) {
  json document = Document();
  Configurations(document)[0]["properties"]["provisioningState"] = "Failed";
  EXPECT_FALSE(Nic(document).configurations[2].IsUsable());
}

struct RangeCase {
  const char* name;
  const char* properties;
  const char* want;  // Empty: refused.
};

class NicRangeTest : public testing::TestWithParam<RangeCase> {};

TEST_P(NicRangeTest, IsReadInAllItsForms) {
  json document = Document();
  Configurations(document) =
      json::array({{{"name", "x"}, {"properties", json::parse(GetParam().properties)}}});
  const auto nic = DecodeNic(document);
  if (std::string_view(GetParam().want).empty()) {
    EXPECT_EQ(nic.status().code(), absl::StatusCode::kInvalidArgument);
    return;
  }
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(nic->configurations[0].range, Range(GetParam().want));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, NicRangeTest,
    testing::Values(
        RangeCase{"Single", R"({"privateIPAddress":"10.0.0.4"})", "10.0.0.4/32"},
        RangeCase{"SingleWithLength",
                  R"({"privateIPAddress":"10.0.0.4","privateIPAddressPrefixLength":32})",
                  "10.0.0.4/32"},
        RangeCase{"NullLength",
                  R"({"privateIPAddress":"10.0.0.4","privateIPAddressPrefixLength":null})",
                  "10.0.0.4/32"},
        RangeCase{"BlockInText", R"({"privateIPAddress":"10.0.0.16/28"})", "10.0.0.16/28"},
        RangeCase{"BlockInBoth",
                  R"({"privateIPAddress":"10.0.0.16/28","privateIPAddressPrefixLength":28})",
                  "10.0.0.16/28"},
        RangeCase{"V6", R"({"privateIPAddress":"fd00::4"})", "fd00::4/128"},
        RangeCase{"LengthsDiffer",
                  R"({"privateIPAddress":"10.0.0.16/28","privateIPAddressPrefixLength":27})", ""},
        RangeCase{"NotTheBase",
                  R"({"privateIPAddress":"10.0.0.17","privateIPAddressPrefixLength":28})", ""},
        RangeCase{"NotTheBaseInText", R"({"privateIPAddress":"10.0.0.17/28"})", ""},
        RangeCase{"LengthZero",
                  R"({"privateIPAddress":"10.0.0.16","privateIPAddressPrefixLength":0})", ""},
        RangeCase{"LengthTooLarge",
                  R"({"privateIPAddress":"10.0.0.16","privateIPAddressPrefixLength":33})", ""},
        RangeCase{"NoAddress", R"({"privateIPAddress":"tomorrow"})", ""}),
    [](const auto& test) { return test.param.name; });

TEST(DecodeNic, TellsAnUnknownListFromAnEmptyOne) {
  json document = Document();
  Configurations(document) = json::array();
  EXPECT_TRUE(Nic(document).configurations.empty());
  Configurations(document) = nullptr;
  EXPECT_EQ(DecodeNic(document).status().code(), absl::StatusCode::kFailedPrecondition);
  document["properties"].erase("ipConfigurations");
  EXPECT_EQ(DecodeNic(document).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(DecodeNic, TakesOneThatHasNoVmAndNoMacYet) {
  json document = Document();
  document["properties"]["virtualMachine"] = nullptr;
  document["properties"].erase("macAddress");
  document.erase("etag");
  const auto nic = DecodeNic(http::Response{200, {{"ETag", "W/\"2\""}}, document.dump()});
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(nic->machine, std::nullopt);
  EXPECT_EQ(nic->mac, std::nullopt);
  EXPECT_EQ(nic->etag, "W/\"2\"");
}

TEST(DecodeNic, RefusesOtherShapes) {
  const auto refuses = [](const auto& spoil) {
    json document = Document();
    spoil(document);
    EXPECT_EQ(DecodeNic(document).status().code(), absl::StatusCode::kInvalidArgument) << document;
  };
  refuses([](json& d) { d = "nic"; });
  refuses([](json& d) { d["id"] = "nic0"; });
  refuses([](json& d) {
    d["id"] = "/subscriptions/S/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/v";
  });
  refuses([](json& d) { d["properties"] = json::array(); });
  refuses([](json& d) { d["properties"]["macAddress"] = "00-0D-3A"; });
  refuses([](json& d) { d["properties"]["virtualMachine"] = {{"id", "vm"}}; });
  refuses([](json& d) { Configurations(d) = "none"; });
  refuses([](json& d) { Configurations(d)[1] = 7; });
  refuses([](json& d) { Configurations(d)[1]["properties"] = nullptr; });
  refuses([](json& d) { Configurations(d)[1]["name"] = "first"; });
}

TEST(ParseMac, TakesTheFormsOfArmTheMetadataServiceAndTheKernel) {
  for (const char* text : {"00-0D-3A-31-45-48", "00:0d:3a:31:45:48", "000D3A314548"}) {
    const auto mac = ParseMac(text);
    ASSERT_TRUE(mac.ok()) << text;
    EXPECT_EQ(mac->ToString(), "00:0d:3a:31:45:48");
  }
  for (const char* text :
       {"", "000D3A31454", "00-0D-3A-31-45-4G", "00-0D-3A-31-4548-", "------------"}) {
    EXPECT_FALSE(ParseMac(text).ok()) << text;
  }
}

TEST(BuildNicPut, SendsTheWholeNicBack) {
  json document = Document();
  const auto body = BuildNicPut(document, {.nic_name = "nic0",
                                           .add = {{"spoke-b"}, {"spoke-c", ip::Family::kV4, 28}},
                                           .remove = {"spoke-a"},
                                           .prefix = "spoke-"});
  ASSERT_TRUE(body.ok()) << body.status();
  json sent = json::parse(*body);
  const json list = Configurations(sent);
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list[0], Configurations(document)[0]);
  EXPECT_EQ(list[1], Configurations(document)[2]);
  const json want = json::parse(R"({"name":"spoke-b","properties":{"primary":false,
      "privateIPAllocationMethod":"Dynamic","privateIPAddressVersion":"IPv4",
      "subnet":{"id":"/subscriptions/S/subnets/Pods"}}})");
  EXPECT_EQ(list[2], want);
  EXPECT_EQ(list[3]["properties"]["privateIPAddressPrefixLength"], 28);
  Configurations(sent) = Configurations(document);
  EXPECT_EQ(sent, document);
}

TEST(BuildNicPut, RefusesAnotherNicAndOneWhoseListIsNotKnown) {
  json document = Document();
  EXPECT_EQ(BuildNicPut(document, {.nic_name = "nic1", .prefix = "spoke-"}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(BuildNicPut(document, {.nic_name = "nic0", .remove = {"first"}, .prefix = "spoke-"})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  Configurations(document) = nullptr;
  EXPECT_EQ(BuildNicPut(document, {.nic_name = "nic0", .prefix = "spoke-"}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace spoke::ipam::azure
