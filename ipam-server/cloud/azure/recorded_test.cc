// What Azure really answered, as recorded by public projects, read by every decoder it concerns.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/cloud/azure/resources/arm_error.h"
#include "ipam-server/cloud/azure/resources/instance_model.h"
#include "ipam-server/cloud/azure/resources/list_page.h"
#include "ipam-server/cloud/azure/resources/nic_resource.h"
#include "ipam-server/cloud/azure/resources/operation.h"
#include "ipam-server/cloud/azure/resources/throttle_headers.h"
#include "ipam-server/cloud/azure/token_request.h"
#include "lib/json_text/json_text.h"
#include "lib/os/file.h"

namespace spoke::ipam::azure {
namespace {

using nlohmann::json;

constexpr const char* kFolder = SPOKE_SOURCE_DIR "/tests/azure-sim/testdata/";
constexpr std::string_view kArm = "https://management.azure.com";

json Load(const std::string& name) {
  const auto text = os::ReadFile(kFolder + name);
  EXPECT_TRUE(text.ok()) << text.status();
  auto document = text.ok() ? json_text::ParseJson(*text) : json();
  EXPECT_TRUE(document.ok()) << name << document.status();
  return document.ok() ? *std::move(document) : json();
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + folder)) {
    names.push_back(folder + "/" + entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void AddHeaders(const json& recorded, http::Headers& headers) {
  for (const auto& [name, value] : recorded.items()) {
    if (value.is_string()) headers.Add(name, value.get<std::string>());
    if (!value.is_array()) continue;
    for (const json& one : value) headers.Add(name, one.get<std::string>());
  }
}

// {"status":...,"headers":{...},"body":...}
http::Response ResponseOf(const json& recorded) {
  http::Response response;
  response.status = recorded.at("status").get<int>();
  if (recorded.contains("headers")) AddHeaders(recorded.at("headers"), response.headers);
  const json& body = recorded.at("body");
  response.body = body.is_string() ? body.get<std::string>() : body.dump();
  return response;
}

http::Response Recorded(const std::string& name) {
  return ResponseOf(Load("real_arm/" + name).at("response"));
}

InstanceModel Instance(const http::Response& response) {
  auto model = DecodeInstance(response);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TEST(RecordedInstance, IsReadAsItStands) {
  const InstanceModel model = Instance(Recorded("virtualmachinescalesetvm_12_GET_200.json"));
  EXPECT_EQ(model.instance_id, "0");
  EXPECT_EQ(ScaleSetOf(model.id)->name(), "testparentresource");
  EXPECT_EQ(model.location, "eastus2");
  EXPECT_EQ(model.etag, "\"1\"");
  EXPECT_EQ(model.provisioning_state, "Succeeded");
  EXPECT_TRUE(model.latest_model_applied);
  ASSERT_TRUE(model.nics.has_value());
  ASSERT_EQ(model.nics->size(), 1U);
  EXPECT_EQ(model.nics->front().name, "vmss1");
  EXPECT_TRUE(model.nics->front().primary);
  ASSERT_EQ(model.nics->front().configurations.size(), 1U);
  EXPECT_TRUE(model.nics->front().configurations.front().primary);
}

TEST(RecordedInstance, IsUpdatingWhenAPutWasAccepted) {
  const http::Response response = Recorded("virtualmachinescalesetvm_10_PUT_200.json");
  EXPECT_EQ(Instance(response).provisioning_state, "Updating");
  const auto headers = DecodeOperationHeaders(response.headers, kArm, absl::UnixEpoch());
  ASSERT_TRUE(headers.ok()) << headers.status();
  EXPECT_NE(headers->operation_url, "");
  EXPECT_EQ(headers->location_url, "");
  EXPECT_EQ(headers->retry_after, std::nullopt);
}

TEST(RecordedInstance, GoesBackWithEverythingThatWasThere) {
  const http::Response response = Recorded("virtualmachinescalesetvm_12_GET_200.json");
  const auto body = BuildInstancePut(
      Instance(response), {.nic_name = "vmss1", .add = {{"spoke-1"}}, .prefix = "spoke-"});
  ASSERT_TRUE(body.ok()) << body.status();
  const json sent = json::parse(*body);
  const auto path = json::json_pointer(
      "/properties/networkProfileConfiguration/networkInterfaceConfigurations/0/properties");
  json nic = sent.at(path);
  json before = json::parse(response.body).at(path);
  EXPECT_EQ(nic["ipConfigurations"].size(), 2U);
  nic.erase("ipConfigurations");
  before.erase("ipConfigurations");
  EXPECT_EQ(nic, before);
  EXPECT_EQ(body->find("imageReference"), std::string::npos);
}

// The PUT that other programs send, of which ours must have the shape.
TEST(RecordedPut, OfAScaleSetsVmHasTheShapeOfOurs) {
  const json example = Load("requests/put_vmss_vm_add_secondary.json");
  const auto path = json::json_pointer(
      "/properties/networkProfileConfiguration/networkInterfaceConfigurations/0/properties/"
      "ipConfigurations");
  json before = {{"id",
                  "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/"
                  "virtualMachineScaleSets/p/virtualMachines/0"},
                 {"location", "eastus2"},
                 {"properties", example.at("body").at("properties")}};
  before.at(path).erase(1);
  const auto model = DecodeInstance(before);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto body =
      BuildInstancePut(*model, {.nic_name = "nic0", .add = {{"ipam-0a1b2c3d"}}, .prefix = "ipam-"});
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(json::parse(*body), example.at("body"));
}

TEST(RecordedPut, OfANicHasTheShapeOfOurs) {
  const json example = Load("requests/put_nic_add_secondary_and_prefix.json");
  json nic = example.at("body");
  nic["id"] = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/networkInterfaces/n";
  json before = nic;
  json& list = before["properties"]["ipConfigurations"];
  list.erase(2);
  list[1]["name"] = "ipam-old";
  const auto body = BuildNicPut(before, {.nic_name = "n",
                                         .add = {{"ipam-1"}, {"ipam-2", ip::Family::kV4, 28}},
                                         .remove = {"ipam-old"},
                                         .prefix = "ipam-"});
  ASSERT_TRUE(body.ok()) << body.status();
  json want = nic;
  want["properties"]["ipConfigurations"][2]["name"] = "ipam-2";
  // We say the family too, as newer clients do.
  for (const size_t i : {size_t{1}, size_t{2}}) {
    want["properties"]["ipConfigurations"][i]["properties"]["privateIPAddressVersion"] = "IPv4";
  }
  EXPECT_EQ(json::parse(*body), want);
}

TEST(RecordedNic, OfAScaleSetIsReadAloneAndInAList) {
  const auto alone = DecodeNic(ResponseOf(Load("vmss_nic/get_vm_nic.json").at("response")));
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->id.kind(), ResourceKind::kInstanceNic);
  EXPECT_EQ(alone->mac->ToString(), "00:0d:3a:31:45:48");
  EXPECT_EQ(alone->machine, alone->id.Parent());
  EXPECT_TRUE(alone->primary);
  ASSERT_EQ(alone->configurations.size(), 1U);
  EXPECT_EQ(alone->configurations[0].range->ToString(), "10.0.0.4/32");
  EXPECT_TRUE(alone->configurations[0].IsUsable());

  const auto page =
      DecodeListPage(ResponseOf(Load("vmss_nic/list_vm_nics.json").at("response")).body);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->items.size(), 1U);
  EXPECT_EQ(page->next_link, "");
  const auto listed = DecodeNic(page->items[0]);
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(listed->id, alone->id);
  EXPECT_EQ(listed->etag, alone->etag);
  EXPECT_EQ(listed->configurations, alone->configurations);
}

TEST(RecordedNic, OfItsOwnIsReadBeforeItIsAttached) {
  for (const char* name :
       {"interface_04_PUT_201.json", "interface_05_GET_200.json", "interface_07_PUT_200.json"}) {
    const auto nic = DecodeNic(Recorded(name));
    ASSERT_TRUE(nic.ok()) << name << nic.status();
    EXPECT_EQ(nic->id.kind(), ResourceKind::kNic);
    EXPECT_EQ(nic->provisioning_state, "Succeeded");
    EXPECT_EQ(nic->mac, std::nullopt);
    EXPECT_EQ(nic->machine, std::nullopt);
    ASSERT_EQ(nic->configurations.size(), 1U);
    EXPECT_EQ(nic->configurations[0].range->ToString(), "10.0.0.4/32");
    EXPECT_TRUE(nic->configurations[0].primary);
  }
}

TEST(RecordedLists, HaveItemsAndNoNextLink) {
  for (const char* name : {"interface_08_GET_200.json", "subnet_11_GET_200.json",
                           "virtualmachinescaleset_12_GET_200.json",
                           "virtualmachine_15_GET_200.json", "virtualnetwork_09_GET_200.json"}) {
    const auto page = DecodeListPage(Recorded(name).body);
    ASSERT_TRUE(page.ok()) << name << page.status();
    EXPECT_EQ(page->items.size(), 1U) << name;
    EXPECT_EQ(page->next_link, "") << name;
  }
}

// Whatever was recorded, of whatever kind, is read or refused, and no error is called unknown.
TEST(RecordedAnswers, AreAllRead) {
  size_t errors = 0;
  for (const std::string& name : NamesIn("real_arm")) {
    const http::Response response = ResponseOf(Load(name).at("response"));
    EXPECT_TRUE(DecodeOperationHeaders(response.headers, kArm, absl::UnixEpoch()).ok()) << name;
    DecodeThrottleHeaders(response.headers);
    if (response.status < 400) continue;
    ++errors;
    const ArmError error = DecodeArmError(response, absl::UnixEpoch());
    EXPECT_NE(error.kind, ErrorKind::kUnknown) << name;
    EXPECT_NE(error.code, "") << name;
  }
  EXPECT_EQ(errors, 14U);
}

TEST(RecordedOperation, HasSucceeded) {
  const auto operation = DecodeOperation(Recorded("virtualmachinescalesetvm_11_GET_200.json").body);
  ASSERT_TRUE(operation.ok()) << operation.status();
  EXPECT_EQ(operation->state, OperationState::kSucceeded);
  const auto headers = DecodeOperationHeaders(
      Recorded("virtualmachinescalesetvm_16_DELETE_202.json").headers, kArm, absl::UnixEpoch());
  ASSERT_TRUE(headers.ok()) << headers.status();
  EXPECT_NE(headers->operation_url, headers->location_url);
}

TEST(RecordedOperation, FailsWithHttp200) {
  const json recorded = Load("errors/200_async_failed.json");
  const auto operation = DecodeOperation(recorded.at("body").dump());
  ASSERT_TRUE(operation.ok()) << operation.status();
  EXPECT_EQ(operation->state, OperationState::kFailed);
  ASSERT_TRUE(operation->error.has_value());
  EXPECT_EQ(operation->error->code, "PublicIpPrefixOutOfIpAddressesForVMScaleSet");
  EXPECT_EQ(operation->error->kind, ErrorKind::kLimit);
}

struct ErrorCase {
  const char* name;
  ErrorKind want;
};

class RecordedErrorTest : public testing::TestWithParam<ErrorCase> {};

TEST_P(RecordedErrorTest, SaysWhatToDo) {
  const std::string file = std::string("errors/") + GetParam().name + ".json";
  const ArmError error = DecodeArmError(ResponseOf(Load(file)), absl::UnixEpoch());
  EXPECT_EQ(error.kind, GetParam().want) << Describe(error);
  EXPECT_NE(error.code, "");
  EXPECT_NE(Describe(error).find(error.code), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Errors, RecordedErrorTest,
    testing::Values(ErrorCase{"400_instance_id", ErrorKind::kBadRequest},
                    ErrorCase{"400_ip_allocated", ErrorKind::kBadRequest},
                    ErrorCase{"400_no_ipconfig", ErrorKind::kBadRequest},
                    ErrorCase{"400_primary_delete", ErrorKind::kBadRequest},
                    ErrorCase{"400_subnet_full", ErrorKind::kSubnetFull},
                    ErrorCase{"400_vmss_secondary_count", ErrorKind::kLimit},
                    ErrorCase{"403_linked_authorization", ErrorKind::kForbidden},
                    ErrorCase{"404_nested_network", ErrorKind::kResourceGone},
                    ErrorCase{"404_resource_arm", ErrorKind::kInstanceGone},
                    ErrorCase{"404_rg", ErrorKind::kGroupGone},
                    ErrorCase{"409_concurrent", ErrorKind::kConflict},
                    ErrorCase{"409_marked_for_deletion", ErrorKind::kGoingAway},
                    ErrorCase{"412_compute", ErrorKind::kPrecondition},
                    ErrorCase{"412_network", ErrorKind::kPrecondition},
                    ErrorCase{"429_compute_throttle", ErrorKind::kThrottled},
                    ErrorCase{"429_network_another_operation", ErrorKind::kAnotherOperation},
                    ErrorCase{"429_network_ref_not_provisioned", ErrorKind::kAnotherOperation}),
    [](const auto& test) { return test.param.name; });

TEST(RecordedError, NamesTheLimitAndTheWait) {
  const http::Response response = ResponseOf(Load("errors/429_compute_throttle.json"));
  const ArmError throttled = DecodeArmError(response, absl::UnixEpoch());
  EXPECT_EQ(throttled.limit, "HighCostGet30Min");
  EXPECT_EQ(throttled.retry_after, absl::Seconds(1200));
  const std::vector<RemainingQuota> want = {{"Microsoft.Compute/HighCostGet3Min", 46},
                                            {"Microsoft.Compute/HighCostGet30Min", 0}};
  EXPECT_EQ(DecodeThrottleHeaders(response.headers).remaining, want);
}

TEST(RecordedErrors, AreAllExpectedAbove) {
  EXPECT_EQ(NamesIn("errors").size(), 18U);  // The table's, and the failed operation.
}

TEST(RecordedToken, LivesAsLongAsTheMetadataServiceSays) {
  const json recorded = Load("imds/token.json");
  const absl::Time now = absl::FromUnixSeconds(1506480574);
  const auto token = DecodeToken({200, {}, recorded.at("ok").dump()}, now);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->text, "eyJ0eXAi...");
  EXPECT_EQ(token->expires, now + absl::Seconds(3599));
  EXPECT_EQ(DescribeTokenError({400, {}, recorded.at("err_400").dump()}),
            "HTTP 400, bad_request_102: Required metadata header not specified");
}

TEST(RecordedHeaders, TellWhatIsLeft) {
  const json recorded = Load("arm_headers/real_headers.json");
  const auto decode = [&recorded](const char* name) {
    http::Headers headers;
    AddHeaders(recorded.at(name), headers);
    return DecodeThrottleHeaders(headers);
  };
  const ThrottleState list = decode("list_vmss_vms_4_instances");
  EXPECT_EQ(list.charge, 4);
  ASSERT_EQ(list.remaining.size(), 3U);
  EXPECT_EQ(list.remaining[1],
            (RemainingQuota{"Microsoft.Compute/HighCostGetVMScaleSet30Min", 886}));
  const ThrottleState put = decode("put_vmss_vm");
  ASSERT_EQ(put.remaining.size(), 5U);
  EXPECT_EQ(put.remaining[4], (RemainingQuota{"subscription-writes", 1189}));
  const ThrottleState network = decode("network_put_nic_on_attached_vm");
  EXPECT_EQ(network.remaining, (std::vector<RemainingQuota>{{"subscription-writes", 1197}}));
}

}  // namespace
}  // namespace spoke::ipam::azure
