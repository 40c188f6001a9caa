// Tests that every recorded and quoted file is looked at by a test, and is what it says it is.
#include <filesystem>

#include "gmock/gmock.h"
#include "tests/azure-sim/imds_model.h"
#include "tests/azure-sim/model_for_test.h"
#include "tests/azure-sim/recorded.h"
#include "tests/azure-sim/wireserver_model.h"
#include "yaml-cpp/yaml.h"

namespace spoke::azure_sim {
namespace {

using testing::IsEmpty;

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(TestdataPath(folder))) {
    files.push_back(entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Testdata, HasNothingThatNoTestLooksAt) {
  EXPECT_THAT(FilesIn(""), testing::UnorderedElementsAre("README.md", "arm_headers", "errors",
                                                         "imds", "real_arm", "recordings",
                                                         "requests", "vmss_nic", "wireserver"));
  EXPECT_EQ(FilesIn("real_arm").size(), 42);  // Each is a case of FidelityTest.
  for (const char* folder : {"arm_headers", "errors", "imds", "real_arm", "requests", "vmss_nic"}) {
    for (const std::string& file : FilesIn(folder)) {
      EXPECT_TRUE(ReadTestdataJson(std::string(folder) + "/" + file).is_object()) << file;
    }
  }
}

// What was cut into files of its own is what was recorded.
TEST(Testdata, SplitFilesComeFromTheRecordings) {
  std::multiset<std::string> recorded;
  for (const std::string& file : FilesIn("recordings")) {
    const YAML::Node cassette = YAML::LoadFile(TestdataPath("recordings/" + file));
    const std::string client = file.substr(0, file.find("client."));
    size_t index = 0;
    for (const YAML::Node& each : cassette["interactions"]) {
      recorded.insert(fmt::format(
          "{} {} {} {}", client, each["request"]["method"].as<std::string>(),
          each["request"]["url"].as<std::string>(), each["response"]["code"].as<std::string>()));
      ++index;
    }
    EXPECT_GT(index, 5U) << file;
  }
  for (const std::string& file : FilesIn("real_arm")) {
    const Json each = ReadTestdataJson("real_arm/" + file);
    const std::string client = file.substr(0, file.find('_'));
    const std::string line = fmt::format(
        "{} {} {} {}", client, each["request"]["method"].get<std::string>(),
        each["request"]["url"].get<std::string>(), each["response"]["status"].get<int>());
    EXPECT_TRUE(recorded.count(line) != 0) << line;
  }
}

// -- Errors: each file is provoked, and looks the same.

class ErrorsTest : public ModelTest {
 protected:
  void Expect(const http::Response& response, const std::string& file) {
    const Json quoted = ReadTestdataJson("errors/" + file + ".json");
    EXPECT_EQ(response.status, quoted["status"]) << file << ": " << response.body;
    const Json body = Json::parse(response.body, nullptr, false);
    EXPECT_THAT(Differences(quoted["body"], body, {}), IsEmpty()) << file;
    const bool bare = !quoted["body"].contains("error");
    const Json& want = bare ? quoted["body"] : quoted["body"]["error"];
    const Json& have = bare ? body : body["error"];
    EXPECT_EQ(have["code"], want["code"]) << file;
    if (want.contains("details") && !want["details"].empty()) {
      EXPECT_EQ(have["details"][0]["code"], want["details"][0]["code"]) << file;
    }
    tested_.push_back(file + ".json");
  }
  std::string NicPath(std::string_view name) {
    return fmt::format("{}/providers/Microsoft.Network/networkInterfaces/{}?api-version={}", kGroup,
                       name, kNetworkApi);
  }
  static Json NicBody(const Json& entries) {
    return {{"location", "eastus2"}, {"properties", {{"ipConfigurations", entries}}}};
  }
  static Json Entry(std::string_view name, std::string_view address = {}) {
    Json properties = {{"subnet", {{"id", kSubnet}}}};
    if (!address.empty()) {
      properties["privateIPAllocationMethod"] = "Static";
      properties["privateIPAddress"] = address;
    }
    return {{"name", name}, {"properties", properties}};
  }

  void ProvokeCompute() {
    model_->knobs().failed_operations = 1;
    model_->knobs().failed_operation_code = "PublicIpPrefixOutOfIpAddressesForVMScaleSet";
    const http::Response failing = Put(0, BodyWith(0, {"spoke-a"}));
    Expect(Put(0, BodyWith(0, {})), "409_concurrent");
    now_ += absl::Minutes(1);
    Expect(Get(std::string(*failing.headers.Find("Azure-AsyncOperation"))), "200_async_failed");
    model_->knobs().failed_operations = 0;
    Expect(Get(fmt::format("{}/virtualMachines/0notfound?api-version={}", kSet, kInstanceApi)),
           "400_instance_id");
    std::vector<std::string> names(300);
    for (size_t i = 0; i < names.size(); ++i) names[i] = fmt::format("spoke-{}", i);
    Expect(Put(0, BodyWith(0, names)), "400_vmss_secondary_count");
    Expect(Put(0, GetJson(InstancePath(0))), "403_linked_authorization");
    Expect(Put(0, BodyWith(0, {}), {{"If-Match", "invalid-etag"}}), "412_compute");
    Send("DELETE", InstancePath(0));
    Expect(Put(0, {{"properties", Json::object()}}), "409_marked_for_deletion");
    model_->knobs().limits[Policy::kGetScaleSetVms].resource = {0, 1};
    model_->knobs().throttle_without_error = true;
    Get(InstancePath(1));
    Expect(Get(InstancePath(1)), "429_compute_throttle");
  }

  void ProvokeNetwork() {
    ASSERT_EQ(Send("PUT", NicPath("a"), NicBody(Json::array({Entry("one", "10.0.0.99")}))).status,
              201);
    Expect(Send("PUT", NicPath("b"), NicBody(Json::array({Entry("one", "10.0.0.99")}))),
           "400_ip_allocated");
    Expect(Send("PUT", NicPath("a"), NicBody(Json::array())), "400_no_ipconfig");
    Expect(Send("PUT", NicPath("a"), NicBody(Json::array({Entry("one")})),
                {{"If-Match", "W/\"invalid\""}}),
           "412_network");
    Expect(Get(NicPath("x")), "404_resource_arm");
    Expect(Get("/subscriptions/sub/resourceGroups/x/providers/Microsoft.Network/"
               "networkInterfaces?api-version=2025-05-01"),
           "404_rg");
    std::string nested = kSubnet;
    Expect(Get(nested.substr(0, nested.rfind('/')) + "/x?api-version=2025-05-01"),
           "404_nested_network");
    model_->knobs().network_busy = 1;
    std::set<std::string> seen;
    for (int i = 0; i < 50 && seen.size() < 2; ++i) {
      const http::Response busy = Send("PUT", NicPath("a"), NicBody(Json::array({Entry("one")})));
      const bool locked = busy.body.find("AnotherOperation") != std::string::npos;
      const std::string file =
          locked ? "429_network_another_operation" : "429_network_ref_not_provisioned";
      if (seen.insert(file).second) Expect(busy, file);
    }
  }

  std::vector<std::string> tested_;
};

TEST_F(ErrorsTest, AllAreGivenAsQuoted) {
  Make(2);
  ProvokeCompute();
  Make(0);
  ProvokeNetwork();
  Make(SmallSpec(1, "10.0.0.0/29", Orchestration::kFlexible));
  model_->knobs().full_subnet = FullSubnet::kSync;
  const Nic& nic = *model_->world().FindGroup("sub", "rg")->nics.begin()->second;
  Json renamed = Entry("renamed");
  renamed["properties"]["primary"] = true;
  Expect(Send("PUT", NicPath(nic.name), NicBody(Json::array({renamed, Entry("a")}))),
         "400_primary_delete");
  Json primary = Entry("ipconfig1");
  primary["properties"]["primary"] = true;
  Expect(Send("PUT", NicPath(nic.name),
              NicBody(Json::array({primary, Entry("a"), Entry("b"), Entry("c")}))),
         "400_subnet_full");
  std::sort(tested_.begin(), tested_.end());
  EXPECT_EQ(tested_, FilesIn("errors"));
}

// -- Requests that real clients send are understood.

class RequestsTest : public ModelTest {};

TEST_F(RequestsTest, AWriteOfAnInstanceIsTaken) {
  SimSpec spec = SmallSpec(1);
  spec.scale_sets[0].nic = "nic0";
  Make(spec);
  std::string text = ReadTestdataJson("requests/put_vmss_vm_add_secondary.json")["body"].dump();
  const std::string placeholder = "/subscriptions/{s}/.../subnets/pods";
  for (size_t at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder)) {
    text.replace(at, placeholder.size(), kSubnet);
  }
  const http::Response put = Put(0, Json::parse(text));
  ASSERT_EQ(put.status, 200) << put.body;
  now_ += absl::Minutes(1);
  EXPECT_EQ(AddressesOf(0).count("ipam-0a1b2c3d"), 1);
}

TEST_F(RequestsTest, AWriteOfANicIsTaken) {
  Make(0);
  std::string text =
      ReadTestdataJson("requests/put_nic_add_secondary_and_prefix.json")["body"].dump();
  for (size_t at = text.find("\"...\""); at != std::string::npos; at = text.find("\"...\"")) {
    text.replace(at, 5, fmt::format("\"{}\"", kSubnet));
  }
  const http::Response put =
      Send("PUT",
           fmt::format("{}/providers/Microsoft.Network/networkInterfaces/nic?api-version={}",
                       kGroup, kNetworkApi),
           Json::parse(text));
  ASSERT_EQ(put.status, 201) << put.body;
  const Json entries = Json::parse(put.body)["properties"]["ipConfigurations"];
  EXPECT_EQ(entries[2]["properties"]["privateIPAddress"], "10.0.0.16");
  EXPECT_EQ(entries[2]["properties"]["privateIPAddressPrefixLength"], 28);
}

// -- Metadata service and wireserver.

class LocalTest : public ModelTest {
 protected:
  void SetUp() override {
    SimSpec spec = SmallSpec(1, "10.0.0.0/24");
    InstanceSpec first;
    first.mac = *ip::MacAddress::Parse("00:0d:3a:31:45:48");
    spec.scale_sets[0].first.push_back(first);
    Make(spec);
    Put(0, BodyWith(0, {"spoke-a"}));
    now_ += absl::Minutes(1);
    model_->Advance(now_);
    imds_ = std::make_unique<ImdsModel>(model_->backend());
    wireserver_ = std::make_unique<WireserverModel>(model_->backend());
  }
  std::string Id() const { return fmt::format("{}/virtualMachines/0", kSet); }
  Json Imds(const std::string& path, http::Headers headers = {{"Metadata", "true"}}) {
    const http::Request request{"GET", "http://169.254.169.254" + path, std::move(headers), ""};
    return Json::parse(imds_->Handle(request, Id(), now_).body, nullptr, false);
  }

  std::unique_ptr<ImdsModel> imds_;
  std::unique_ptr<WireserverModel> wireserver_;
};

TEST_F(LocalTest, TheInstanceDocumentLooksAsRecordedAndComposed) {
  const Json document = Imds("/metadata/instance?api-version=2021-02-01");
  // The service has grown since: "virtualMachineScaleSet" came later.
  EXPECT_THAT(Differences(ReadTestdataJson("imds/compute_aks_vmss_instance.json"),
                          document["compute"], {"virtualMachineScaleSet", "tagsList[]"}),
              IsEmpty());
  Json composed = ReadTestdataJson("imds/instance_vmss_composed.json");
  composed.erase("_source");
  for (const std::string& difference : Differences(composed, document, {"tagsList[]"})) {
    // It quotes a part of the "compute" above.
    EXPECT_THAT(difference, testing::StartsWith("made up: compute."));
  }
  EXPECT_EQ(document["network"]["interface"][0]["macAddress"],
            composed["network"]["interface"][0]["macAddress"]);
  EXPECT_EQ(document["network"]["interface"][0]["ipv4"],
            composed["network"]["interface"][0]["ipv4"]);
}

TEST_F(LocalTest, TokensAndTheirErrorsLookAsDocumented) {
  const Json quoted = ReadTestdataJson("imds/token.json");
  const std::string path =
      "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fmanagement."
      "azure.com%2F";
  const Json token = Imds(path);
  EXPECT_THAT(Differences(quoted["ok"], token, {}), IsEmpty());
  EXPECT_EQ(token["resource"], quoted["ok"]["resource"]);
  EXPECT_EQ(Imds(path, {}), quoted["err_400"]);
}

TEST_F(LocalTest, ScheduledEventsLookAsDocumented) {
  const Json quoted = ReadTestdataJson("imds/scheduled_events.json");
  const std::string path = "/metadata/scheduledevents?api-version=2020-07-01";
  EXPECT_EQ(Imds(path), quoted["empty"]);
  ScheduledEvent event;
  event.type = "Freeze";
  event.resources = {"pool_0"};
  event.not_before = now_ + absl::Minutes(15);
  event.description = "Virtual machine is being paused.";
  event.duration_seconds = 5;
  event.id = quoted["ack_post"]["StartRequests"][0]["EventId"];
  imds_->Schedule(event);
  const Json shown = Imds(path);
  EXPECT_THAT(Differences(quoted["scheduled"], shown, {}), IsEmpty());
  EXPECT_EQ(shown["DocumentIncarnation"], 2);

  const http::Request ack{
      "POST", "http://169.254.169.254" + path, {{"Metadata", "true"}}, quoted["ack_post"].dump()};
  EXPECT_EQ(imds_->Handle(ack, Id(), now_).status, 200);
  const Json started = Imds(path);
  EXPECT_EQ(started["Events"][0]["EventStatus"], "Started");
  EXPECT_EQ(started["Events"][0]["NotBefore"], "");
  now_ += absl::Minutes(10);
  const Json over = Imds(path);
  EXPECT_TRUE(over["Events"].empty()) << "what is over leaves the document";
  EXPECT_GT(over["DocumentIncarnation"], started["DocumentIncarnation"]);
}

TEST_F(LocalTest, ErrorsLookAsDocumented) {
  const Json quoted = ReadTestdataJson("imds/errors.json");
  EXPECT_EQ(Imds("/metadata/instance"), quoted["no_api_version_400"]);
}

std::string WithoutSpaceBetweenTags(std::string text) {
  std::string kept;
  for (const char c : text) {
    if (c == '\n' || (c == ' ' && (kept.empty() || kept.back() == '>' || kept.back() == ' '))) {
      continue;
    }
    kept.push_back(c);
  }
  return kept;
}

TEST_F(LocalTest, TheWireserverShowsWhatTheFabricHas) {
  const http::Request request{
      "GET", "http://168.63.129.16/machine/plugins?comp=nmagent&type=getinterfaceinfov1", {}, ""};
  EXPECT_EQ(WithoutSpaceBetweenTags(wireserver_->Handle(request, Id(), now_).body),
            WithoutSpaceBetweenTags(ReadTestdata("wireserver/getinterfaceinfov1_secondaries.xml")));

  // The recorded one has no secondaries.
  SimSpec spec = SmallSpec(1, "10.240.0.0/16");
  InstanceSpec first;
  first.mac = *ip::MacAddress::Parse("00:22:48:26:3d:bd");
  spec.scale_sets[0].first.push_back(first);
  Make(spec);
  WireserverModel plain(model_->backend());
  EXPECT_EQ(plain.Handle(request, Id(), now_).body,
            ReadTestdata("wireserver/getinterfaceinfov1.xml"));
}

}  // namespace
}  // namespace spoke::azure_sim
