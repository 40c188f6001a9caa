// Tests of what the machine does for one node and for several.
#include <functional>

#include "gmock/gmock.h"
#include "tests/azure/machine_world.h"

namespace spoke::ipam::azure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AzureStateTest : public testing::Test {
 protected:
  void Make(int instances, azure_sim::Knobs knobs = {}, Settings settings = {}) {
    world_ = std::make_unique<AzureStateWorld>(azure_sim::SmallSpec(instances), std::move(knobs),
                                               std::move(settings));
  }
  std::unique_ptr<AzureStateWorld> world_;
};

TEST_F(AzureStateTest, NamesGetAddressesWithOneWrite) {
  Make(1);
  const auto nic = world_->AskAndWait(VmId(0), Names("a", 27));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(nic->configurations.size(), 27U);
  EXPECT_EQ(nic->instance, VmId(0));
  EXPECT_EQ(nic->node, (NodeKey{VmId(0), "vm-id"}));
  EXPECT_EQ(world_->CountSent("PUT"), 1U);
  EXPECT_EQ(world_->OnWire(VmId(0)).size(), 27U);
}

TEST_F(AzureStateTest, NothingToChangeIsOneRead) {
  Make(1);
  const auto nic = world_->AskAndWait(VmId(0), {});
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_THAT(nic->configurations, IsEmpty());
  EXPECT_EQ(world_->CountSent("PUT"), 0U);
  EXPECT_EQ(world_->CountSent("GET"), 2U);  // The two are the scale set and the NIC.
}

TEST_F(AzureStateTest, AskingAgainWritesNothing) {
  Make(1);
  const auto first = world_->AskAndWait(VmId(0), Names("a", 3));
  world_->RunFor(absl::Minutes(5));
  const auto second = world_->AskAndWait(VmId(0), Names("a", 3));
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(world_->CountSent("PUT"), 1U);
}

TEST_F(AzureStateTest, RemovesByNameAndAddsInOneWrite) {
  Make(1);
  ASSERT_TRUE(world_->AskAndWait(VmId(0), Names("a", 3)).ok());
  const auto nic = world_->AskAndWait(VmId(0), {"spoke-b"}, {"spoke-a0", "spoke-a2"});
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_THAT(NamesOf(*nic), ElementsAre("spoke-a1", "spoke-b"));
  EXPECT_EQ(world_->CountSent("PUT"), 2U);
}

TEST_F(AzureStateTest, RequestsForOneVmWhileItIsAtWorkBecomeOneWrite) {
  Make(1);
  world_->Request(world_->Ask(VmId(0), {"spoke-0"}));
  world_->RunUntil([&] { return world_->CountSent("PUT") == 1; });
  for (int i = 1; i <= 20; ++i) world_->Request(world_->Ask(VmId(0), Names("x", i)));
  ASSERT_TRUE(world_->Answer(VmId(0)).ok());
  const auto nic = world_->Answer(VmId(0));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(nic->configurations.size(), 21U);
  EXPECT_EQ(world_->CountSent("PUT"), 2U);
}

TEST_F(AzureStateTest, EntriesOfOursThatNobodyAskedForAreToldAndStay) {
  Make(1);
  ASSERT_TRUE(world_->AskAndWait(VmId(0), {"spoke-old"}).ok());
  const auto nic = world_->AskAndWait(VmId(0), {"spoke-new"});
  ASSERT_TRUE(nic.ok());
  EXPECT_THAT(NamesOf(*nic), ElementsAre("spoke-new", "spoke-old"));
}

TEST_F(AzureStateTest, ListsEveryNicWithWhatIsOurs) {
  azure_sim::Knobs knobs;
  knobs.page_size = 2;
  knobs.vary_id_case = true;
  Make(5, knobs);
  ASSERT_TRUE(world_->AskAndWait(VmId(3), Names("a", 2)).ok());
  const auto nics = world_->List();
  ASSERT_TRUE(nics.ok()) << nics.status();
  ASSERT_EQ(nics->size(), 5U);
  EXPECT_EQ(nics->at(3).instance, VmId(3));
  EXPECT_EQ(nics->at(3).configurations.size(), 2U);
  EXPECT_THAT(nics->at(0).configurations, IsEmpty());
  EXPECT_EQ(nics->at(0).node, NodeKey());
}

TEST_F(AzureStateTest, ManyReadsBecomeOneList) {
  Make(100);
  for (int i = 0; i < 100; ++i) world_->Request(world_->Ask(VmId(i), {}));
  world_->RunUntil([&] { return world_->answers() == 100; });
  EXPECT_EQ(world_->answers(), 100U);
  EXPECT_LE(world_->machine().counts().reads, 3U);
}

TEST_F(AzureStateTest, AVmOfNoScaleSetOfOursIsRefused) {
  Make(1);
  NicRequest request = world_->Ask(VmId(0), {});
  request.instance =
      "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Compute/"
      "virtualMachineScaleSets/other/virtualMachines/0";
  world_->Request(request);
  EXPECT_EQ(world_->Answer(VmId(0)).status().code(), absl::StatusCode::kFailedPrecondition);
  request.instance = "";
  world_->Request(request);
  EXPECT_EQ(world_->Answer(VmId(0)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(world_->sent(), IsEmpty());
}

TEST_F(AzureStateTest, AVmThatIsGoneIsToldAndNothingIsWritten) {
  Make(1);
  NicRequest request = world_->Ask(VmId(0), {"spoke-a"});
  request.instance = VmId(77);
  world_->Request(request);
  EXPECT_EQ(world_->Answer(VmId(0)).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(world_->CountSent("PUT"), 0U);
}

TEST_F(AzureStateTest, AFullSubnetIsNamedAndLeftAlone) {
  for (const auto how : {azure_sim::FullSubnet::kSync, azure_sim::FullSubnet::kAsync}) {
    azure_sim::Knobs knobs;
    knobs.full_subnet = how;
    world_ = std::make_unique<AzureStateWorld>(azure_sim::SmallSpec(2, "10.0.0.0/28"), knobs);
    const auto full = world_->AskAndWait(VmId(0), Names("a", 20));
    EXPECT_EQ(full.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(full.status().message()), HasSubstr("subnets/pods is full"));
    EXPECT_THAT(world_->OnWire(VmId(0)), IsEmpty());

    // The same VM is not written again before the subnet has had its time...
    const size_t puts = world_->CountSent("PUT");
    world_->Request(world_->Ask(VmId(0), Names("b", 2)));
    world_->RunFor(absl::Minutes(1));
    EXPECT_EQ(world_->CountSent("PUT"), puts);
    const auto forecast = world_->machine().ForecastOf({VmId(0), "vm-id"}, world_->now());
    ASSERT_TRUE(forecast.has_value());
    EXPECT_THAT(forecast->waits_for, HasSubstr("is full"));
    // The VM is written after that time.
    EXPECT_TRUE(world_->Answer(VmId(0)).ok());
    EXPECT_EQ(world_->OnWire(VmId(0)).size(), 2U);
  }
}

TEST_F(AzureStateTest, AFullSubnetDoesNotKeepAddressesFromBeingTakenOff) {
  azure_sim::Knobs knobs;
  world_ = std::make_unique<AzureStateWorld>(azure_sim::SmallSpec(1, "10.0.0.0/28"), knobs);
  ASSERT_TRUE(world_->AskAndWait(VmId(0), Names("a", 5)).ok());
  EXPECT_FALSE(world_->AskAndWait(VmId(0), Names("b", 20)).ok());
  const absl::Time before = world_->now();
  const auto mixed = world_->AskAndWait(VmId(0), {"spoke-c"}, {"spoke-a0"});
  EXPECT_EQ(mixed.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LT(world_->now() - before, absl::Seconds(100));
  EXPECT_EQ(world_->OnWire(VmId(0)).count("spoke-a0"), 0U);
}

TEST_F(AzureStateTest, SeveralNicsAreToldApartByMac) {
  azure_sim::SimSpec spec = azure_sim::SmallSpec(1);
  spec.scale_sets[0].nics = 2;
  world_ = std::make_unique<AzureStateWorld>(spec);
  NicRequest request = world_->Ask(VmId(0), {"spoke-a"});
  request.nic_mac = world_->InstanceOf(VmId(0)).nics.at(1)->mac;
  world_->Request(request);
  const auto nic = world_->Answer(VmId(0));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(nic->nic_mac, request.nic_mac);
  EXPECT_THAT(world_->OnWire(VmId(0)), IsEmpty());  // The first NIC's address is gone.
  EXPECT_EQ(world_->InstanceOf(VmId(0)).nics.at(1)->entries.size(), 2U);
}

TEST_F(AzureStateTest, BlocksNeedTheirFlag) {
  Make(1);
  NicRequest request = world_->Ask(VmId(0), {});
  request.wanted.push_back({"spoke-b", ip::Family::kV4, 28});
  world_->Request(request);
  EXPECT_EQ(world_->Answer(VmId(0)).status().code(), absl::StatusCode::kFailedPrecondition);

  Settings settings;
  settings.blocks_on_scale_sets = true;
  Make(1, {}, settings);
  world_->Request(request);
  const auto nic = world_->Answer(VmId(0));
  ASSERT_TRUE(nic.ok()) << nic.status();
  ASSERT_EQ(nic->configurations.size(), 1U);
  EXPECT_EQ(nic->configurations[0].range.length(), 28);
}

TEST_F(AzureStateTest, PodsThatWaitGoBeforeWarmUpAndRelease) {
  Make(40);
  std::vector<std::string> order;
  for (int i = 0; i < 40; ++i) {
    NicRequest request = world_->Ask(VmId(i), {"spoke-a"});
    request.lane = i < 30 ? CloudLane::kRelease : CloudLane::kBlocking;
    world_->Request(request);
  }
  world_->RunUntil([&] { return world_->CountSent("PUT") >= 10; });
  for (const auto& [when, request] : world_->sent()) {
    if (request.method == "PUT") order.push_back(request.url);
  }
  for (size_t i = 0; i < 10; ++i) EXPECT_THAT(order[i], HasSubstr("/virtualmachines/3")) << i;
}

TEST_F(AzureStateTest, ForecastsSayWhenAndWhy) {
  Make(1000);
  for (int i = 0; i < 1000; ++i) world_->Request(world_->Ask(VmId(i), {"spoke-a"}));
  const auto first = world_->machine().ForecastOf({VmId(0), "vm-id"}, world_->now());
  ASSERT_TRUE(first.has_value());
  absl::Time last = world_->now();
  std::string why;
  for (int i = 0; i < 1000; ++i) {
    const auto forecast = world_->machine().ForecastOf({VmId(i), "vm-id"}, world_->now());
    ASSERT_TRUE(forecast.has_value());
    if (forecast->eta > last) {
      last = forecast->eta;
      why = forecast->waits_for;
    }
  }
  EXPECT_GT(last, world_->now() + absl::Minutes(1));
  EXPECT_LT(last, world_->now() + absl::Minutes(4));
  EXPECT_THAT(why, HasSubstr("UpdateVMScaleSetVMs"));
  EXPECT_EQ(world_->machine().ForecastOf({"nobody", ""}, world_->now()), std::nullopt);
}

class FlexibleTest : public testing::Test {
 protected:
  void SetUp() override {
    spec_ = azure_sim::SmallSpec(3, "10.0.0.0/16", azure_sim::Orchestration::kFlexible);
    world_ = std::make_unique<AzureStateWorld>(spec_);
    for (auto& [name, vm] : world_->arm().world().FindGroup("sub", "rg")->vms) {
      ids_.push_back(azure_sim::Lower(vm->id));
    }
    ASSERT_EQ(ids_.size(), 3U);
  }
  azure_sim::SimSpec spec_;
  std::unique_ptr<AzureStateWorld> world_;
  std::vector<std::string> ids_;
};

TEST_F(FlexibleTest, NamesGetAddressesAndGoAgain) {
  auto nic = world_->AskAndWait(ids_[0], Names("a", 3));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(nic->configurations.size(), 3U);
  EXPECT_EQ(world_->CountSent("PUT"), 1U);
  nic = world_->AskAndWait(ids_[0], {}, {"spoke-a1"});
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_THAT(NamesOf(*nic), ElementsAre("spoke-a0", "spoke-a2"));
}

TEST_F(FlexibleTest, WhatOthersPutOnTheNicStays) {
  const azure_sim::Nic& nic = *world_->InstanceOf(ids_[0]).nics.at(0);
  const http::Request tag{
      .method = "PATCH",
      .url = "https://management.azure.com" + nic.id + "?api-version=2025-05-01",
      .headers = {},
      .body = R"({"tags": {"team": "a"}})"};
  ASSERT_EQ(world_->arm().Handle(tag, world_->now()).status, 200);
  ASSERT_TRUE(world_->AskAndWait(ids_[0], {"spoke-a"}).ok());
  ASSERT_NE(nic.tags, nullptr);
  EXPECT_EQ(nic.tags->dump(), R"({"team":"a"})");
}

TEST_F(FlexibleTest, ACloudWhoseNetworkSaysLessIsServedAsWell) {
  azure_sim::Knobs knobs;
  knobs.network_global_limits = false;
  knobs.network_async_notification = false;
  world_ = std::make_unique<AzureStateWorld>(spec_, knobs);
  ids_.assign(
      1, azure_sim::Lower(world_->arm().world().FindGroup("sub", "rg")->vms.begin()->second->id));
  const auto nic = world_->AskAndWait(ids_[0], Names("a", 3));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(nic->configurations.size(), 3U);
}

TEST_F(FlexibleTest, ListsItsVms) {
  ASSERT_TRUE(world_->AskAndWait(ids_[1], {"spoke-a"}).ok());
  const auto nics = world_->List();
  ASSERT_TRUE(nics.ok()) << nics.status();
  ASSERT_EQ(nics->size(), 3U);
  EXPECT_EQ(nics->at(1).instance, ids_[1]);
  EXPECT_EQ(nics->at(1).configurations.size(), 1U);
}

TEST_F(FlexibleTest, BlocksAreGivenWhereTheyAreEnabled) {
  Settings settings;
  settings.blocks_on_nics = true;
  world_ = std::make_unique<AzureStateWorld>(spec_, azure_sim::Knobs(), settings);
  NicRequest request = world_->Ask(ids_[0], {});
  request.wanted.push_back({"spoke-b", ip::Family::kV4, 28});
  world_->Request(request);
  const auto nic = world_->Answer(ids_[0]);
  ASSERT_TRUE(nic.ok()) << nic.status();
  ASSERT_EQ(nic->configurations.size(), 1U);
  EXPECT_EQ(nic->configurations[0].range.length(), 28);
}

// Whose write fails has changed the model all the same, and the NIC has what it had.
void OthersFailToWrite(AzureStateWorld& world,
                       const std::function<void(azure_sim::Json& entries)>& edit) {
  const std::string url =
      fmt::format("https://management.azure.com{}?api-version={}", VmId(0), kComputeVersion);
  const auto read = world.arm().Handle({.url = url}, world.now());
  azure_sim::Json model = azure_sim::Json::parse(read.body)["properties"];
  azure_sim::Json& network = model["networkProfileConfiguration"];
  edit(network["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"]);
  world.arm().knobs().failed_operations = 1;
  const azure_sim::Json body = {{"properties", {{"networkProfileConfiguration", network}}}};
  const auto put =
      world.arm().Handle({.method = "PUT", .url = url, .body = body.dump()}, world.now());
  ASSERT_EQ(put.status, 200) << put.body;
  world.RunFor(absl::Minutes(2));
  world.arm().knobs().failed_operations = 0;
}

// The next write of ours carries the whole model out: without more it would take off what the other
// one meant to.
TEST(AzureState, WhatOthersFailedToTakeOffStaysWhenWeWrite) {
  AzureStateWorld world(azure_sim::SmallSpec(1));
  ASSERT_TRUE(world.AskAndWait(VmId(0), {"spoke-a", "spoke-b"}).ok());
  const ip::Prefix a = world.RangeOf(VmId(0), "spoke-a");
  const ip::Prefix b = world.RangeOf(VmId(0), "spoke-b");
  OthersFailToWrite(world, [](azure_sim::Json& entries) {
    ASSERT_EQ(entries[1]["name"], "spoke-a");
    entries.erase(1);
  });
  ASSERT_EQ(world.RangeOf(VmId(0), "spoke-a"), a) << "its operation has failed";

  NicRequest request = world.Ask(VmId(0), {"spoke-c"});
  request.configurations = {{"spoke-a", a}, {"spoke-b", b}};
  world.Request(std::move(request));
  const auto nic = world.Answer(VmId(0));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_THAT(NamesOf(*nic), testing::UnorderedElementsAre("spoke-a", "spoke-b", "spoke-c"));
  EXPECT_EQ(world.RangeOf(VmId(0), "spoke-a"), a);
  EXPECT_EQ(world.RangeOf(VmId(0), "spoke-b"), b);
}

// A version of the API that knows of no blocks makes one address of each that it writes.
TEST(AzureState, ABlockThatOthersFailedToMakeSingleStaysWhenWeWrite) {
  Settings settings;
  settings.blocks_on_scale_sets = true;
  AzureStateWorld world(azure_sim::SmallSpec(1), {}, settings);
  NicRequest first = world.Ask(VmId(0), {});
  first.wanted.push_back({"spoke-a", ip::Family::kV4, 28});
  world.Request(std::move(first));
  ASSERT_TRUE(world.Answer(VmId(0)).ok());
  const ip::Prefix a = world.RangeOf(VmId(0), "spoke-a");
  ASSERT_EQ(a.length(), 28);
  OthersFailToWrite(world, [](azure_sim::Json& entries) {
    ASSERT_EQ(entries[1]["name"], "spoke-a");
    ASSERT_FALSE(entries[1]["properties"].contains("privateIPAddressPrefixLength"));
  });
  ASSERT_EQ(world.RangeOf(VmId(0), "spoke-a"), a) << "its operation has failed";

  NicRequest request = world.Ask(VmId(0), {});
  request.wanted.push_back({"spoke-c", ip::Family::kV4, 28});
  request.configurations = {{"spoke-a", a}};
  world.Request(std::move(request));
  const auto nic = world.Answer(VmId(0));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_THAT(NamesOf(*nic), testing::UnorderedElementsAre("spoke-a", "spoke-c"));
  EXPECT_EQ(world.RangeOf(VmId(0), "spoke-a"), a);
}

}  // namespace
}  // namespace spoke::ipam::azure
