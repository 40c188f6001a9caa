#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ipam-server/cloud/static_cloud.h"
#include "ipam-server/cloud/testing/choosing_cloud_contract.h"
#include "ipam-server/cloud/testing/cloud_contract.h"
#include "ipam-server/cloud/testing/fake_cloud.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Clouds, CloudContract,
    testing::Values(CloudFactory{"Fake", [] { return std::make_unique<FakeCloud>(); }},
                    CloudFactory{"Static", [] { return std::make_unique<StaticCloud>(""); }}),
    [](const auto& test) { return test.param.name; });

NicAddresses Nic(const std::string& node, const std::string& mac, const std::string& address) {
  return {.node = {node, "vm"},
          .nic_mac = ip::MacAddress::Parse(mac).value(),
          .configurations = {{"spoke-1", ip::Prefix::Host(ip::Address::Parse(address).value())}}};
}

NicRequest Ask(const std::string& node, const std::string& mac, const std::string& address) {
  const NicAddresses nic = Nic(node, mac, address);
  return {.node = nic.node, .nic_mac = nic.nic_mac, .configurations = nic.configurations};
}

std::vector<NicAddresses> TwoVms() {
  return {{.node = {"node1", "vm-1"},
           .nic_mac = ip::MacAddress::Parse("00:0d:3a:00:00:01").value(),
           .configurations = {},
           .instance = "/vm/1"},
          {.node = {"node2", "vm-2"},
           .nic_mac = ip::MacAddress::Parse("00:0d:3a:00:00:02").value(),
           .configurations = {},
           .instance = "/vm/2"}};
}

// It knows of a VM once it was asked for it.
std::unique_ptr<Cloud> ChoosingFake() {
  auto cloud = std::make_unique<FakeCloud>();
  cloud->ChooseFrom(ip::Prefix::Parse("10.1.0.0/24").value());
  for (const NicAddresses& vm : TwoVms()) {
    NicRequest look;
    look.node = vm.node;
    look.nic_mac = vm.nic_mac;
    look.instance = vm.instance;
    EXPECT_TRUE(cloud->Apply(look).ok());
  }
  return cloud;
}

INSTANTIATE_TEST_SUITE_P(Fake, ChoosingCloudContract,
                         testing::Values(ChoosingCloudFactory{"Fake", ChoosingFake, TwoVms}),
                         [](const auto& test) { return test.param.name; });

TEST(StaticCloud, PublishesEveryAttachmentInAddressOrder) {
  const testing_support::TempDir dir;
  const std::string file = dir.File("attachments");
  StaticCloud cloud(file);
  EXPECT_FALSE(os::ReadFile(file).ok()) << "nothing is touched before it is told to begin";
  ASSERT_TRUE(cloud.Begin({Nic("node2", "00:0d:3a:00:00:02", "10.1.0.9")}).ok());
  EXPECT_EQ(*os::ReadFile(file), "# address\tnic\tnode\n10.1.0.9/32\t00:0d:3a:00:00:02\tnode2\n");
  ASSERT_TRUE(cloud.Apply(Ask("node1", "00:0d:3a:00:00:01", "10.1.0.10")).ok());
  EXPECT_EQ(*os::ReadFile(file),
            "# address\tnic\tnode\n10.1.0.9/32\t00:0d:3a:00:00:02\tnode2\n"
            "10.1.0.10/32\t00:0d:3a:00:00:01\tnode1\n");
}

TEST(StaticCloud, WhatCannotBePublishedIsNotAttached) {
  const testing_support::TempDir dir;
  std::filesystem::create_directory(dir.File("sub"));
  StaticCloud cloud(dir.File("sub/attachments"));
  ASSERT_TRUE(cloud.Begin({}).ok());
  std::filesystem::remove_all(dir.File("sub"));
  EXPECT_FALSE(cloud.Apply(Ask("node1", "00:0d:3a:00:00:01", "10.1.0.10")).ok());
  EXPECT_FALSE(cloud.Begin({Nic("node2", "00:0d:3a:00:00:02", "10.1.0.9")}).ok());
  EXPECT_TRUE(cloud.List()->empty());
}

TEST(StaticCloud, AnotherVmUnderTheNameReplacesTheFirst) {
  StaticCloud cloud("");
  NicRequest nic = Ask("node1", "00:0d:3a:00:00:01", "10.1.0.10");
  ASSERT_TRUE(cloud.Apply(nic).ok());
  nic.node.vm_id = "vm-new";
  ASSERT_TRUE(cloud.Apply(nic).ok());
  EXPECT_EQ(*cloud.List(), std::vector<NicAddresses>{nic.Configured()});
}

TEST(FakeCloud, RefusesWhenTold) {
  FakeCloud cloud;
  cloud.FailApply(absl::UnavailableError("throttled"));
  EXPECT_FALSE(cloud.Apply(Ask("node1", "00:0d:3a:00:00:01", "10.1.0.10")).ok());
  EXPECT_EQ(cloud.applied(), 0);
  EXPECT_TRUE(cloud.List()->empty());
}

}  // namespace
}  // namespace spoke::ipam
