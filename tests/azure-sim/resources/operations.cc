#include "tests/azure-sim/resources/operations.h"

#include <algorithm>
#include <unordered_map>

#include "fmt/core.h"

namespace spoke::azure_sim {
namespace {

constexpr Scope kSub = Scope::kSubscription;
constexpr Scope kGrp = Scope::kGroup;
constexpr Simulated kYes = Simulated::kYes;
constexpr Simulated kPart = Simulated::kInPart;
constexpr Simulated kNo = Simulated::kNo;

constexpr Api kCompute = Api::kCompute;
constexpr Api kNetwork = Api::kNetwork;
constexpr Api kScaleSetNics = Api::kScaleSetNics;

constexpr ApiOperation kOperations[] = {
    // -- Scale sets
    {kCompute, kSub, "GET", "virtualMachineScaleSets", "VirtualMachineScaleSets_ListAll", kYes},
    {kCompute, kSub, "GET", "locations/*/virtualMachineScaleSets",
     "VirtualMachineScaleSets_ListByLocation", kYes},
    {kCompute, kGrp, "GET", "virtualMachineScaleSets", "VirtualMachineScaleSets_List", kYes},
    {kCompute, kGrp, "GET", "virtualMachineScaleSets/*", "VirtualMachineScaleSets_Get", kYes},
    {kCompute, kGrp, "PUT", "virtualMachineScaleSets/*", "VirtualMachineScaleSets_CreateOrUpdate",
     kYes},
    {kCompute, kGrp, "PATCH", "virtualMachineScaleSets/*", "VirtualMachineScaleSets_Update", kYes},
    {kCompute, kGrp, "DELETE", "virtualMachineScaleSets/*", "VirtualMachineScaleSets_Delete",
     kPart},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/manualupgrade",
     "VirtualMachineScaleSets_UpdateInstances", kYes},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/delete",
     "VirtualMachineScaleSets_DeleteInstances", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/approveRollingUpgrade",
     "VirtualMachineScaleSets_ApproveRollingUpgrade", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/convertToSinglePlacementGroup",
     "VirtualMachineScaleSets_ConvertToSinglePlacementGroup", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/deallocate",
     "VirtualMachineScaleSets_Deallocate", kNo},
    {kCompute, kGrp, "POST",
     "virtualMachineScaleSets/*/forceRecoveryServiceFabricPlatformUpdateDomainWalk",
     "VirtualMachineScaleSets_ForceRecoveryServiceFabricPlatformUpdateDomainWalk", kNo},
    {kCompute, kGrp, "GET", "virtualMachineScaleSets/*/instanceView",
     "VirtualMachineScaleSets_GetInstanceView", kNo},
    {kCompute, kGrp, "GET", "virtualMachineScaleSets/*/osUpgradeHistory",
     "VirtualMachineScaleSets_GetOSUpgradeHistory", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/performMaintenance",
     "VirtualMachineScaleSets_PerformMaintenance", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/poweroff",
     "VirtualMachineScaleSets_PowerOff", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/reapply", "VirtualMachineScaleSets_Reapply",
     kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/redeploy",
     "VirtualMachineScaleSets_Redeploy", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/reimage", "VirtualMachineScaleSets_Reimage",
     kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/reimageall",
     "VirtualMachineScaleSets_ReimageAll", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/restart", "VirtualMachineScaleSets_Restart",
     kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/scaleOut",
     "VirtualMachineScaleSets_ScaleOut", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/setOrchestrationServiceState",
     "VirtualMachineScaleSets_SetOrchestrationServiceState", kNo},
    {kCompute, kGrp, "GET", "virtualMachineScaleSets/*/skus", "VirtualMachineScaleSets_ListSkus",
     kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/start", "VirtualMachineScaleSets_Start",
     kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/osRollingUpgrade",
     "VirtualMachineScaleSetRollingUpgrades_StartOSUpgrade", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/extensionRollingUpgrade",
     "VirtualMachineScaleSetRollingUpgrades_StartExtensionUpgrade", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/rollingUpgrades/cancel",
     "VirtualMachineScaleSetRollingUpgrades_Cancel", kNo},
    {kCompute, kGrp, "GET", "virtualMachineScaleSets/*/rollingUpgrades/latest",
     "VirtualMachineScaleSetRollingUpgrades_GetLatest", kNo},
    {kCompute, kGrp, "GET", "virtualMachineScaleSets/*/extensions",
     "VirtualMachineScaleSetExtensions_List", kNo},
    {kCompute, kGrp, "GET", "virtualMachineScaleSets/*/extensions/*",
     "VirtualMachineScaleSetExtensions_Get", kNo},
    {kCompute, kGrp, "PUT", "virtualMachineScaleSets/*/extensions/*",
     "VirtualMachineScaleSetExtensions_CreateOrUpdate", kNo},
    {kCompute, kGrp, "PATCH", "virtualMachineScaleSets/*/extensions/*",
     "VirtualMachineScaleSetExtensions_Update", kNo},
    {kCompute, kGrp, "DELETE", "virtualMachineScaleSets/*/extensions/*",
     "VirtualMachineScaleSetExtensions_Delete", kNo},
    // -- Instances of scale sets.
    {kCompute, kGrp, "GET", "virtualMachineScaleSets/*/virtualMachines",
     "VirtualMachineScaleSetVMs_List", kYes},
    {kCompute, kGrp, "GET", "virtualMachineScaleSets/*/virtualMachines/*",
     "VirtualMachineScaleSetVMs_Get", kYes},
    {kCompute, kGrp, "PUT", "virtualMachineScaleSets/*/virtualMachines/*",
     "VirtualMachineScaleSetVMs_Update", kYes},
    {kCompute, kGrp, "DELETE", "virtualMachineScaleSets/*/virtualMachines/*",
     "VirtualMachineScaleSetVMs_Delete", kYes},
    {kCompute, kGrp, "GET", "virtualMachineScaleSets/*/virtualMachines/*/instanceView",
     "VirtualMachineScaleSetVMs_GetInstanceView", kYes},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/virtualMachines/*/reimage",
     "VirtualMachineScaleSetVMs_Reimage", kYes},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/virtualMachines/*/approveRollingUpgrade",
     "VirtualMachineScaleSetVMs_ApproveRollingUpgrade", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/virtualMachines/*/attachDetachDataDisks",
     "VirtualMachineScaleSetVMs_AttachDetachDataDisks", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/virtualMachines/*/deallocate",
     "VirtualMachineScaleSetVMs_Deallocate", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/virtualMachines/*/performMaintenance",
     "VirtualMachineScaleSetVMs_PerformMaintenance", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/virtualMachines/*/poweroff",
     "VirtualMachineScaleSetVMs_PowerOff", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/virtualMachines/*/redeploy",
     "VirtualMachineScaleSetVMs_Redeploy", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/virtualMachines/*/reimageall",
     "VirtualMachineScaleSetVMs_ReimageAll", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/virtualMachines/*/restart",
     "VirtualMachineScaleSetVMs_Restart", kNo},
    {kCompute, kGrp, "POST",
     "virtualMachineScaleSets/*/virtualMachines/*/retrieveBootDiagnosticsData",
     "VirtualMachineScaleSetVMs_RetrieveBootDiagnosticsData", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/virtualMachines/*/runCommand",
     "VirtualMachineScaleSetVMs_RunCommand", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/virtualMachines/*/simulateEviction",
     "VirtualMachineScaleSetVMs_SimulateEviction", kNo},
    {kCompute, kGrp, "POST", "virtualMachineScaleSets/*/virtualMachines/*/start",
     "VirtualMachineScaleSetVMs_Start", kNo},
    {kCompute, kGrp, "GET", "virtualMachineScaleSets/*/virtualMachines/*/extensions",
     "VirtualMachineScaleSetVMExtensions_List", kNo},
    {kCompute, kGrp, "GET", "virtualMachineScaleSets/*/virtualMachines/*/extensions/*",
     "VirtualMachineScaleSetVMExtensions_Get", kNo},
    {kCompute, kGrp, "PUT", "virtualMachineScaleSets/*/virtualMachines/*/extensions/*",
     "VirtualMachineScaleSetVMExtensions_CreateOrUpdate", kNo},
    {kCompute, kGrp, "PATCH", "virtualMachineScaleSets/*/virtualMachines/*/extensions/*",
     "VirtualMachineScaleSetVMExtensions_Update", kNo},
    {kCompute, kGrp, "DELETE", "virtualMachineScaleSets/*/virtualMachines/*/extensions/*",
     "VirtualMachineScaleSetVMExtensions_Delete", kNo},
    {kCompute, kGrp, "GET", "virtualMachineScaleSets/*/virtualMachines/*/runCommands",
     "VirtualMachineScaleSetVMRunCommands_List", kNo},
    {kCompute, kGrp, "GET", "virtualMachineScaleSets/*/virtualMachines/*/runCommands/*",
     "VirtualMachineScaleSetVMRunCommands_Get", kNo},
    {kCompute, kGrp, "PUT", "virtualMachineScaleSets/*/virtualMachines/*/runCommands/*",
     "VirtualMachineScaleSetVMRunCommands_CreateOrUpdate", kNo},
    {kCompute, kGrp, "PATCH", "virtualMachineScaleSets/*/virtualMachines/*/runCommands/*",
     "VirtualMachineScaleSetVMRunCommands_Update", kNo},
    {kCompute, kGrp, "DELETE", "virtualMachineScaleSets/*/virtualMachines/*/runCommands/*",
     "VirtualMachineScaleSetVMRunCommands_Delete", kNo},
    // -- Virtual machines, those of Flexible scale sets.
    {kCompute, kSub, "GET", "virtualMachines", "VirtualMachines_ListAll", kYes},
    {kCompute, kSub, "GET", "locations/*/virtualMachines", "VirtualMachines_ListByLocation", kNo},
    {kCompute, kGrp, "GET", "virtualMachines", "VirtualMachines_List", kYes},
    {kCompute, kGrp, "GET", "virtualMachines/*", "VirtualMachines_Get", kYes},
    {kCompute, kGrp, "PUT", "virtualMachines/*", "VirtualMachines_CreateOrUpdate", kPart},
    {kCompute, kGrp, "PATCH", "virtualMachines/*", "VirtualMachines_Update", kPart},
    {kCompute, kGrp, "DELETE", "virtualMachines/*", "VirtualMachines_Delete", kYes},
    {kCompute, kGrp, "GET", "virtualMachines/*/instanceView", "VirtualMachines_InstanceView", kYes},
    {kCompute, kGrp, "POST", "virtualMachines/*/assessPatches", "VirtualMachines_AssessPatches",
     kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/attachDetachDataDisks",
     "VirtualMachines_AttachDetachDataDisks", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/capture", "VirtualMachines_Capture", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/convertToManagedDisks",
     "VirtualMachines_ConvertToManagedDisks", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/deallocate", "VirtualMachines_Deallocate", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/generalize", "VirtualMachines_Generalize", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/installPatches", "VirtualMachines_InstallPatches",
     kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/migrateToVirtualMachineScaleSet",
     "VirtualMachines_MigrateToVMScaleSet", kNo},
    {kCompute, kGrp, "GET", "virtualMachines/*/vmSizes", "VirtualMachines_ListAvailableSizes", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/performMaintenance",
     "VirtualMachines_PerformMaintenance", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/powerOff", "VirtualMachines_PowerOff", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/reapply", "VirtualMachines_Reapply", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/redeploy", "VirtualMachines_Redeploy", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/reimage", "VirtualMachines_Reimage", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/restart", "VirtualMachines_Restart", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/retrieveBootDiagnosticsData",
     "VirtualMachines_RetrieveBootDiagnosticsData", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/runCommand", "VirtualMachines_RunCommand", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/simulateEviction",
     "VirtualMachines_SimulateEviction", kNo},
    {kCompute, kGrp, "POST", "virtualMachines/*/start", "VirtualMachines_Start", kNo},
    {kCompute, kGrp, "GET", "virtualMachines/*/extensions", "VirtualMachineExtensions_List", kNo},
    {kCompute, kGrp, "GET", "virtualMachines/*/extensions/*", "VirtualMachineExtensions_Get", kNo},
    {kCompute, kGrp, "PUT", "virtualMachines/*/extensions/*",
     "VirtualMachineExtensions_CreateOrUpdate", kNo},
    {kCompute, kGrp, "PATCH", "virtualMachines/*/extensions/*", "VirtualMachineExtensions_Update",
     kNo},
    {kCompute, kGrp, "DELETE", "virtualMachines/*/extensions/*", "VirtualMachineExtensions_Delete",
     kNo},
    {kCompute, kGrp, "GET", "virtualMachines/*/runCommands",
     "VirtualMachineRunCommands_ListByVirtualMachine", kNo},
    {kCompute, kGrp, "GET", "virtualMachines/*/runCommands/*",
     "VirtualMachineRunCommands_GetByVirtualMachine", kNo},
    {kCompute, kGrp, "PUT", "virtualMachines/*/runCommands/*",
     "VirtualMachineRunCommands_CreateOrUpdate", kNo},
    {kCompute, kGrp, "PATCH", "virtualMachines/*/runCommands/*", "VirtualMachineRunCommands_Update",
     kNo},
    {kCompute, kGrp, "DELETE", "virtualMachines/*/runCommands/*",
     "VirtualMachineRunCommands_Delete", kNo},
    // -- Compute as a whole. The status of an operation is what Azure-AsyncOperation leads to.
    {kCompute, kSub, "GET", "locations/*/operations/*", "Compute_OperationStatus", kYes},
    {kCompute, kSub, "GET", "locations/*/usages", "Usage_List", kNo},
    {kCompute, kSub, "GET", "locations/*/vmSizes", "VirtualMachineSizes_List", kNo},
    {kCompute, kSub, "GET", "skus", "ResourceSkus_List", kNo},
    // -- NICs of scale sets: only to be read.
    {kScaleSetNics, kGrp, "GET", "virtualMachineScaleSets/*/networkInterfaces",
     "NetworkInterfaces_ListVirtualMachineScaleSetNetworkInterfaces", kYes},
    {kScaleSetNics, kGrp, "GET", "virtualMachineScaleSets/*/virtualMachines/*/networkInterfaces",
     "NetworkInterfaces_ListVirtualMachineScaleSetVMNetworkInterfaces", kYes},
    {kScaleSetNics, kGrp, "GET", "virtualMachineScaleSets/*/virtualMachines/*/networkInterfaces/*",
     "NetworkInterfaces_GetVirtualMachineScaleSetNetworkInterface", kYes},
    {kScaleSetNics, kGrp, "GET",
     "virtualMachineScaleSets/*/virtualMachines/*/networkInterfaces/*/ipConfigurations",
     "NetworkInterfaces_ListVirtualMachineScaleSetIpConfigurations", kYes},
    {kScaleSetNics, kGrp, "GET",
     "virtualMachineScaleSets/*/virtualMachines/*/networkInterfaces/*/ipConfigurations/*",
     "NetworkInterfaces_GetVirtualMachineScaleSetIpConfiguration", kYes},
    {kScaleSetNics, kGrp, "GET", "virtualMachineScaleSets/*/publicipaddresses",
     "PublicIPAddresses_ListVirtualMachineScaleSetPublicIPAddresses", kNo},
    {kScaleSetNics, kGrp, "GET",
     "virtualMachineScaleSets/*/virtualMachines/*/networkInterfaces/*/ipConfigurations/*/"
     "publicipaddresses",
     "PublicIPAddresses_ListVirtualMachineScaleSetVMPublicIPAddresses", kNo},
    {kScaleSetNics, kGrp, "GET",
     "virtualMachineScaleSets/*/virtualMachines/*/networkInterfaces/*/ipConfigurations/*/"
     "publicipaddresses/*",
     "PublicIPAddresses_GetVirtualMachineScaleSetPublicIPAddress", kNo},
    // -- NICs of their own.
    {kNetwork, kSub, "GET", "networkInterfaces", "NetworkInterfaces_ListAll", kYes},
    {kNetwork, kGrp, "GET", "networkInterfaces", "NetworkInterfaces_List", kYes},
    {kNetwork, kGrp, "GET", "networkInterfaces/*", "NetworkInterfaces_Get", kYes},
    {kNetwork, kGrp, "PUT", "networkInterfaces/*", "NetworkInterfaces_CreateOrUpdate", kYes},
    {kNetwork, kGrp, "PATCH", "networkInterfaces/*", "NetworkInterfaces_UpdateTags", kYes},
    {kNetwork, kGrp, "DELETE", "networkInterfaces/*", "NetworkInterfaces_Delete", kYes},
    {kNetwork, kGrp, "GET", "networkInterfaces/*/ipConfigurations",
     "NetworkInterfaceIPConfigurations_List", kYes},
    {kNetwork, kGrp, "GET", "networkInterfaces/*/ipConfigurations/*",
     "NetworkInterfaceIPConfigurations_Get", kYes},
    {kNetwork, kGrp, "POST", "networkInterfaces/*/effectiveRouteTable",
     "NetworkInterfaces_GetEffectiveRouteTable", kNo},
    {kNetwork, kGrp, "POST", "networkInterfaces/*/effectiveNetworkSecurityGroups",
     "NetworkInterfaces_ListEffectiveNetworkSecurityGroups", kNo},
    {kNetwork, kGrp, "GET", "networkInterfaces/*/loadBalancers",
     "NetworkInterfaceLoadBalancers_List", kNo},
    {kNetwork, kGrp, "GET", "networkInterfaces/*/tapConfigurations",
     "NetworkInterfaceTapConfigurations_List", kNo},
    {kNetwork, kGrp, "GET", "networkInterfaces/*/tapConfigurations/*",
     "NetworkInterfaceTapConfigurations_Get", kNo},
    {kNetwork, kGrp, "PUT", "networkInterfaces/*/tapConfigurations/*",
     "NetworkInterfaceTapConfigurations_CreateOrUpdate", kNo},
    {kNetwork, kGrp, "DELETE", "networkInterfaces/*/tapConfigurations/*",
     "NetworkInterfaceTapConfigurations_Delete", kNo},
    // -- Virtual networks and subnets.
    {kNetwork, kSub, "GET", "virtualNetworks", "VirtualNetworks_ListAll", kYes},
    {kNetwork, kGrp, "GET", "virtualNetworks", "VirtualNetworks_List", kYes},
    {kNetwork, kGrp, "GET", "virtualNetworks/*", "VirtualNetworks_Get", kYes},
    {kNetwork, kGrp, "PUT", "virtualNetworks/*", "VirtualNetworks_CreateOrUpdate", kPart},
    {kNetwork, kGrp, "PATCH", "virtualNetworks/*", "VirtualNetworks_UpdateTags", kYes},
    {kNetwork, kGrp, "DELETE", "virtualNetworks/*", "VirtualNetworks_Delete", kNo},
    {kNetwork, kGrp, "GET", "virtualNetworks/*/usages", "VirtualNetworks_ListUsage", kYes},
    {kNetwork, kGrp, "GET", "virtualNetworks/*/CheckIPAddressAvailability",
     "VirtualNetworks_CheckIPAddressAvailability", kNo},
    {kNetwork, kGrp, "POST", "virtualNetworks/*/ddosProtectionStatus",
     "VirtualNetworks_ListDdosProtectionStatus", kNo},
    {kNetwork, kGrp, "GET", "virtualNetworks/*/subnets", "Subnets_List", kYes},
    {kNetwork, kGrp, "GET", "virtualNetworks/*/subnets/*", "Subnets_Get", kYes},
    {kNetwork, kGrp, "PUT", "virtualNetworks/*/subnets/*", "Subnets_CreateOrUpdate", kPart},
    {kNetwork, kGrp, "DELETE", "virtualNetworks/*/subnets/*", "Subnets_Delete", kNo},
    {kNetwork, kGrp, "POST", "virtualNetworks/*/subnets/*/PrepareNetworkPolicies",
     "Subnets_PrepareNetworkPolicies", kNo},
    {kNetwork, kGrp, "POST", "virtualNetworks/*/subnets/*/UnprepareNetworkPolicies",
     "Subnets_UnprepareNetworkPolicies", kNo},
    {kNetwork, kGrp, "GET", "virtualNetworks/*/subnets/*/ResourceNavigationLinks",
     "ResourceNavigationLinks_List", kNo},
    {kNetwork, kGrp, "GET", "virtualNetworks/*/subnets/*/ServiceAssociationLinks",
     "ServiceAssociationLinks_List", kNo},
    {kNetwork, kGrp, "GET", "virtualNetworks/*/virtualNetworkPeerings",
     "VirtualNetworkPeerings_List", kNo},
    {kNetwork, kGrp, "GET", "virtualNetworks/*/virtualNetworkPeerings/*",
     "VirtualNetworkPeerings_Get", kNo},
    {kNetwork, kGrp, "PUT", "virtualNetworks/*/virtualNetworkPeerings/*",
     "VirtualNetworkPeerings_CreateOrUpdate", kNo},
    {kNetwork, kGrp, "DELETE", "virtualNetworks/*/virtualNetworkPeerings/*",
     "VirtualNetworkPeerings_Delete", kNo},
    // -- Network as a whole.
    {kNetwork, kSub, "GET", "locations/*/operations/*", "Network_OperationStatus", kYes},
    {kNetwork, kSub, "GET", "locations/*/operationResults/*", "Network_OperationResult", kYes},
    {kNetwork, kSub, "GET", "locations/*/usages", "Usages_List", kNo},
};

// Returns what identifies a path: its namespace, its scope, and its segments, in lower case,
// without the names, which are every second one.
std::string KeyOf(std::string_view provider, Scope scope, const std::vector<std::string>& segments,
                  size_t first) {
  std::string key = fmt::format("{} {}", Lower(provider), scope == Scope::kGroup ? "g" : "s");
  for (size_t i = first; i < segments.size(); ++i) {
    const bool is_name = (i - first) % 2 == 1;
    key += is_name ? std::string("/*") : fmt::format("/{}", Lower(segments[i]));
  }
  return key;
}

std::vector<std::string> SegmentsOf(std::string_view path) { return ParseTarget(path).segments; }

using Index = std::unordered_map<std::string, PathOperations>;

Index MakeIndex() {
  Index index;
  for (const ApiOperation& operation : kOperations) {
    const std::string key =
        KeyOf(NamespaceOf(operation.api), operation.scope, SegmentsOf(operation.path), 0);
    index[key].operations.push_back(&operation);
  }
  return index;
}

}  // namespace

std::span<const ApiOperation> ApiOperations() { return kOperations; }

const ApiOperation* PathOperations::Of(std::string_view method) const {
  const auto found = std::find_if(operations.begin(), operations.end(),
                                  [method](const auto* each) { return each->method == method; });
  return found == operations.end() ? nullptr : *found;
}

std::string PathOperations::Methods() const {
  std::string methods;
  for (const ApiOperation* operation : operations) {
    if (!methods.empty()) methods += ", ";
    methods += operation->method;
  }
  return methods;
}

const PathOperations& OperationsAt(const Target& target, size_t provider, Scope scope) {
  static const Index* const index = new Index(MakeIndex());
  static const PathOperations none;
  const auto found = index->find(KeyOf(target.Key(provider), scope, target.segments, provider + 1));
  return found == index->end() ? none : found->second;
}

std::string TypeOf(const ApiOperation& operation) {
  std::vector<std::string> segments = SegmentsOf(operation.path);
  // What is posted to is an action, and no type.
  if (operation.method == "POST" && segments.size() % 2 == 1) segments.pop_back();
  std::string type;
  for (size_t i = 0; i < segments.size(); i += 2) {
    if (!type.empty()) type += '/';
    type += segments[i];
  }
  return type;
}

bool NamesResource(const ApiOperation& operation) {
  return operation.scope == Scope::kGroup && operation.path.find('*') != std::string_view::npos;
}

}  // namespace spoke::azure_sim
