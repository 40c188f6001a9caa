#include "tests/azure-sim/resources/request_body.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "fmt/core.h"
#include "tests/azure-sim/resources/api_versions.h"

namespace spoke::azure_sim {
namespace {

// The part that finds out, which decides how it is said.
enum class Reader : uint8_t { kResourceManager, kCompute, kNetwork };

// An object of the API. `members` are names between blanks. Behind a name: ":Shape" if its value is
// an object that is looked into, ":[Shape]" a list of them; "@2023-11-01" the first version that
// has it, "@blocks" if it is there with Compute's blocks of addresses. Other values are not looked
// at.
struct Shape {
  std::string_view name;
  Reader reader = Reader::kCompute;
  std::string_view shown;  // The type as errors call it; unverified except for Resource Manager's.
  std::string_view members;
};

// https://github.com/Azure/azure-rest-api-specs, versions 2025-04-01 of Compute and 2025-05-01 of
// Network. What clients read they may send back, so members that only Azure sets are there, too.
constexpr Shape kShapes[] = {
    {"ScaleSet", Reader::kResourceManager, "ResourceDefinition",
     "id name type location tags kind managedBy sku plan properties:ScaleSetProperties identity "
     "zones extendedLocation placement etag scale systemData"},
    {"ScaleSetProperties", Reader::kCompute, "Properties",
     "upgradePolicy scheduledEventsPolicy automaticRepairsPolicy virtualMachineProfile:VmProfile "
     "provisioningState overprovision doNotRunExtensionsOnOverprovisionedVMs uniqueId "
     "singlePlacementGroup zoneBalance platformFaultDomainCount proximityPlacementGroup hostGroup "
     "additionalCapabilities scaleInPolicy orchestrationMode spotRestorePolicy priorityMixPolicy "
     "timeCreated constrainedMaximumCapacity resiliencyPolicy zonalPlatformFaultDomainAlignMode "
     "skuProfile"},
    {"ScaleSetUpdate", Reader::kCompute, "VirtualMachineScaleSetUpdate",
     "tags sku plan properties:ScaleSetUpdateProperties identity zones"},
    {"ScaleSetUpdateProperties", Reader::kCompute, "Properties",
     "upgradePolicy automaticRepairsPolicy virtualMachineProfile:VmProfile overprovision "
     "doNotRunExtensionsOnOverprovisionedVMs singlePlacementGroup additionalCapabilities "
     "scaleInPolicy proximityPlacementGroup priorityMixPolicy spotRestorePolicy resiliencyPolicy "
     "zonalPlatformFaultDomainAlignMode skuProfile"},
    {"VmProfile", Reader::kCompute, "VirtualMachineProfile",
     "osProfile storageProfile networkProfile:SetNetwork securityProfile diagnosticsProfile "
     "extensionProfile licenseType priority evictionPolicy billingProfile scheduledEventsProfile "
     "userData capacityReservation applicationProfile hardwareProfile serviceArtifactReference "
     "securityPostureReference timeCreated"},
    {"SetNetwork", Reader::kCompute, "VMScaleSetNetworkProfile",
     "healthProbe networkInterfaceConfigurations:[NicConfiguration] networkApiVersion"},
    {"InstanceNetwork", Reader::kCompute, "VMScaleSetVMNetworkProfileConfiguration",
     "networkInterfaceConfigurations:[NicConfiguration]"},
    {"NicConfiguration", Reader::kCompute, "VMScaleSetNetworkConfiguration",
     "id name properties:NicProperties tags@2024-11-01"},
    {"NicProperties", Reader::kCompute, "Properties",
     "primary enableAcceleratedNetworking disableTcpStateTracking enableFpga "
     "networkSecurityGroup:Reference dnsSettings ipConfigurations:[IpConfiguration] "
     "enableIPForwarding deleteOption auxiliaryMode auxiliarySku"},
    {"IpConfiguration", Reader::kCompute, "VMScaleSetIPConfiguration",
     "id name properties:IpProperties"},
    {"IpProperties", Reader::kCompute, "Properties",
     "subnet:Reference primary publicIPAddressConfiguration privateIPAddressVersion "
     "applicationGatewayBackendAddressPools:[Reference] applicationSecurityGroups:[Reference] "
     "loadBalancerBackendAddressPools:[Reference] loadBalancerInboundNatPools:[Reference] "
     "privateIPAddressPrefixLength@blocks"},
    {"Reference", Reader::kCompute, "ApiEntityReference", "id"},
    {"Instance", Reader::kResourceManager, "ResourceDefinition",
     "id name type location tags kind managedBy sku plan properties:InstanceProperties identity "
     "zones extendedLocation placement etag scale systemData instanceId resources"},
    {"InstanceProperties", Reader::kCompute, "Properties",
     "latestModelApplied modelDefinitionApplied vmId instanceView hardwareProfile "
     "resilientVMDeletionStatus storageProfile additionalCapabilities osProfile securityProfile "
     "networkProfile networkProfileConfiguration:InstanceNetwork diagnosticsProfile "
     "availabilitySet provisioningState licenseType protectionPolicy userData timeCreated"},
    {"InstanceIds", Reader::kCompute, "VMScaleSetVMInstanceRequiredIDs", "instanceIds"},
    {"Reimage", Reader::kCompute, "VMScaleSetVMReimageParameters",
     "osProfile tempDisk exactVersion forceUpdateOSDiskForEphemeral"},
    // An example that was seen is "resources", which a GET shows and which is refused here.
    {"Machine", Reader::kResourceManager, "ResourceDefinition",
     "id name type location tags kind managedBy sku plan properties:MachineProperties identity "
     "zones extendedLocation placement etag scale systemData"},
    {"MachineUpdate", Reader::kCompute, "VirtualMachineUpdate",
     "tags plan properties:MachineProperties identity zones"},
    {"MachineProperties", Reader::kCompute, "Properties",
     "hardwareProfile scheduledEventsPolicy storageProfile additionalCapabilities osProfile "
     "networkProfile:MachineNetwork securityProfile diagnosticsProfile availabilitySet "
     "virtualMachineScaleSet proximityPlacementGroup priority evictionPolicy billingProfile host "
     "hostGroup provisioningState instanceView licenseType vmId extensionsTimeBudget "
     "platformFaultDomain scheduledEventsProfile userData capacityReservation applicationProfile "
     "timeCreated"},
    {"MachineNetwork", Reader::kCompute, "VMNetworkProfile",
     "networkInterfaces networkApiVersion networkInterfaceConfigurations"},
    {"Nic", Reader::kResourceManager, "ResourceDefinition",
     "id name type location tags kind managedBy sku plan properties:OwnNicProperties identity "
     "zones extendedLocation placement etag scale systemData"},
    {"OwnNicProperties", Reader::kNetwork, "NetworkInterfaceProperties",
     "provisioningState resourceGuid ipConfigurations:[OwnNicEntry] dnsSettings macAddress "
     "enableAcceleratedNetworking vnetEncryptionSupported defaultOutboundConnectivityEnabled "
     "enableIPForwarding disableTcpStateTracking networkSecurityGroup primary virtualMachine "
     "hostedWorkloads tapConfigurations nicType allowPort25Out auxiliaryMode auxiliarySku "
     "privateEndpoint privateLinkService workloadType migrationPhase dscpConfiguration"},
    {"OwnNicEntry", Reader::kNetwork, "NetworkInterfaceIpConfiguration",
     "id name etag type properties:OwnNicEntryProperties"},
    {"OwnNicEntryProperties", Reader::kNetwork, "NetworkInterfaceIpConfigurationProperties",
     "provisioningState privateIPAddress privateIPAddressPrefixLength@2023-11-01 "
     "privateIPAllocationMethod subnet primary privateIPAddressVersion publicIPAddress "
     "applicationGatewayBackendAddressPools applicationSecurityGroups "
     "loadBalancerBackendAddressPools loadBalancerInboundNatRules virtualNetworkTaps "
     "privateLinkConnectionProperties gatewayLoadBalancer"},
    {"Tags", Reader::kNetwork, "TagsObject", "tags"},
    {"Network", Reader::kResourceManager, "ResourceDefinition",
     "id name type location tags kind managedBy sku plan properties:NetworkProperties identity "
     "zones extendedLocation placement etag scale systemData"},
    {"NetworkProperties", Reader::kNetwork, "VirtualNetworkProperties",
     "addressSpace dhcpOptions flowTimeoutInMinutes subnets:[Subnet] virtualNetworkPeerings "
     "resourceGuid provisioningState enableDdosProtection enableVmProtection ddosProtectionPlan "
     "bgpCommunities encryption ipAllocations flowLogs privateEndpointVNetPolicies"},
    {"Subnet", Reader::kNetwork, "Subnet", "id name etag type properties:SubnetProperties"},
    {"SubnetProperties", Reader::kNetwork, "SubnetProperties",
     "addressPrefix addressPrefixes networkSecurityGroup routeTable natGateway serviceEndpoints "
     "serviceEndpointPolicies privateEndpoints ipConfigurations ipConfigurationProfiles "
     "ipAllocations resourceNavigationLinks serviceAssociationLinks delegations purpose "
     "provisioningState privateEndpointNetworkPolicies privateLinkServiceNetworkPolicies "
     "applicationGatewayIPConfigurations sharingScope defaultOutboundAccess "
     "ipamPoolPrefixAllocations serviceGateway"},
};

std::string_view ShapeOf(BodyOf what) {
  switch (what) {
    case BodyOf::kScaleSet:
      return "ScaleSet";
    case BodyOf::kScaleSetUpdate:
      return "ScaleSetUpdate";
    case BodyOf::kInstance:
      return "Instance";
    case BodyOf::kInstanceIds:
      return "InstanceIds";
    case BodyOf::kReimage:
      return "Reimage";
    case BodyOf::kMachine:
      return "Machine";
    case BodyOf::kMachineUpdate:
      return "MachineUpdate";
    case BodyOf::kNic:
      return "Nic";
    case BodyOf::kNetwork:
      return "Network";
    case BodyOf::kTags:
      return "Tags";
    case BodyOf::kSubnet:
      return "Subnet";
  }
  return "";
}

struct Member {
  std::string_view shape;  // The shape of its value; empty: not looked into.
  bool is_list = false;
  std::string_view since;  // The first version, or "blocks"; empty: always there.
};

struct ReadShape {
  const Shape* shape = nullptr;
  std::map<std::string_view, Member> members;
};

Member ReadMember(std::string_view word, std::string_view* name) {
  Member member;
  if (const size_t at = word.find('@'); at != std::string_view::npos) {
    member.since = word.substr(at + 1);
    word = word.substr(0, at);
  }
  if (const size_t colon = word.find(':'); colon != std::string_view::npos) {
    member.shape = word.substr(colon + 1);
    word = word.substr(0, colon);
    member.is_list = member.shape.front() == '[';
    if (member.is_list) member.shape = member.shape.substr(1, member.shape.size() - 2);
  }
  *name = word;
  return member;
}

const std::map<std::string_view, ReadShape>& Shapes() {
  static const auto* const shapes = [] {
    auto* made = new std::map<std::string_view, ReadShape>;
    for (const Shape& shape : kShapes) {
      ReadShape& read = (*made)[shape.name];
      read.shape = &shape;
      std::string_view rest = shape.members;
      while (!rest.empty()) {
        const size_t end = std::min(rest.find(' '), rest.size());
        std::string_view name;
        const Member member = ReadMember(rest.substr(0, end), &name);
        read.members.emplace(name, member);
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    return made;
  }();
  return *shapes;
}

http::Response InvalidContent(std::string_view why) {
  return ErrorResponse(
      400, "InvalidRequestContent",
      fmt::format("The request content was invalid and could not be deserialized{}{}{}.",
                  why.empty() ? "" : ": '", why, why.empty() ? "" : "'"));
}

// Looks through a body.
class MemberCheck {
 public:
  MemberCheck(std::string_view text, std::string_view version, const Knobs& knobs)
      : text_(text), version_(version), knobs_(knobs) {}

  // NOLINTNEXTLINE(misc-no-recursion): no deeper than the shapes are, which have an end.
  std::optional<http::Response> Check(const Json& value, const ReadShape& read,
                                      const std::string& path) const {
    if (value.is_null()) return std::nullopt;
    if (!value.is_object()) return Refuse(*read.shape, path, ValueText(value, *read.shape));
    for (const auto& [name, item] : value.items()) {
      const std::string at = path.empty() ? name : fmt::format("{}.{}", path, name);
      const auto member = read.members.find(name);
      if (member == read.members.end() || !IsThere(member->second)) {
        return Refuse(*read.shape, at,
                      fmt::format("Could not find member '{}' on object of type '{}'.", name,
                                  read.shape->shown));
      }
      if (auto refused = CheckMember(item, member->second, at)) return refused;
    }
    return std::nullopt;
  }

 private:
  // NOLINTNEXTLINE(misc-no-recursion): no deeper than Check().
  std::optional<http::Response> CheckMember(const Json& item, const Member& member,
                                            const std::string& at) const {
    if (member.shape.empty() || item.is_null()) return std::nullopt;
    const ReadShape& inner = Shapes().at(member.shape);
    if (!member.is_list) return Check(item, inner, at);
    if (!item.is_array()) return Refuse(*inner.shape, at, ValueText(item, *inner.shape));
    for (size_t i = 0; i < item.size(); ++i) {
      if (auto refused = Check(item[i], inner, fmt::format("{}[{}]", at, i))) return refused;
    }
    return std::nullopt;
  }

  bool IsThere(const Member& member) const {
    if (member.since.empty()) return true;
    if (member.since == "blocks") return HasComputeBlocks(version_, knobs_);
    return version_ >= member.since;
  }

  static std::string ValueText(const Json& value, const Shape& shape) {
    return fmt::format("Error converting value of type {} to type '{}'.", value.type_name(),
                       shape.shown);
  }

  http::Response Refuse(const Shape& shape, const std::string& path,
                        const std::string& what) const {
    const std::string said =
        fmt::format("{} Path '{}', line 1, position {}.", what, path, PositionOf(path));
    switch (shape.reader) {
      case Reader::kResourceManager:
        return InvalidContent(said);
      case Reader::kCompute:
        return ErrorResponse(400, "BadRequest", said, Details::kNone, path);
      case Reader::kNetwork:
        break;
    }
    Json error = {{"code", "InvalidRequestFormat"}, {"message", "Cannot parse the request."}};
    error["details"] = Json::array({{{"code", "InvalidJson"}, {"message", said}}});
    return JsonResponse(400, {{"error", std::move(error)}});
  }

  // The place is behind the name, where it first is: near enough for a reader.
  size_t PositionOf(const std::string& path) const {
    std::string name = path.substr(path.rfind('.') + 1);
    name = fmt::format("\"{}\"", name.substr(0, name.find('[')));
    const size_t found = text_.find(name);
    return found == std::string_view::npos ? 1 : found + name.size() + 1;
  }

  std::string_view text_;
  std::string_view version_;
  const Knobs& knobs_;
};

// Returns the form in which the name of a place compares.
std::string Place(std::string_view location) {
  std::string place;
  for (const char c : Lower(location)) {
    if (c != ' ') place.push_back(c);
  }
  return place;
}

}  // namespace

std::optional<http::Response> ParseBody(const Call& call, BodyOf what, const Knobs& knobs,
                                        Json* body) {
  if (what == BodyOf::kReimage && call.request.body.empty()) {
    *body = Json::object();
    return std::nullopt;
  }
  *body = Json::parse(call.request.body, nullptr, false);
  if (!body->is_object()) return InvalidContent("");
  const std::string version = call.target.api_version();
  return MemberCheck(call.request.body, version, knobs)
      .Check(*body, Shapes().at(ShapeOf(what)), "");
}

std::optional<http::Response> CheckLocation(const Json& body, const Placed& resource,
                                            Location location) {
  const auto found = body.find("location");
  if (found == body.end() || !found->is_string()) {
    if (location == Location::kOptional) return std::nullopt;
    return ErrorResponse(400, "LocationRequired",
                         "The location property is required for this definition.");
  }
  const auto wanted = found->get<std::string>();
  if (resource.location.empty() || Place(wanted) == Place(resource.location)) return std::nullopt;
  return ErrorResponse(
      409, "InvalidResourceLocation",
      fmt::format("The resource '{}' already exists in location '{}' in resource group '{}'. A "
                  "resource with the same name cannot be created in location '{}'. Please select "
                  "a new resource name.",
                  resource.name, resource.location, resource.group, wanted));
}

}  // namespace spoke::azure_sim
