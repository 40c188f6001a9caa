// Tests with recorded requests of real clients, sent to the model: it has to answer as Azure did.
#include <functional>

#include "gmock/gmock.h"
#include "tests/azure-sim/model_for_test.h"
#include "tests/azure-sim/recorded.h"

namespace spoke::azure_sim {
namespace {

constexpr const char* kSubscription = "00000000-0000-0000-0000-000000000000";

std::string SubnetId(std::string_view group, std::string_view network, std::string_view name) {
  return fmt::format(
      "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network/virtualNetworks/{}/subnets/"
      "{}",
      kSubscription, group, network, name);
}

// Returns what the recorded requests expect to be there.
SimSpec RecordedWorld() {
  SimSpec spec;
  const auto subnet = [&spec](std::string_view group, std::string_view network,
                              std::string_view name) {
    spec.subnets.push_back(
        {SubnetId(group, network, name), *ip::Prefix::Parse("10.1.0.0/24"), std::nullopt});
    return spec.subnets.back().id;
  };
  const auto set = [&](std::string_view group, std::string_view name, std::string_view nic) {
    ScaleSetSpec made;
    made.subscription = kSubscription;
    made.resource_group = std::string(group);
    made.name = std::string(name);
    made.nic = std::string(nic);
    made.ip_configuration = std::string(nic);
    made.sku = "Standard_D2s_v3";
    made.computer_name_prefix = "vmss";
    made.ip_forwarding = true;
    made.instances = 1;
    made.subnet_id = subnet(group, "vnet1", "subnet1");
    spec.scale_sets.push_back(made);
  };
  set("aks-cit-VirtualMachineScaleSet", "testResource", "testResource");
  set("aks-cit-VirtualMachineScaleSetVM", "testParentResource", "vmss1");
  set("aks-cit-VirtualMachine", "flexible", "nic");
  spec.scale_sets.back().orchestration = Orchestration::kFlexible;
  spec.scale_sets.back().first.push_back({"", "testResource", {}, {}});
  subnet("aks-cit-Interface", "testVnet", "testSubnet");
  subnet("aks-cit-Subnet", "testParentResource", "testResource");
  subnet("aks-cit-VirtualNetwork", "testResource", "one");
  spec.subnets.back().location = "westus";
  return spec;
}

struct Case {
  std::string file;
  // Makes the world ready; may change the URL, where it names what only the model knows.
  std::function<void(ArmModel&, absl::Time*, std::string*)> prepare = nullptr;
  bool without_sets = false;
  bool without_subnet = false;
};

void PutNic(ArmModel& model, absl::Time* now, std::string*) {
  const Json put = ReadTestdataJson("real_arm/interface_04_PUT_201.json");
  const http::Request request{"PUT", put["request"]["url"], {}, put["request"]["body"].dump()};
  EXPECT_EQ(model.Handle(request, *now).status, 201);
}

// Waits for an operation that a write has started.
void AfterWrite(ArmModel& model, absl::Time* now, std::string* url) {
  const Json put = ReadTestdataJson("real_arm/virtualmachinescalesetvm_10_PUT_200.json");
  const http::Request request{"PUT", put["request"]["url"], {}, put["request"]["body"].dump()};
  const http::Response response = model.Handle(request, *now);
  *url = std::string(response.headers.Find("Azure-AsyncOperation").value_or(""));
  *now += absl::Minutes(1);
}

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"interface_04_PUT_201"},
      {"interface_05_GET_200", PutNic},
      {"interface_06_GET_404"},
      {"interface_07_PUT_200", PutNic},
      {"interface_08_GET_200", PutNic},
      {"interface_09_GET_404"},
      {"interface_10_DELETE_200", PutNic},
      {"subnet_04_PUT_201", nullptr, false, true},
      {"subnet_06_GET_200"},
      {"subnet_07_GET_200"},
      {"subnet_08_GET_404"},
      {"subnet_09_PUT_200"},
      {"subnet_11_GET_200"},
      {"subnet_12_GET_404"},
      {"virtualmachine_04_PUT_201"},
      {"virtualmachine_05_GET_404",
       [](ArmModel& model, absl::Time*, std::string*) {
         model.world().FindGroup(kSubscription, "aks-cit-VirtualMachine")->vms.clear();
       }},
      {"virtualmachine_14_PUT_412"},
      {"virtualmachine_15_GET_200"},
      {"virtualmachinescaleset_04_GET_404", nullptr, true},
      {"virtualmachinescaleset_05_PUT_201", nullptr, true},
      {"virtualmachinescaleset_08_PUT_200"},
      {"virtualmachinescaleset_09_GET_200", AfterWrite},
      {"virtualmachinescaleset_10_GET_200"},
      {"virtualmachinescaleset_11_PUT_412"},
      {"virtualmachinescaleset_12_GET_200"},
      {"virtualmachinescaleset_13_GET_404"},
      {"virtualmachinescaleset_14_DELETE_202"},
      {"virtualmachinescalesetvm_06_GET_200"},
      {"virtualmachinescalesetvm_07_GET_200"},
      {"virtualmachinescalesetvm_08_GET_200"},
      {"virtualmachinescalesetvm_09_GET_404"},
      {"virtualmachinescalesetvm_10_PUT_200"},
      {"virtualmachinescalesetvm_11_GET_200", AfterWrite},
      {"virtualmachinescalesetvm_12_GET_200"},
      {"virtualmachinescalesetvm_13_PUT_412"},
      {"virtualmachinescalesetvm_14_GET_200"},
      {"virtualmachinescalesetvm_15_GET_400"},
      {"virtualmachinescalesetvm_16_DELETE_202"},
      {"virtualnetwork_03_GET_200"},
      {"virtualnetwork_05_GET_404"},
      {"virtualnetwork_08_PUT_412"},
      {"virtualnetwork_09_GET_200"},
  };
  return cases;
}

// The paths in which the model differs from the recordings, and why.
const std::vector<std::string> kLeftOut = {
    // The recorded machines run Windows, the simulated ones Linux.
    "windowsConfiguration",
    "linuxConfiguration",
    // The recorded virtual machine is in no scale set.
    "properties.virtualMachineScaleSet",
    "value[].properties.timeCreated",
    // An instance view names the agent's word on itself; nobody reads it.
    "vmAgent.statuses[].message",
};

// The headers that clients go by: there in both, or in neither.
constexpr const char* kHeaders[] = {"Azure-AsyncOperation",
                                    "Azure-AsyncNotification",
                                    "Location",
                                    "Retry-After",
                                    "ETag",
                                    "Content-Type",
                                    "X-Ms-Failure-Cause",
                                    "X-Ms-Request-Charge",
                                    "X-Ms-Need-To-Refresh-Epl-Cache",
                                    "X-Ms-Ratelimit-Remaining-Subscription-Global-Reads",
                                    "X-Ms-Ratelimit-Remaining-Subscription-Global-Writes",
                                    "X-Ms-Ratelimit-Remaining-Subscription-Global-Deletes",
                                    "Cache-Control",
                                    "Strict-Transport-Security",
                                    "X-Content-Type-Options"};

class FidelityTest : public testing::TestWithParam<Case> {};

TEST_P(FidelityTest, AnswersAsRecorded) {
  absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  SimSpec spec = RecordedWorld();
  if (GetParam().without_sets) spec.scale_sets.clear();
  if (GetParam().without_subnet) {  // The subnet's VNet is there all the same.
    for (SubnetSpec& subnet : spec.subnets) {
      if (subnet.id.find("aks-cit-Subnet/") != std::string::npos) subnet.id += "Other";
    }
  }
  auto model = ArmModel::Build(spec, now);
  ASSERT_TRUE(model.ok()) << model.status();
  const Json recorded = ReadTestdataJson("real_arm/" + GetParam().file + ".json");
  http::Request request;
  request.method = recorded["request"]["method"];
  request.url = recorded["request"]["url"];
  for (const auto& [name, value] : recorded["request"]["headers"].items()) {
    request.headers.Add(name, value);
  }
  if (recorded["request"]["body"].is_object()) request.body = recorded["request"]["body"].dump();
  if (GetParam().prepare) GetParam().prepare(**model, &now, &request.url);

  const http::Response response = (*model)->Handle(request, now);

  const Json& want = recorded["response"];
  EXPECT_EQ(response.status, want["status"]) << response.body;
  http::Headers headers;
  for (const auto& [name, value] : want["headers"].items()) headers.Add(name, value);
  for (const char* name : kHeaders) {
    EXPECT_EQ(response.headers.Find(name).has_value(), headers.Find(name).has_value()) << name;
  }
  for (const char* name : {"Content-Type", "X-Ms-Request-Charge", "X-Ms-Failure-Cause"}) {
    EXPECT_EQ(response.headers.Find(name), headers.Find(name)) << name;
  }
  if (!want["body"].is_object()) {
    EXPECT_EQ(response.body, "");
    return;
  }
  const Json body = Json::parse(response.body, nullptr, false);
  EXPECT_THAT(Differences(want["body"], body, kLeftOut), testing::IsEmpty());
  if (!want["body"].contains("error")) return;
  EXPECT_EQ(body["error"]["code"], want["body"]["error"]["code"]);
  // Words are a contract where clients look for them: only numbers and GUIDs may differ.
  if (response.status != 412) {
    EXPECT_EQ(body["error"]["message"], want["body"]["error"]["message"]);
  }
}

INSTANTIATE_TEST_SUITE_P(Recorded, FidelityTest, testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.file; });

// -- NICs of scale sets, as the Azure CLI saw them.

class NicFidelityTest : public ModelTest {
 protected:
  void SetUp() override {
    SimSpec spec = SmallSpec(1, "10.0.0.0/24");
    spec.scale_sets[0].load_balancer_pools = {"/subscriptions/sub/pools/one"};
    Make(spec);
  }
  // NAT rules are not modelled: no client of ours looks at them.
  const std::vector<std::string> left_out_ = {"loadBalancerInboundNatRules"};
};

TEST_F(NicFidelityTest, TheListLooksAsRecorded) {
  const Json recorded = ReadTestdataJson("vmss_nic/list_vm_nics.json");
  EXPECT_THAT(Differences(recorded["response"]["body"], GetJson(NicsPath(0)), left_out_),
              testing::IsEmpty());
}

TEST_F(NicFidelityTest, OneNicLooksAsRecorded) {
  const Json recorded = ReadTestdataJson("vmss_nic/get_vm_nic.json");
  const http::Response response =
      Get(fmt::format("{}/virtualMachines/0/networkInterfaces/nic?api-version={}", kSet, kNicApi));
  EXPECT_THAT(Differences(recorded["response"]["body"], Json::parse(response.body), left_out_),
              testing::IsEmpty());
  EXPECT_TRUE(response.headers.Find("ETag").has_value());
  const Json nic = Json::parse(response.body);
  EXPECT_EQ(response.headers.Find("ETag"), nic["etag"].get<std::string>());
  EXPECT_THAT(nic["properties"]["macAddress"].get<std::string>(),
              testing::MatchesRegex("([0-9A-F][0-9A-F]-)+[0-9A-F][0-9A-F]"));
}

// -- Headers, as the Azure CLI saw them.

TEST_F(NicFidelityTest, HeadersOfWritesAndListsAreTheRecordedOnes) {
  const Json recorded = ReadTestdataJson("arm_headers/real_headers.json");
  const http::Response put = Put(0, BodyWith(0, {"spoke-a"}));
  EXPECT_EQ(put.status, recorded["put_vmss_vm"]["status"]);
  EXPECT_EQ(put.headers.Find("x-ms-request-charge"),
            recorded["put_vmss_vm"]["x-ms-request-charge"].get<std::string>());
  const std::string url(put.headers.Find("azure-asyncoperation").value_or(""));
  EXPECT_THAT(url, testing::HasSubstr("/providers/Microsoft.Compute/locations/"));
  EXPECT_THAT(url, testing::HasSubstr("/operations/"));
  EXPECT_THAT(url, testing::HasSubstr("?p="));
  now_ += absl::Minutes(1);
  EXPECT_EQ(ShapeOf(recorded["get_operation"]["body"]), ShapeOf(Poll(put)));

  model_->compute().AddInstances(*model_->world().FindSet(kSet), 3, now_);
  const http::Response list =
      Get(fmt::format("{}/virtualMachines?api-version={}", kSet, kInstanceApi));
  EXPECT_EQ(list.headers.Find("x-ms-request-charge"),
            recorded["list_vmss_vms_4_instances"]["x-ms-request-charge"].get<std::string>());
}

}  // namespace
}  // namespace spoke::azure_sim
