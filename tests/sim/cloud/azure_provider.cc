#include "tests/sim/cloud/azure_provider.h"

#include <algorithm>
#include <iterator>

#include "fmt/core.h"
#include "ipam-server/cloud/azure/resources/arm_id.h"
#include "lib/base/check.h"
#include "tests/azure-sim/tokens.h"
#include "tests/sim/cloud/azure_client.h"

namespace spoke::sim {
namespace {

using azure_sim::Instance;
using azure_sim::Json;

constexpr const char* kHost = "https://management.azure.com";
constexpr const char* kGroup = "/subscriptions/sub/resourceGroups/rg";
// How often others try to write what Azure refuses since something else is under way.
constexpr int kTries = 10;
constexpr const char* kAnother = "another";  // Their identity.

// Operations of Azure take some times longer than those of a cloud that is not it.
constexpr double kSlower = 5;

azure_sim::SimSpec SpecOf(const std::string& subnet_id, const std::vector<ip::Prefix>& subnets,
                          bool flexible, uint64_t seed) {
  azure_sim::SimSpec spec{.seed = seed};
  spec.subnets.push_back({.id = subnet_id, .prefix = subnets.at(0)});
  if (subnets.size() > 1) spec.subnets.back().prefix_v6 = subnets[1];
  azure_sim::ScaleSetSpec set{.subscription = "sub", .resource_group = "rg", .name = "set"};
  if (flexible) set.orchestration = azure_sim::Orchestration::kFlexible;
  set.subnet_id = subnet_id;
  spec.scale_sets.push_back(std::move(set));
  return spec;
}

// What Azure does not document, or does in more than one way: the seed decides.
azure_sim::Knobs KnobsOf(Random random) {
  azure_sim::Knobs knobs;
  if (random.Chance(0.5)) knobs.on_concurrent_write = azure_sim::OnConcurrentWrite::kPreempt;
  if (random.Chance(0.5)) knobs.full_subnet = azure_sim::FullSubnet::kSync;
  knobs.reimage_keeps_addresses = random.Chance(0.5);
  knobs.shuffle_ip_configurations = random.Chance(0.3);
  knobs.vary_id_case = random.Chance(0.3);
  knobs.nic_lag = random.Between(absl::ZeroDuration(), absl::Seconds(10));
  if (random.Chance(0.5)) knobs.free_after_removal = absl::Seconds(30);
  if (random.Chance(0.5)) knobs.free_after_delete = absl::ZeroDuration();
  if (random.Chance(0.5)) knobs.page_size = 3;
  if (random.Chance(0.3)) knobs.foreign_writes = 0.05;
  if (random.Chance(0.3)) knobs.foreign_writes_at_put = 0.05;
  return knobs;
}

std::string OperationOf(const Instance& instance) {
  const std::string& of_nic = instance.nics.front()->operation;
  return of_nic.empty() ? instance.operation : of_nic;
}

std::vector<ipam::IpConfiguration> OursOf(const Instance& instance) {
  std::vector<ipam::IpConfiguration> ours;
  for (const azure_sim::NicEntry& entry : instance.nics.front()->entries) {
    if (entry.name.starts_with(kOurPrefix)) ours.push_back({entry.name, entry.range});
  }
  std::sort(ours.begin(), ours.end());
  return ours;
}

uint64_t CountSingle(const std::vector<ipam::IpConfiguration>& entries) {
  return static_cast<uint64_t>(std::count_if(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.range.base().is_v4() && entry.range.size() == 1;
  }));
}

std::string TextOf(const std::vector<ipam::IpConfiguration>& entries) {
  std::string text;
  for (const ipam::IpConfiguration& entry : entries) {
    text += fmt::format(" {}={}", entry.name, entry.range.ToString());
  }
  return text;
}

}  // namespace

AzureProvider::AzureProvider(Edges edges, const std::vector<ip::Prefix>& subnets, bool blocks,
                             uint64_t seed)
    : edges_(std::move(edges)),
      blocks_(blocks),
      subnet_id_(
          fmt::format("{}/providers/Microsoft.Network/virtualNetworks/vnet/subnets/pods", kGroup)),
      flexible_(RandomFor(seed, "flexible").Chance(0.3)),
      own_(KnobsOf(RandomFor(seed, "azure"))),
      alarm_(edges_.schedule, [this] { Settle(); }) {
  auto arm = azure_sim::ArmModel::Build(SpecOf(subnet_id_, subnets, flexible_, seed),
                                        edges_.schedule.now(), own_);
  CHECK(arm.ok(), "the scale set can be made");
  arm_ = *std::move(arm);
}

azure_sim::ScaleSet& AzureProvider::scale_set() {
  azure_sim::ScaleSet* const set = arm_->world().FindSet(
      fmt::format("{}/providers/Microsoft.Compute/virtualMachineScaleSets/set", kGroup));
  CHECK(set != nullptr, "the scale set is there");
  return *set;
}

// What is wrong at present is so for all calls from now on.
void AzureProvider::SetKnobs() {
  azure_sim::Knobs& knobs = arm_->knobs();
  const CloudFaults& faults = edges_.faults;
  knobs.latency = {.least = faults.least * kSlower,
                   .most = std::min(faults.most * kSlower, absl::Seconds(90))};
  knobs.failed_operations = faults.refused / 2;
  knobs.failed_after_write = 0.3;
  knobs.canceled_operations = faults.refused / 10;
  knobs.server_errors = faults.refused / 2;
  knobs.conflicts = faults.refused / 4;
  knobs.network_busy = faults.refused / 4;
  knobs.lost_responses = faults.answers_lost;
  knobs.lost_reads = faults.answers_lost / 2;
  const bool stale = faults.listings_stale > 0;
  knobs.list_lag = stale ? absl::Minutes(1) : absl::ZeroDuration();
  knobs.nic_lag = stale ? absl::Seconds(30) : own_.nic_lag;
  knobs.nic_list_empty = stale ? 0.05 : 0;
  knobs.nic_list_null = stale ? 0.05 : 0;
}

// Lets all happen that is due by now.
void AzureProvider::Settle() {
  SetKnobs();
  arm_->Advance(edges_.schedule.now());
  Mirror();
  alarm_.Set(arm_->NextEvent());
}

// What one NIC gives up another may get: all goes before anything comes.
void AzureProvider::Mirror() {
  if (arm_->world().wire_version() == mirrored_) return;
  mirrored_ = arm_->world().wire_version();
  std::vector<std::pair<std::string, std::vector<ipam::IpConfiguration>>> changed;
  for (const auto& [vm, instance] : vms_) {
    std::vector<ipam::IpConfiguration> next = OursOf(*instance);
    const std::vector<ipam::IpConfiguration>& before = edges_.fabric.Find(vm)->configurations;
    if (next == before) continue;
    std::vector<ipam::IpConfiguration> stays;
    std::set_intersection(before.begin(), before.end(), next.begin(), next.end(),
                          std::back_inserter(stays));
    const bool by_others = operations_of_others_.contains(OperationOf(*instance));
    edges_.trace.Say("azure vm={} has{}{}", vm, TextOf(next), by_others ? ", by others" : "");
    if (by_others) {
      const std::vector<ip::Prefix> lost = edges_.fabric.Overwrite(vm, std::move(stays));
      edges_.trace.Count("taken off by others", lost.size());
      edges_.trace.Count("made single by others", blocks_ ? CountSingle(next) : 0);
      edges_.trace.Count("put there by others",
                         next.size() - edges_.fabric.Find(vm)->configurations.size());
      edges_.changed_by_others(vm, lost);
    } else {
      edges_.fabric.Change(vm, std::move(stays));
    }
    changed.emplace_back(vm, std::move(next));
  }
  for (auto& [vm, next] : changed) edges_.fabric.Change(vm, std::move(next));
}

http::Response AzureProvider::Handle(http::Request request, const std::string& principal) {
  Settle();
  request.headers.Add("Authorization",
                      "Bearer " + azure_sim::FormatToken({.principal = principal,
                                                          .issued = edges_.schedule.began(),
                                                          .expires = absl::InfiniteFuture()}));
  const uint64_t lost = arm_->counters().foreign_writes_lost;
  http::Response response = arm_->Handle(request, edges_.schedule.now());
  if (principal != kAnother && arm_->counters().foreign_writes_lost > lost) edges_.overwritten();
  Settle();
  return response;
}

// --- Machines. ---

Vm AzureProvider::AddVm(const std::string& node, size_t, Random&) {
  Settle();
  azure_sim::ScaleSet& set = scale_set();
  const int64_t number = set.next_instance;
  CHECK(arm_->compute().AddInstances(set, 1, edges_.schedule.now()),
        "the subnet has an address for the machine");
  Instance& instance = *set.instances.at(number);
  vms_.emplace(instance.vm_id, &instance);
  Vm vm{.id = instance.vm_id,
        .mac = instance.nics.front()->mac,
        .instance = azure_sim::Lower(instance.id)};
  edges_.fabric.AddVm({node, vm.id}, vm.mac, vm.instance);
  Settle();
  return vm;
}

void AzureProvider::RemoveVm(const std::string& vm) {
  const auto instance = vms_.extract(vm);
  if (instance.empty()) return;
  edges_.fabric.RemoveVm(vm);
  Settle();
  arm_->compute().RemoveInstance(*instance.mapped(), edges_.schedule.now());
  Settle();
}

void AzureProvider::Reimage(const std::string& vm) {
  const auto instance = vms_.find(vm);
  if (instance == vms_.end() || flexible_) return;  // NICs of their own stay as they are.
  Settle();
  arm_->compute().Reimage(*instance->second, edges_.schedule.now());
  operations_of_others_.insert(OperationOf(*instance->second));
  Settle();
}

// --- Others who write NICs. ---

std::string AzureProvider::UrlOf(const Instance& instance) const {
  return flexible_
             ? fmt::format("{}{}?api-version=2025-05-01", kHost, instance.nics.front()->id)
             : fmt::format("{}{}?api-version={}", kHost, instance.id, ipam::azure::kComputeVersion);
}

Json* AzureProvider::ConfigurationsOf(Json& resource) const {
  const char* const path =
      flexible_ ? "/properties/ipConfigurations"
                : "/properties/networkProfileConfiguration/networkInterfaceConfigurations/0"
                  "/properties/ipConfigurations";
  const Json::json_pointer pointer(path);
  return resource.contains(pointer) ? &resource[pointer] : nullptr;
}

// Returns null where it cannot be read.
Json AzureProvider::ReadAsAnother(const std::string& vm) {
  const auto instance = vms_.find(vm);
  if (instance == vms_.end()) return nullptr;
  const http::Response response = Handle({.url = UrlOf(*instance->second)}, kAnother);
  Json resource = Json::parse(response.body, nullptr, false);
  if (response.status != 200 || ConfigurationsOf(resource) == nullptr) return nullptr;
  if (flexible_) return resource;
  // Of the rest of a machine some must not be written.
  return {
      {"properties",
       {{"networkProfileConfiguration", resource["properties"]["networkProfileConfiguration"]}}}};
}

void AzureProvider::WriteAsAnother(const std::string& vm, const Json& resource, int tries) {
  const auto instance = vms_.find(vm);
  if (instance == vms_.end()) return;
  const std::string before = OperationOf(*instance->second);
  const http::Response response =
      Handle({.method = "PUT", .url = UrlOf(*instance->second), .body = resource.dump()}, kAnother);
  edges_.trace.Say("somebody else writes vm={}: {}", vm, response.status);
  // An answer may be lost, too.
  if (vms_.contains(vm) && OperationOf(*instance->second) != before) {
    operations_of_others_.insert(OperationOf(*instance->second));
    edges_.trace.Count("written by others");
  } else if (tries > 1) {
    edges_.schedule.After(absl::Seconds(7),
                          [this, vm, resource, tries] { WriteAsAnother(vm, resource, tries - 1); });
  }
}

void AzureProvider::TakeOff(const std::string& vm, size_t which) {
  Json resource = ReadAsAnother(vm);
  Json* const entries = resource.is_null() ? nullptr : ConfigurationsOf(resource);
  if (entries == nullptr) return;
  std::vector<size_t> ours;
  for (size_t i = 0; i < entries->size(); ++i) {
    if ((*entries)[i].value("name", "").starts_with(kOurPrefix)) ours.push_back(i);
  }
  if (ours.empty()) return;
  entries->erase(ours[which % ours.size()]);
  WriteAsAnother(vm, resource, kTries);
}

void AzureProvider::WriteBack(const std::string& vm, absl::Duration after) {
  const Json resource = ReadAsAnother(vm);
  if (resource.is_null()) return;
  edges_.schedule.After(after, [this, vm, resource] { WriteAsAnother(vm, resource, kTries); });
}

std::unique_ptr<ipam::Cloud> AzureProvider::Connect(const Client& client,
                                                    ipam::CloudAnswer answer) {
  return std::make_unique<AzureClient>(
      AzureClient::Edges{.schedule = edges_.schedule,
                         .trace = edges_.trace,
                         .client = client,
                         .blocks = blocks_,
                         .handle =
                             [this](http::Request request, const std::string& principal) {
                               return Handle(std::move(request), principal);
                             }},
      scale_set().id, std::move(answer));
}

}  // namespace spoke::sim
