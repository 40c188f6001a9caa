#include "tests/azure-sim/resources/spec.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "nlohmann/json.hpp"

namespace spoke::azure_sim {
namespace {

using Json = nlohmann::json;

// Reads the fields of one JSON object, and knows which it was not asked for.
class Fields {
 public:
  Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object()) Fail("", "is not an object");
  }

  void Read(const char* name, std::string* to) {
    const Json* value = Take(name);
    if (value == nullptr) return;
    if (!value->is_string()) return Fail(name, "is not text");
    *to = value->get<std::string>();
  }
  void Read(const char* name, int* to) {
    const Json* value = Take(name);
    if (value == nullptr) return;
    if (!value->is_number_integer() || value->get<int64_t>() < 0 ||
        value->get<int64_t>() > 1'000'000) {
      return Fail(name, "is not a number from 0 to 1000000");
    }
    *to = value->get<int>();
  }
  void Read(const char* name, bool* to) {
    const Json* value = Take(name);
    if (value == nullptr) return;
    if (!value->is_boolean()) return Fail(name, "is neither true nor false");
    *to = value->get<bool>();
  }
  void Read(const char* name, std::vector<std::string>* to) {
    const Json* value = Take(name);
    if (value == nullptr) return;
    if (!value->is_array()) return Fail(name, "is not a list");
    for (const Json& item : *value) {
      if (!item.is_string()) return Fail(name, "holds something that is not text");
      to->push_back(item.get<std::string>());
    }
  }
  // Reads with `parse`, which returns a StatusOr.
  template <typename T, typename Parse>
  void ReadParsed(const char* name, std::optional<T>* to, Parse parse) {
    std::string text;
    Read(name, &text);
    if (text.empty()) return;
    absl::StatusOr<T> parsed = parse(text);
    if (!parsed.ok()) return Fail(name, base::MessageOf(parsed.status()));
    *to = *std::move(parsed);
  }
  template <typename Each>
  void ReadList(const char* name, Each each) {
    const Json* value = Take(name);
    if (value == nullptr) return;
    if (!value->is_array()) return Fail(name, "is not a list");
    for (size_t i = 0; i < value->size(); ++i) {
      Fields item((*value)[i], fmt::format("{}{}[{}].", path_, name, i));
      each(item);
      if (status_.ok()) status_ = item.Finish();
    }
  }

  void Fail(std::string_view name, std::string_view what) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(fmt::format("{}{}: {}", path_, name, what));
    }
  }
  absl::Status Finish() {
    if (status_.ok() && object_.is_object()) {
      for (const auto& [name, value] : object_.items()) {
        if (std::find(asked_.begin(), asked_.end(), name) == asked_.end()) {
          Fail(name, "is not known");
        }
      }
    }
    return status_;
  }

 private:
  const Json* Take(const char* name) {
    asked_.emplace_back(name);
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }

  const Json& object_;
  std::string path_;
  std::vector<std::string> asked_;
  absl::Status status_;
};

void ReadSubnet(Fields& fields, SubnetSpec* subnet) {
  std::optional<ip::Prefix> prefix;
  fields.Read("id", &subnet->id);
  fields.ReadParsed("prefix", &prefix, ip::Prefix::Parse);
  fields.ReadParsed("prefix_v6", &subnet->prefix_v6, ip::Prefix::Parse);
  fields.Read("location", &subnet->location);
  if (!prefix.has_value() || !prefix->base().is_v4() || prefix->length() > 29) {
    return fields.Fail("prefix", "has to be an IPv4 block of at least a /29");
  }
  subnet->prefix = *prefix;
}

void ReadScaleSet(Fields& fields, ScaleSetSpec* set) {
  std::string orchestration = "Uniform";
  fields.Read("subscription", &set->subscription);
  fields.Read("resource_group", &set->resource_group);
  fields.Read("name", &set->name);
  fields.Read("location", &set->location);
  fields.Read("orchestration", &orchestration);
  fields.Read("instances", &set->instances);
  fields.Read("first_instance", &set->first_instance);
  fields.Read("subnet_id", &set->subnet_id);
  fields.Read("sku", &set->sku);
  fields.Read("computer_name_prefix", &set->computer_name_prefix);
  fields.Read("nic", &set->nic);
  fields.Read("ip_configuration", &set->ip_configuration);
  fields.Read("nics", &set->nics);
  fields.Read("accelerated_networking", &set->accelerated_networking);
  fields.Read("ip_forwarding", &set->ip_forwarding);
  fields.Read("instances_know_primary", &set->instances_know_primary);
  fields.Read("zones", &set->zones);
  fields.Read("network_security_group", &set->network_security_group);
  fields.Read("application_security_groups", &set->application_security_groups);
  fields.Read("load_balancer_pools", &set->load_balancer_pools);
  fields.Read("baked_addresses", &set->baked_addresses);
  fields.Read("baked_blocks", &set->baked_blocks);
  fields.Read("baked_prefix", &set->baked_prefix);
  fields.ReadList("first", [set](Fields& item) {
    InstanceSpec instance;
    item.Read("node", &instance.node);
    item.Read("name", &instance.name);
    item.ReadParsed("mac", &instance.mac, ip::MacAddress::Parse);
    item.ReadParsed("address", &instance.address,
                    [](const std::string& text) { return ip::Address::Parse(text); });
    set->first.push_back(std::move(instance));
  });
  if (orchestration != "Uniform" && orchestration != "Flexible") {
    fields.Fail("orchestration", "is neither Uniform nor Flexible");
  }
  set->orchestration =
      orchestration == "Flexible" ? Orchestration::kFlexible : Orchestration::kUniform;
  if (set->subscription.empty() || set->resource_group.empty() || set->name.empty()) {
    fields.Fail("name", "subscription, resource_group and name have to be there");
  }
}

}  // namespace

std::string ScaleSetSpec::id() const {
  return fmt::format(
      "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Compute/virtualMachineScaleSets/{}",
      subscription, resource_group, name);
}

SimSpec SmallSpec(int instances, std::string_view prefix, Orchestration orchestration) {
  SimSpec spec;
  const absl::StatusOr<ip::Prefix> parsed = ip::Prefix::Parse(prefix);
  CHECK(parsed.ok(), "a test names a prefix that is one");
  SubnetSpec subnet;
  subnet.id =
      "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet/"
      "subnets/pods";
  subnet.prefix = *parsed;
  ScaleSetSpec set;
  set.subscription = "sub";
  set.resource_group = "rg";
  set.name = "pool";
  set.orchestration = orchestration;
  set.instances = instances;
  set.subnet_id = subnet.id;
  spec.subnets.push_back(std::move(subnet));
  spec.scale_sets.push_back(std::move(set));
  return spec;
}

absl::StatusOr<SimSpec> ParseSpec(std::string_view json) {
  const Json root = Json::parse(json, nullptr, false);
  if (root.is_discarded()) return absl::InvalidArgumentError("not JSON");
  SimSpec spec;
  Fields fields(root, "");
  int seed = 1;
  fields.Read("seed", &seed);
  spec.seed = static_cast<uint64_t>(seed);
  fields.Read("resource_groups", &spec.resource_groups);
  fields.ReadList("subnets",
                  [&spec](Fields& item) { ReadSubnet(item, &spec.subnets.emplace_back()); });
  fields.ReadList("scale_sets",
                  [&spec](Fields& item) { ReadScaleSet(item, &spec.scale_sets.emplace_back()); });
  RETURN_IF_ERROR(fields.Finish());
  return spec;
}

}  // namespace spoke::azure_sim
