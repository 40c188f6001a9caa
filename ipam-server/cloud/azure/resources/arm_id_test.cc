#include "ipam-server/cloud/azure/resources/arm_id.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace spoke::ipam::azure {
namespace {

constexpr std::string_view kArm = "https://management.azure.com";
constexpr std::string_view kSet =
    "/subscriptions/S-1/resourceGroups/RG_a.(b)/providers/Microsoft.Compute/"
    "virtualMachineScaleSets/Pool1";

ResourceId Id(std::string_view text) {
  auto id = ResourceId::Parse(text);
  EXPECT_TRUE(id.ok()) << id.status();
  return *std::move(id);
}

std::string InSet(std::string_view rest) { return std::string(kSet) + std::string(rest); }

TEST(ResourceId, ComparesWithoutRegardToCase) {
  EXPECT_EQ(Id(kSet), Id("/SUBSCRIPTIONS/s-1/resourcegroups/rg_A.(B)/PROVIDERS/microsoft.compute/"
                         "VIRTUALMACHINESCALESETS/pool1/"));
  EXPECT_EQ(Id(kSet).text(),
            "/subscriptions/s-1/resourcegroups/rg_a.(b)/providers/microsoft.compute/"
            "virtualmachinescalesets/pool1");
}

TEST(ResourceId, TellsItsParts) {
  const ResourceId nic = Id(InSet("/virtualMachines/36/networkInterfaces/nic0"));
  EXPECT_EQ(nic.kind(), ResourceKind::kInstanceNic);
  EXPECT_EQ(nic.subscription(), "s-1");
  EXPECT_EQ(nic.resource_group(), "rg_a.(b)");
  EXPECT_EQ(nic.name(), "nic0");
  const ResourceId instance = *nic.Parent();
  EXPECT_EQ(instance.kind(), ResourceKind::kInstance);
  EXPECT_EQ(instance.name(), "36");
  EXPECT_EQ(*instance.Parent(), Id(kSet));
  EXPECT_EQ(instance.Parent()->Parent(), std::nullopt);
  EXPECT_EQ(ScaleSetOf(nic), Id(kSet));
}

TEST(ResourceId, KnowsTheKindsWeUse) {
  const std::string group = "/subscriptions/s/resourceGroups/g/providers/";
  EXPECT_EQ(Id(kSet).kind(), ResourceKind::kScaleSet);
  EXPECT_EQ(Id(group + "Microsoft.Compute/virtualMachines/vm").kind(),
            ResourceKind::kVirtualMachine);
  EXPECT_EQ(Id(group + "Microsoft.Network/networkInterfaces/n").kind(), ResourceKind::kNic);
  const ResourceId subnet = Id(group + "Microsoft.Network/virtualNetworks/v/subnets/s");
  EXPECT_EQ(subnet.kind(), ResourceKind::kSubnet);
  EXPECT_EQ(ScaleSetOf(subnet), std::nullopt);
  EXPECT_EQ(Id(group + "Microsoft.Network/virtualNetworks/v").kind(), ResourceKind::kOther);
}

TEST(ResourceId, RefusesWhatCouldChangeTheMeaningOfAUrl) {
  for (const std::string& text : {
           std::string(),
           std::string("/"),
           std::string("/subscriptions/s"),
           std::string("/subscriptions/s/resourceGroups/g"),
           InSet("/virtualMachines"),
           InSet("/virtualMachines/"),
           InSet("/virtualMachines/.."),
           InSet("/virtualMachines/1?api-version=x"),
           InSet("/virtualMachines/1#x"),
           InSet("/virtualMachines/1%2f"),
           InSet("/virtualMachines/1 2"),
           InSet("/virtualMachines/1\r\nHost: x"),
           InSet("/virtualMachines/\\1"),
           std::string("https://management.azure.com") + std::string(kSet),
           InSet("/virtualMachines/" + std::string(4000, '1')),
       }) {
    EXPECT_EQ(ResourceId::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Urls, NameTheCallAndItsVersion) {
  const std::string set =
      "https://management.azure.com/subscriptions/s-1/resourcegroups/rg_a.%28b%29/providers/"
      "microsoft.compute/virtualmachinescalesets/pool1";
  const ResourceId instance = Id(InSet("/virtualMachines/36"));
  EXPECT_EQ(ResourceUrl(kArm, Id(kSet)), set + "?api-version=2025-04-01");
  EXPECT_EQ(ResourceUrl(kArm, instance), set + "/virtualmachines/36?api-version=2025-04-01");
  EXPECT_EQ(ResourceUrl(kArm, instance, kComputeBlocksVersion),
            set + "/virtualmachines/36?api-version=2026-07-02");
  EXPECT_EQ(NicsUrl(kArm, Id(kSet)), set + "/networkinterfaces?api-version=2018-10-01");
  EXPECT_EQ(NicsUrl(kArm, instance),
            set + "/virtualmachines/36/networkinterfaces?api-version=2018-10-01");
  EXPECT_EQ(ResourceUrl(kArm, Id(InSet("/virtualMachines/36/networkInterfaces/n"))),
            set + "/virtualmachines/36/networkinterfaces/n?api-version=2018-10-01");
  EXPECT_EQ(GroupNicsUrl(kArm, instance),
            "https://management.azure.com/subscriptions/s-1/resourcegroups/rg_a.%28b%29/providers/"
            "microsoft.network/networkinterfaces?api-version=2025-05-01");
  EXPECT_EQ(FlexibleMachinesUrl(kArm, Id("/subscriptions/s/resourceGroups/g/providers/"
                                         "Microsoft.Compute/virtualMachineScaleSets/f")),
            "https://management.azure.com/subscriptions/s/resourcegroups/g/providers/"
            "microsoft.compute/virtualmachines?api-version=2025-04-01&$filter="
            "%27virtualMachineScaleSet/id%27%20eq%20%27/subscriptions/s/resourcegroups/g/"
            "providers/microsoft.compute/virtualmachinescalesets/f%27");
}

TEST(FollowUrl, KeepsTheUrlAsItIs) {
  for (const std::string_view url :
       {"https://management.azure.com/subscriptions/s/operations/1?p=1&api-version=2&t=%2F&h=a+b",
        "https://management.azure.com:443/subscriptions/s/x?$skiptoken=a%3D%3D",
        "HTTPS://Management.Azure.com/Subscriptions"}) {
    const auto followed = FollowUrl(kArm, url);
    ASSERT_TRUE(followed.ok()) << followed.status();
    EXPECT_EQ(*followed, url);
  }
  EXPECT_TRUE(FollowUrl("http://127.0.0.1:8080", "http://127.0.0.1:8080/next").ok());
}

TEST(FollowUrl, NeverTakesATokenElsewhere) {
  for (const std::string_view url :
       {"https://evil.example/subscriptions/s", "http://management.azure.com/x",
        "https://management.azure.com:8443/x", "https://management.azure.com.evil.example/x",
        "https://sub.management.azure.com/x"}) {
    EXPECT_EQ(FollowUrl(kArm, url).status().code(), absl::StatusCode::kPermissionDenied) << url;
  }
}

TEST(FollowUrl, RefusesWhatIsNoUrl) {
  for (const std::string& url :
       {std::string(), std::string("/subscriptions/s"), std::string("//evil.example/x"),
        std::string("ftp://management.azure.com/x"),
        std::string("https://management.azure.com@evil.example/x"),
        std::string("https://management.azure.com\\@evil.example/x"),
        std::string("https://management.azure.com/x y"),
        std::string("https://management.azure.com/x\r\nHost: evil.example"),
        "https://management.azure.com/" + std::string(kMaxUrlLength, 'x')}) {
    EXPECT_EQ(FollowUrl(kArm, url).status().code(), absl::StatusCode::kInvalidArgument) << url;
  }
}

}  // namespace
}  // namespace spoke::ipam::azure
