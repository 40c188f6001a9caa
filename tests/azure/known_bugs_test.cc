// Tests of bugs that others have met on Azure, one test each. The name says whose and which.
#include "gmock/gmock.h"
#include "tests/azure/machine_world.h"

namespace spoke::ipam::azure {
namespace {

using azure_sim::Json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::unique_ptr<AzureStateWorld> Make(int instances, azure_sim::Knobs knobs = {}) {
  return std::make_unique<AzureStateWorld>(azure_sim::SmallSpec(instances), std::move(knobs));
}

Json ConfigurationsIn(const http::Request& put) {
  const Json body = Json::parse(put.body);
  return body["properties"]["networkProfileConfiguration"]["networkInterfaceConfigurations"][0]
             ["properties"]["ipConfigurations"];
}

http::Request LastPut(const AzureStateWorld& world) {
  for (auto it = world.sent().rbegin(); it != world.sent().rend(); ++it) {
    if (it->second.method == "PUT") return it->second;
  }
  return {};
}

// github.com/cilium/cilium/issues/19695: a write that was forbidden was retried for ever, and used
// up the whole subscription's budget.
TEST(KnownBugs, Cilium19695_ForbiddenIsParkedNotRetried) {
  azure_sim::Knobs knobs;
  knobs.deny_writes = true;
  auto world = Make(50, knobs);
  const absl::Time end = world->now() + absl::Hours(1);
  // The server asks again each time it is told no.
  while (world->now() < end) {
    for (int i = 0; i < 50; ++i) {
      if (world->machine().ForecastOf({VmId(i), "vm-id"}, world->now()).has_value()) continue;
      world->Request(world->Ask(VmId(i), {"spoke-a"}));
    }
    world->RunFor(absl::Seconds(30));
  }
  // Each VM is written once, and then a few of them each time the scale set's gate opens.
  EXPECT_LE(world->CountSent("PUT"), 50U * 5);
  EXPECT_EQ(world->arm().counters().sent_into_closed_gate, 0U);
  const auto forecast = world->machine().ForecastOf({VmId(7), "vm-id"}, world->now());
  ASSERT_TRUE(forecast.has_value());
  EXPECT_THAT(forecast->waits_for, HasSubstr("AuthorizationFailed"));

  // Once an operator has seen to it, it works by itself.
  world->arm().knobs().deny_writes = false;
  world->RunFor(absl::Minutes(45));
  EXPECT_THAT(world->OnWire(VmId(7)), ElementsAre("spoke-a"));
}

// The other half of 19695: the image reference was echoed, which needs rights on the gallery.
TEST(KnownBugs, Cilium19695_ImageReferenceIsNeverEchoed) {
  auto world = Make(1);
  ASSERT_TRUE(world->AskAndWait(VmId(0), {"spoke-a"}).ok());
  EXPECT_THAT(LastPut(*world).body, Not(HasSubstr("imageReference")));
  EXPECT_THAT(LastPut(*world).body, Not(HasSubstr("storageProfile")));
}

// github.com/cilium/cilium/issues/43598: the entries of an operation that failed stayed in the
// model, and made every later one fail.
TEST(KnownBugs, Cilium43598_FailedOperationIsCleanedUp) {
  azure_sim::Knobs knobs;
  knobs.failed_operations = 1;
  knobs.failed_operation_code = "PublicIpPrefixOutOfIpAddressesForVMScaleSet";
  auto world = Make(1, knobs);
  world->Request(world->Ask(VmId(0), {"spoke-a"}));
  world->RunUntil([&] { return world->CountSent("PUT") == 1; });
  world->arm().knobs().failed_operations = 0;
  const auto answer = world->Answer(VmId(0));
  EXPECT_FALSE(answer.ok());
  EXPECT_THAT(std::string(answer.status().message()),
              HasSubstr("PublicIpPrefixOutOfIpAddressesForVMScaleSet"));
  EXPECT_EQ(world->CountSent("PUT"), 2U);
  EXPECT_EQ(ConfigurationsIn(LastPut(*world)).size(), 1U);  // The model has only the primary left.
  const auto next = world->AskAndWait(VmId(0), {"spoke-b"});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_THAT(NamesOf(*next), ElementsAre("spoke-b"));
}

// This is the same, when the trouble is Azure's own: one more write of the same, and only then it
// is cleaned up.
TEST(KnownBugs, Cilium43598_InternalErrorsAreMetByTheSameOnceMore) {
  for (const bool again : {false, true}) {
    SCOPED_TRACE(again);
    azure_sim::Knobs knobs;
    knobs.failed_operations = 1;
    auto world = Make(1, knobs);
    world->Request(world->Ask(VmId(0), {"spoke-a"}));
    world->RunUntil([&] { return world->CountSent("PUT") == (again ? 2U : 1U); });
    world->arm().knobs().failed_operations = 0;
    const auto answer = world->Answer(VmId(0));
    EXPECT_EQ(answer.ok(), !again) << answer.status();
    EXPECT_EQ(world->CountSent("PUT"), again ? 3U : 2U);
    EXPECT_EQ(ConfigurationsIn(LastPut(*world)).size(), again ? 1U : 2U);
  }
}

// github.com/cilium/cilium/issues/13415, 19743: the VM's own address was given to a pod.
TEST(KnownBugs, Cilium13415_PrimaryIsNeverOurs) {
  azure_sim::SimSpec spec = azure_sim::SmallSpec(1);
  // The primary is refused even with our prefix.
  spec.scale_sets[0].ip_configuration = "spoke-primary";
  AzureStateWorld world(spec);
  auto nic = world.AskAndWait(VmId(0), {"spoke-a"});
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_THAT(NamesOf(*nic), ElementsAre("spoke-a"));
  const auto listing = world.List();
  ASSERT_TRUE(listing.ok());
  EXPECT_EQ(listing->at(0).configurations.size(), 1U);
  nic = world.AskAndWait(VmId(0), {}, {"spoke-primary"});
  EXPECT_EQ(nic.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(world.OnWire(VmId(0)), Contains("spoke-primary"));
}

// github.com/cilium/cilium/issues/14655: two address managers on one NIC took each other's entries.
TEST(KnownBugs, Cilium14655_EntriesOfOthersAreNeitherUsedNorTouched) {
  azure_sim::SimSpec spec = azure_sim::SmallSpec(1);
  spec.scale_sets[0].baked_addresses = 2;
  spec.scale_sets[0].baked_prefix = "azure-vnet-";
  AzureStateWorld world(spec);
  const auto nic = world.AskAndWait(VmId(0), {"spoke-a"});
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_THAT(NamesOf(*nic), ElementsAre("spoke-a"));
  EXPECT_EQ(world.AskAndWait(VmId(0), {"azure-vnet-7"}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(world.AskAndWait(VmId(0), {}, {"spoke-a"}).ok());
  EXPECT_EQ(world.InstanceOf(VmId(0)).nics.at(0)->entries.size(), 3U);
  EXPECT_EQ(ConfigurationsIn(LastPut(world)).size(), 3U);
}

// github.com/cloudfoundry/bosh-azure-cpi-release/issues/765: lists lag behind what was created, so
// what is not in one is not known to be gone.
TEST(KnownBugs, BoshAzureCpi765_WhatAListLacksIsReadByItself) {
  azure_sim::Knobs knobs;
  knobs.list_omits = 0.5;
  auto world = Make(30, knobs);
  for (int i = 0; i < 30; ++i) world->Request(world->Ask(VmId(i), {"spoke-a"}));
  world->RunUntil([&] { return world->answers() == 30; });
  for (int i = 0; i < 30; ++i) {
    const auto nic = world->Answer(VmId(i));
    ASSERT_TRUE(nic.ok()) << nic.status();
    EXPECT_THAT(NamesOf(*nic), ElementsAre("spoke-a"));
  }
}

// github.com/MicrosoftDocs/azure-docs/issues/8501: a PUT succeeds and has no effect.
TEST(KnownBugs, AzureDocs8501_SuccessWithoutEffectIsNoticed) {
  auto world = Make(1);
  world->set_intercept(
      [](const http::Request& request) -> std::optional<absl::StatusOr<http::Response>> {
        if (request.method != "PUT") return std::nullopt;
        return http::Response{.status = 200, .headers = {}, .body = "{}"};
      });
  const auto answer = world->AskAndWait(VmId(0), {"spoke-a"});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_LE(world->CountSent("PUT"), 2U);  // It is written once more, and then somebody is told.
}

// github.com/Azure/aad-pod-identity/issues/635: a PUT dropped the application security groups.
TEST(KnownBugs, AadPodIdentity635_SecurityGroupsAreKeptAndCopied) {
  azure_sim::SimSpec spec = azure_sim::SmallSpec(1);
  const std::string group =
      "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/"
      "applicationSecurityGroups/asg";
  spec.scale_sets[0].application_security_groups = {group};
  spec.scale_sets[0].network_security_group =
      "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/networkSecurityGroups/nsg";
  AzureStateWorld world(spec);
  ASSERT_TRUE(world.AskAndWait(VmId(0), {"spoke-a"}).ok());
  const Json entries = ConfigurationsIn(LastPut(world));
  ASSERT_EQ(entries.size(), 2U);
  for (const Json& entry : entries) {
    EXPECT_EQ(entry["properties"]["applicationSecurityGroups"][0]["id"], group);
  }
  EXPECT_THAT(LastPut(world).body, HasSubstr("networkSecurityGroups/nsg"));
}

// github.com/cilium/cilium/issues/10190: fields that the client did not know were dropped.
TEST(KnownBugs, Cilium10190_EveryFieldIsSentBack) {
  azure_sim::SimSpec spec = azure_sim::SmallSpec(1);
  spec.scale_sets[0].accelerated_networking = true;
  spec.scale_sets[0].ip_forwarding = true;
  spec.scale_sets[0].load_balancer_pools = {
      "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/lb/"
      "backendAddressPools/pool"};
  AzureStateWorld world(spec);
  Json before;
  world.set_intercept(
      [&](const http::Request& request) -> std::optional<absl::StatusOr<http::Response>> {
        const bool model =
            request.method == "GET" && request.url.find("/virtualmachines/0?") != std::string::npos;
        if (!model) return std::nullopt;
        http::Response response = world.arm().Handle(request, world.now());
        Json body = Json::parse(response.body);
        Json& nic = body["properties"]["networkProfileConfiguration"]
                        ["networkInterfaceConfigurations"][0]["properties"];
        nic["publicIPAddressConfiguration"] = {{"name", "of the future"}};
        before = nic;
        response.body = body.dump();
        return response;
      });
  world.Request(world.Ask(VmId(0), {"spoke-a"}));
  world.RunUntil([&] { return world.CountSent("PUT") == 1; });
  Json after = Json::parse(LastPut(world).body)["properties"]["networkProfileConfiguration"]
                                               ["networkInterfaceConfigurations"][0]["properties"];
  ASSERT_EQ(after["ipConfigurations"].size(), 2U);
  after.erase("ipConfigurations");
  before.erase("ipConfigurations");
  EXPECT_EQ(nlohmann::json(after), nlohmann::json(before));  // The order does not matter.
}

// github.com/Azure/AKS/issues/1404: VMs got accelerated networking where it was disabled, and Azure
// refuses to mix. Every write carries the field, whatever it is for.
TEST(KnownBugs, Aks1404_AcceleratedNetworkingIsKeptInEveryWrite) {
  for (const bool flexible : {false, true}) {
    for (const bool accelerated : {false, true}) {
      SCOPED_TRACE(fmt::format("flexible {}, accelerated {}", flexible, accelerated));
      azure_sim::SimSpec spec = azure_sim::SmallSpec(
          1, "10.0.0.0/16",
          flexible ? azure_sim::Orchestration::kFlexible : azure_sim::Orchestration::kUniform);
      spec.scale_sets[0].accelerated_networking = accelerated;
      AzureStateWorld world(spec);
      const auto& vms = world.arm().world().FindGroup("sub", "rg")->vms;
      const std::string vm = flexible ? azure_sim::Lower(vms.begin()->second->id) : VmId(0);
      ASSERT_TRUE(world.AskAndWait(vm, {"spoke-a", "spoke-b"}).ok());
      ASSERT_TRUE(world.AskAndWait(vm, {"spoke-c"}, {"spoke-a"}).ok());
      ASSERT_TRUE(world.AskAndWait(vm, {}, {"spoke-b", "spoke-c"}).ok());
      EXPECT_EQ(world.CountSent("PUT"), 3U);
      for (const auto& [when, request] : world.sent()) {
        if (request.method != "PUT") continue;
        Json nic = Json::parse(request.body)["properties"];
        if (!flexible) {
          nic = nic["networkProfileConfiguration"]["networkInterfaceConfigurations"][0];
          nic = Json(nic["properties"]);
        }
        EXPECT_EQ(nic["enableAcceleratedNetworking"], Json(accelerated)) << request.body;
      }
    }
  }
}

// github.com/cilium/cilium/issues/16206: looking at all VMs again and again used up nine tenths of
// a subscription's requests, and other clients failed.
TEST(KnownBugs, Cilium16206_NodesWithNothingToDoCostNoCalls) {
  auto world = Make(50);
  for (int i = 0; i < 50; ++i) world->Request(world->Ask(VmId(i), {"spoke-a"}));
  world->RunUntil([&] { return world->answers() == 50; });
  world->RunFor(absl::Minutes(2));
  const size_t settled = world->sent().size();
  world->RunFor(absl::Hours(24));
  EXPECT_EQ(world->sent().size(), settled);
  EXPECT_EQ(world->machine().NextWake(), absl::InfiniteFuture());

  // They cost none while another node is served, either.
  ASSERT_TRUE(world->AskAndWait(VmId(7), {"spoke-b"}).ok());
  for (size_t i = settled; i < world->sent().size(); ++i) {
    EXPECT_THAT(world->sent()[i].second.url,
                testing::AnyOf(HasSubstr(VmId(7)), HasSubstr("/operations/")));
  }
}

// github.com/kubernetes/kubernetes/issues/80365: an upgrade to the latest model wiped what had been
// given to the instance alone. The server learns of it when it next looks.
TEST(KnownBugs, Kubernetes80365_WhatAnUpgradeWipedIsNotTold) {
  auto world = Make(1);
  ASSERT_TRUE(world->AskAndWait(VmId(0), Names("a", 3)).ok());
  http::Request upgrade{.method = "POST",
                        .url = fmt::format("https://management.azure.com{}/manualupgrade"
                                           "?api-version=2025-04-01",
                                           kSetId),
                        .headers = {},
                        .body = R"({"instanceIds":["0"]})"};
  ASSERT_LT(world->arm().Handle(upgrade, world->now()).status, 300);
  world->RunFor(absl::Minutes(5));
  ASSERT_THAT(world->OnWire(VmId(0)), IsEmpty());
  NicRequest look = world->Ask(VmId(0), {});
  for (const std::string& name : Names("a", 3)) look.configurations.push_back({name, {}});
  world->Request(look);
  const auto nic = world->Answer(VmId(0));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_THAT(nic->configurations, IsEmpty());
  const auto again = world->AskAndWait(VmId(0), Names("b", 2));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->configurations.size(), 2U);
}

// github.com/Azure/kube-egress-gateway/issues/981: the model has the name, the NIC does not, and
// nothing happens until the same list is PUT once more.
TEST(KnownBugs, KubeEgressGateway981_ADirtyModelIsPutAgain) {
  azure_sim::Knobs knobs;
  knobs.failed_operations = 1;
  auto world = Make(1, knobs);
  // Somebody (we, before a restart) left this behind.
  world->Request(world->Ask(VmId(0), {"spoke-a"}));
  world->RunUntil([&] { return world->CountSent("PUT") == 1; });
  world->arm().Advance(world->now() + absl::Minutes(2));
  AzureStateWorld* dirty = world.get();
  dirty->arm().knobs().failed_operations = 0;
  Settings settings;
  settings.endpoints.resource_manager = "https://management.azure.com";
  settings.scale_sets = {kSetId};
  AzureState machine(settings, 7);
  absl::Time now = world->now() + absl::Minutes(3);
  machine.Request(world->Ask(VmId(0), {"spoke-a"}), now);
  std::vector<MachineAnswer> answers;
  int puts = 0;
  for (int step = 0; step < 200 && answers.empty(); ++step) {
    for (const MachineCall& call : machine.Next(now)) {
      puts += call.request.method == "PUT" ? 1 : 0;
      machine.OnResponse(call.id, dirty->arm().Handle(call.request, now), now);
    }
    answers = machine.TakeAnswers();
    now += absl::Seconds(2);
  }
  ASSERT_EQ(answers.size(), 1U);
  ASSERT_TRUE(answers[0].result.ok()) << answers[0].result.status();
  EXPECT_THAT(NamesOf(*answers[0].result), ElementsAre("spoke-a"));
  EXPECT_EQ(puts, 1);
}

// github.com/kubernetes-sigs/cloud-provider-azure/issues/9728: the load balancer's controller
// writes the same VMs; whoever comes second must not undo what the first did.
TEST(KnownBugs, CloudProviderAzure9728_ForeignWritesAreReadAgainNotOverwritten) {
  azure_sim::Knobs knobs;
  knobs.foreign_writes = 0.5;
  auto world = Make(40, knobs);
  for (int i = 0; i < 40; ++i) world->Request(world->Ask(VmId(i), {"spoke-a"}));
  world->RunUntil([&] { return world->answers() == 40; });
  EXPECT_EQ(world->answers(), 40U);
  EXPECT_GT(world->arm().counters().foreign_writes, 0U);
  EXPECT_EQ(world->arm().counters().foreign_writes_lost, 0U);
  for (int i = 0; i < 40; ++i) EXPECT_THAT(world->OnWire(VmId(i)), ElementsAre("spoke-a"));
}

// cloud-provider-azure and Cilium both crashed on it: a VM that is being deleted has no network
// profile.
TEST(KnownBugs, CloudProviderAzure_NoNetworkProfileIsNotWritten) {
  auto world = Make(2);
  const http::Request remove{.method = "DELETE",
                             .url = fmt::format("https://management.azure.com{}?api-version="
                                                "2025-04-01",
                                                VmId(0)),
                             .headers = {},
                             .body = ""};
  ASSERT_LT(world->arm().Handle(remove, world->now()).status, 300);
  NicRequest request = world->Ask(VmId(1), {"spoke-b"});
  request.node.name = "dying";
  request.instance = VmId(0);
  world->Request(request);
  const auto answer = world->Answer("dying");
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(world->CountSent("PUT"), 0U);
}

// github.com/cilium/cilium/pull/21387: throttling leaked what had been half done.
TEST(KnownBugs, Cilium21387_AThrottledWriteIsSentAgainOnce) {
  azure_sim::Knobs knobs;
  knobs.limits[azure_sim::Policy::kUpdateScaleSetVms].subscription = {1, 1};
  auto world = Make(3, knobs);
  for (int i = 0; i < 3; ++i) world->Request(world->Ask(VmId(i), {"spoke-a"}));
  world->RunUntil([&] { return world->answers() == 3; });
  for (int i = 0; i < 3; ++i) EXPECT_THAT(world->OnWire(VmId(i)), ElementsAre("spoke-a"));
  EXPECT_GT(world->machine().counts().refused, 0U);
  // The third was under way already when the second was refused.
  EXPECT_LE(world->arm().counters().sent_into_closed_gate, 1U);
}

// The answer to a PUT is lost, though Azure carries it out: names that were stored before tell.
TEST(KnownBugs, LostAnswer_ReadingDecidesByName) {
  azure_sim::Knobs knobs;
  knobs.lost_responses = 1;
  auto world = Make(1, knobs);
  world->Request(world->Ask(VmId(0), Names("a", 4)));
  world->RunUntil([&] { return world->CountSent("PUT") == 1; });
  world->arm().knobs().lost_responses = 0;
  const auto nic = world->Answer(VmId(0));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(nic->configurations.size(), 4U);
  EXPECT_EQ(world->CountSent("PUT"), 1U);
}

}  // namespace
}  // namespace spoke::ipam::azure
