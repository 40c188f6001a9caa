#include "admin-cli/azure/model_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSmallestSubnet = 29;  // The prefix lengths that Azure takes for subnets.
constexpr int kLargestSubnet = 8;

template <typename T>
T DivideUp(T a, T b) {
  return (a + b - 1) / b;
}

const Json* Find(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string TextOf(const Json& object, const char* name) {
  const Json* member = Find(object, name);
  return member != nullptr && member->is_string() ? member->get<std::string>() : std::string();
}

bool IsTrue(const Json& object, const char* name) {
  const Json* member = Find(object, name);
  return member != nullptr && member->is_boolean() && member->get<bool>();
}

// Checks the rule of
// https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules: 80
// characters, of which ours need some.
absl::Status CheckNamePrefix(const std::string& prefix) {
  constexpr size_t kMaxLength = 60;
  const bool good = !prefix.empty() && prefix.size() <= kMaxLength &&
                    absl::ascii_isalnum(static_cast<unsigned char>(prefix.front())) &&
                    std::all_of(prefix.begin(), prefix.end(), [](char c) {
                      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
                             c == '_' || c == '.';
                    });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "name prefix \"{}\": 1 to {} letters, digits, '-', '_' or '.', a letter or digit first",
      prefix, kMaxLength));
}

absl::Status CheckSubnetId(const std::string& id) {
  const bool good = absl::StartsWithIgnoreCase(id, "/subscriptions/") &&
                    absl::StrContains(absl::AsciiStrToLower(id), "/subnets/") &&
                    std::all_of(id.begin(), id.end(), [](char c) {
                      return c > ' ' && static_cast<unsigned char>(c) < 0x7F && c != '"' &&
                             c != '\\' && c != '?' && c != '#';
                    });
  if (id.empty() || good) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "subnet id \"{}\": not /subscriptions/.../virtualNetworks/NAME/subnets/NAME", id));
}

absl::Status CheckInput(const ModelInput& input) {
  if (input.nodes == 0) return absl::InvalidArgumentError("there are no nodes to plan for");
  if (input.pods_per_node == 0) return absl::InvalidArgumentError("there are no pods to plan for");
  if (input.batch == 0) return absl::InvalidArgumentError("a batch has at least one address");
  RETURN_IF_ERROR(CheckNamePrefix(input.name_prefix));
  RETURN_IF_ERROR(CheckSubnetId(input.subnet_id));
  if (!input.subnet) return absl::OkStatus();
  if (input.subnet->family() != ip::Family::kV4) {
    return absl::InvalidArgumentError(
        fmt::format("subnet {}: only IPv4 is planned", input.subnet->ToString()));
  }
  if (input.subnet->length() > kSmallestSubnet) {
    return absl::InvalidArgumentError(fmt::format("subnet {}: Azure's smallest is a /{}",
                                                  input.subnet->ToString(), kSmallestSubnet));
  }
  return absl::OkStatus();
}

// Returns the NIC configuration in what was given: itself, or the primary one of a scale set.
absl::StatusOr<Json> FindNic(const Json& given) {
  const Json* at = &given;
  for (const char* name : {"properties", "virtualMachineProfile", "networkProfile",
                           "networkInterfaceConfigurations"}) {
    at = Find(*at, name);
    if (at == nullptr) return given;
  }
  if (!at->is_array() || at->empty()) {
    return absl::InvalidArgumentError("the scale set has no NIC configuration");
  }
  const auto primary = std::find_if(at->begin(), at->end(), [](const Json& nic) {
    const Json* properties = Find(nic, "properties");
    return properties != nullptr && IsTrue(*properties, "primary");
  });
  return primary == at->end() ? at->front() : *primary;
}

// Returns the IP configurations that are there; none for no NIC.
absl::StatusOr<Json> ExistingConfigurations(const Json& given) {
  if (given.is_null()) return Json::array();
  ASSIGN_OR_RETURN(const Json nic, FindNic(given));
  const Json* properties = Find(nic, "properties");
  const Json* list = properties == nullptr ? nullptr : Find(*properties, "ipConfigurations");
  if (list == nullptr || !list->is_array() || list->empty()) {
    return absl::InvalidArgumentError(
        "the NIC has no properties.ipConfigurations: it must be as Azure's REST API has it (az "
        "rest, not az vmss show)");
  }
  for (const Json& entry : *list) {
    const Json* inner = Find(entry, "properties");
    if (TextOf(entry, "name").empty() || inner == nullptr || !inner->is_object()) {
      return absl::InvalidArgumentError("an IP configuration has no name or no properties");
    }
  }
  return *list;
}

size_t PrimaryIndexOf(const Json& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (IsTrue(list[i]["properties"], "primary")) return i;
  }
  return 0;
}

Json NewConfiguration(const std::string& name, const std::string& subnet_id, const Json* groups,
                      bool block) {
  Json properties = {
      {"primary", false}, {"subnet", {{"id", subnet_id}}}, {"privateIPAddressVersion", "IPv4"}};
  if (block) properties["privateIPAddressPrefixLength"] = 28;
  if (groups != nullptr) properties["applicationSecurityGroups"] = *groups;
  return {{"name", name}, {"properties", std::move(properties)}};
}

// Returns `list` with ours added up to `ours`; null when no subnet is known.
Json Extend(const ModelInput& input, Json list, uint32_t missing) {
  std::string subnet_id = input.subnet_id;
  Json groups;
  std::set<std::string> names;
  for (const Json& entry : list) names.insert(absl::AsciiStrToLower(TextOf(entry, "name")));
  if (!list.empty()) {
    Json& primary = list[PrimaryIndexOf(list)]["properties"];
    if (missing > 0 || list.size() > 1) primary["primary"] = true;
    if (const Json* subnet = Find(primary, "subnet"); subnet != nullptr && subnet_id.empty()) {
      subnet_id = TextOf(*subnet, "id");
    }
    if (const Json* shared = Find(primary, "applicationSecurityGroups")) groups = *shared;
  }
  if (subnet_id.empty()) return nullptr;
  for (uint32_t number = 1; missing > 0; ++number) {
    const std::string name = fmt::format("{}model-{:03}", input.name_prefix, number);
    if (!names.insert(absl::AsciiStrToLower(name)).second) continue;
    list.push_back(
        NewConfiguration(name, subnet_id, groups.is_null() ? nullptr : &groups, input.blocks));
    --missing;
  }
  return list;
}

// The IP configurations that each node takes: single addresses, and blocks.
struct NodeNeed {
  uint64_t singles = 0;
  uint64_t blocks = 0;
};

// Returns how many addresses of a subnet `nodes` nodes take at least. Blocks begin at multiples of
// 16, so the first and the last sixteen, of which Azure keeps some, can have single addresses only.
uint64_t SubnetAddresses(const NodeNeed& need, uint64_t nodes) {
  const uint64_t singles = nodes * need.singles;
  if (need.blocks == 0) return singles + kReservedInSubnet;
  constexpr uint64_t kInEnds = 2 * kBlockSize - kReservedInSubnet;
  const uint64_t elsewhere = singles > kInEnds ? singles - kInEnds : 0;
  return kBlockSize * (2 + nodes * need.blocks + DivideUp<uint64_t>(elsewhere, kBlockSize));
}

uint32_t NodesThatFit(const NodeNeed& need, uint64_t subnet_size) {
  uint32_t low = 0;
  uint32_t high = 1U << 24U;
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    if (SubnetAddresses(need, middle) <= subnet_size) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

int SmallestSubnet(uint64_t addresses) {
  for (int length = kSmallestSubnet; length >= kLargestSubnet; --length) {
    if ((uint64_t{1} << (32U - static_cast<unsigned>(length))) >= addresses) return length;
  }
  return 0;
}

// Returns the time of the calls that would give every node its addresses: one a node, as fast as
// Azure takes them.
absl::Duration TimeOfCalls(uint32_t nodes) {
  if (nodes <= kUpdatesAtOnce) return absl::ZeroDuration();
  return absl::Minutes(DivideUp(nodes - kUpdatesAtOnce, kUpdatesAMinute));
}

absl::Status CheckFit(const ModelInput& input, const ModelPlan& plan) {
  if (!input.subnet) return absl::OkStatus();
  const std::string subnet = input.subnet->ToString();
  if (plan.subnet_addresses > input.subnet->size()) {
    return absl::ResourceExhaustedError(fmt::format(
        "subnet {} is too small: {} nodes take {} addresses of its {}; it holds {} such nodes, "
        "and {}",
        subnet, input.nodes, plan.subnet_addresses, input.subnet->size(), plan.nodes_that_fit,
        plan.prefix_length == 0 ? std::string("no subnet holds all")
                                : fmt::format("a /{} holds all", plan.prefix_length)));
  }
  if (plan.in_vnet > kMaxInVnet) {
    return absl::ResourceExhaustedError(fmt::format(
        "subnet {}: Azure allows {} private addresses in a VNet, and {} nodes make {}; spread them "
        "over {} VNets{}",
        subnet, kMaxInVnet, input.nodes, plan.in_vnet, plan.vnets,
        input.blocks ? "" : ", or plan with blocks, which count as one address each"));
  }
  return absl::OkStatus();
}

// Counts, and refuses what no NIC can hold.
absl::StatusOr<ModelPlan> CountNic(const ModelInput& input, const Json& existing) {
  ModelPlan plan;
  for (size_t i = 0; i < existing.size(); ++i) {
    const bool named_ours = absl::StartsWith(TextOf(existing[i], "name"), input.name_prefix);
    const bool ours = named_ours && i != PrimaryIndexOf(existing);
    if (ours && (Find(existing[i]["properties"], "privateIPAddressPrefixLength") != nullptr) !=
                    input.blocks) {
      return absl::InvalidArgumentError(fmt::format("\"{}\" of the NIC is {}: plan with the same",
                                                    TextOf(existing[i], "name"),
                                                    input.blocks ? "a single address" : "a block"));
    }
    ++(ours ? plan.ours_already : plan.others);
  }
  plan.others = std::max(plan.others, 1U);
  const uint32_t unit = input.blocks ? kBlockSize : 1;
  const uint64_t wanted = uint64_t{input.pods_per_node} + input.spare;
  const uint64_t most = uint64_t{kMaxOnNic - std::min(plan.others, kMaxOnNic)} * unit;
  if (wanted > most) {
    return absl::ResourceExhaustedError(fmt::format(
        "{} pods and {} spare addresses a node are more than the {} that one NIC can have in {}{}",
        input.pods_per_node, input.spare, most, input.blocks ? "blocks" : "single addresses",
        input.blocks ? "" : "; blocks have 16 addresses each"));
  }
  const uint64_t batches = DivideUp<uint64_t>(wanted, input.batch);
  const uint64_t target = std::min(batches * input.batch, most);
  plan.ours = std::max(static_cast<uint32_t>(DivideUp<uint64_t>(target, unit)), plan.ours_already);
  plan.addresses_per_node = plan.ours * unit;
  plan.pods_without_calls = plan.addresses_per_node - input.spare;
  return plan;
}

}  // namespace

absl::StatusOr<ModelPlan> PlanModel(const ModelInput& input) {
  RETURN_IF_ERROR(CheckInput(input));
  ASSIGN_OR_RETURN(Json existing, ExistingConfigurations(input.nic));
  ASSIGN_OR_RETURN(ModelPlan plan, CountNic(input, existing));
  const NodeNeed need =
      input.blocks ? NodeNeed{plan.others, plan.ours} : NodeNeed{plan.others + plan.ours, 0};
  plan.subnet_addresses = SubnetAddresses(need, input.nodes);
  plan.prefix_length = SmallestSubnet(plan.subnet_addresses);
  if (input.subnet) plan.nodes_that_fit = NodesThatFit(need, input.subnet->size());
  plan.in_vnet = uint64_t{input.nodes} * (plan.others + plan.ours);
  plan.vnets = static_cast<uint32_t>(DivideUp(plan.in_vnet, kMaxInVnet));
  plan.scale_sets = DivideUp(input.nodes, kMaxInScaleSet);
  plan.start_without = TimeOfCalls(input.nodes);
  RETURN_IF_ERROR(CheckFit(input, plan));
  plan.configurations = Extend(input, std::move(existing), plan.ours - plan.ours_already);
  return plan;
}

}  // namespace spoke::ctl
