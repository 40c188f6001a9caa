#include "netagent/azure/imds_document.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"

namespace spoke::netagent::azure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

std::string TestData(const std::string& name) {
  return os::ReadFile(SPOKE_SOURCE_DIR "/netagent/azure/testdata/" + name).value();
}

TEST(ImdsDocument, ASetInstanceIsReadWithItsNics) {
  const auto instance = ParseImdsInstance(TestData("imds_instance.json"));
  ASSERT_TRUE(instance.ok()) << instance.status();
  EXPECT_EQ(instance->name, "pool_0");
  EXPECT_EQ(instance->vm_id, "55b8499d-9b42-4f85-843f-24ff69f4a643");
  EXPECT_EQ(instance->resource_id,
            "/subscriptions/s/resourcegroups/rg1/providers/microsoft.compute/"
            "virtualmachinescalesets/pool/virtualmachines/0");
  EXPECT_EQ(instance->scale_set, "pool");
  EXPECT_EQ(instance->location, "westus2");
  EXPECT_EQ(instance->subscription, "S");
  ASSERT_EQ(instance->nics.size(), 1U);
  const ImdsNic& nic = instance->nics[0];
  EXPECT_EQ(nic.mac.ToString(), "00:0d:3a:31:45:48");
  EXPECT_THAT(nic.addresses, ElementsAre(A("10.0.0.4"), A("10.0.0.5")));
  EXPECT_THAT(nic.subnets, ElementsAre(ip::Prefix::Parse("10.0.0.0/24").value()));
}

TEST(ImdsDocument, ARecordedComputePartIsRead) {
  const auto instance =
      ParseImdsInstance(R"({"compute": )" + TestData("imds_compute_aks.json") + "}");
  ASSERT_TRUE(instance.ok()) << instance.status();
  EXPECT_EQ(instance->name, "aks-nodepool1-25781205-vmss_0");
  EXPECT_THAT(instance->resource_id, HasSubstr("/resourcegroups/mc_matlong-test-imds_"));
  EXPECT_EQ(instance->scale_set, "aks-nodepool1-25781205-vmss");
  EXPECT_THAT(instance->nics, IsEmpty());
}

TEST(ImdsDocument, BothFamiliesAreReadAndWhatIsMissingIsEmpty) {
  const auto instance = ParseImdsInstance(R"({"network": {"interface": [
      {"macAddress": "00:0D:3A:00:00:01",
       "ipv4": {"ipAddress": [{"privateIpAddress": ""}], "subnet": [{"address": ""}]},
       "ipv6": {"ipAddress": [{"privateIpAddress": "fd00::5"}],
                "subnet": [{"address": "fd00::5", "prefix": "64"}]}}]}})");
  ASSERT_TRUE(instance.ok()) << instance.status();
  EXPECT_EQ(instance->vm_id, "");
  EXPECT_THAT(instance->nics.at(0).addresses, ElementsAre(A("fd00::5")));
  EXPECT_EQ(instance->nics.at(0).subnets.at(0).ToString(), "fd00::/64");
}

TEST(ImdsDocument, ABlockIsTakenApart) {
  const auto instance = ParseImdsInstance(R"({"network": {"interface": [
      {"macAddress": "000D3A000001", "ipv4": {"ipAddress": [
          {"privateIpAddress": "10.0.0.4"}, {"privateIpAddress": "10.0.0.16/28"}]}}]}})");
  ASSERT_TRUE(instance.ok()) << instance.status();
  EXPECT_EQ(instance->nics.at(0).addresses.size(), 17U);
  EXPECT_EQ(instance->nics.at(0).addresses.back(), A("10.0.0.31"));
}

struct BadDocument {
  std::string name;
  std::string text;
  std::string message;
};

class ImdsDocumentRefused : public testing::TestWithParam<BadDocument> {};

TEST_P(ImdsDocumentRefused, WithItsPlace) {
  const auto instance = ParseImdsInstance(GetParam().text);
  EXPECT_EQ(instance.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(instance.status().message()), HasSubstr(GetParam().message));
}

std::string Nic(const std::string& nic) { return R"({"network": {"interface": [)" + nic + "]}}"; }

INSTANTIATE_TEST_SUITE_P(
    Cases, ImdsDocumentRefused,
    testing::Values(
        BadDocument{"NoJson", "<html>", "no JSON object"}, BadDocument{"Empty", "", "no JSON"},
        BadDocument{"CutShort", R"({"compute": {"name": )", "no JSON object"},
        BadDocument{"NoObject", "[]", "no JSON object"},
        BadDocument{"ComputeIsText", R"({"compute": "x"})", "compute: is of type string"},
        BadDocument{"VmIdIsNumber", R"({"compute": {"vmId": 7}})", "compute: vmId: is not text"},
        BadDocument{"NicIsText", Nic(R"("eth0")"), "interface: holds something"},
        BadDocument{"NoMac", Nic("{}"), "network: interface: "},
        BadDocument{"BadMac", Nic(R"({"macAddress": "00000000000G"})"), "interface: "},
        BadDocument{"BadAddress", Nic(R"({"macAddress": "000D3A36DDED", "ipv4": {"ipAddress": [
                                          {"privateIpAddress": "10.0.0"}]}})"),
                    "ipAddress: "},
        BadDocument{"HugeBlock", Nic(R"({"macAddress": "000D3A36DDED", "ipv4": {"ipAddress": [
                                         {"privateIpAddress": "10.0.0.0/8"}]}})"),
                    "more than 1024 addresses"},
        BadDocument{"BadPrefix", Nic(R"({"macAddress": "000D3A36DDED", "ipv4": {"subnet": [
                                         {"address": "10.0.0.0", "prefix": "33"}]}})"),
                    "subnet: "},
        BadDocument{"TooLong", std::string(kMaxImdsBytes + 1, ' '), "more than"}),
    [](const auto& test) { return test.param.name; });

TEST(ImdsDocument, TooManyNicsAreRefused) {
  std::string nics = R"({"macAddress": "000D3A36DDED"})";
  for (size_t i = 0; i < kMaxImdsNics; ++i) nics += R"(, {"macAddress": "000D3A36DDED"})";
  EXPECT_EQ(ParseImdsInstance(Nic(nics)).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace spoke::netagent::azure
