// The contents of a simulated Azure at its start. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/prefix.h"

namespace spoke::azure_sim {

enum class Orchestration : uint8_t { kUniform, kFlexible };

struct SubnetSpec {
  std::string id;  // The id: /subscriptions/S/resourceGroups/G/providers/Microsoft.Network/...
  ip::Prefix prefix;
  std::optional<ip::Prefix> prefix_v6;
  // The location of its virtual network, if this is the first subnet of it.
  std::string location = "eastus2";
};

// The wishes for one instance; for tests that wire it to a machine of their own.
struct InstanceSpec {
  std::string node;  // The node's name in the attachments file; empty: its computer name.
  std::string name;  // The name of the machine, in a Flexible set; empty: one is made up.
  std::optional<ip::MacAddress> mac;
  std::optional<ip::Address> address;
};

struct ScaleSetSpec {
  std::string subscription;
  std::string resource_group;
  std::string name;
  std::string location = "eastus2";
  Orchestration orchestration = Orchestration::kUniform;
  int instances = 0;
  int first_instance = 0;  // Instance ids have gaps in real sets; this is where they begin.
  std::string subnet_id;   // The id of one of SimSpec::subnets.
  std::string sku = "Standard_D8s_v5";
  std::string computer_name_prefix;  // The prefix; empty: the name.
  std::string nic = "nic";
  std::string ip_configuration = "ipconfig1";
  int nics = 1;
  bool accelerated_networking = false;
  bool ip_forwarding = false;
  bool instances_know_primary = false;  // Whether a single IP configuration says "primary".
  std::vector<std::string> zones;
  std::string network_security_group;
  std::vector<std::string> application_security_groups;
  std::vector<std::string> load_balancer_pools;
  int baked_addresses = 0;  // The number in the set's model, so that instances are born with them.
  int baked_blocks = 0;
  // The beginning of the names: "spoke-m0", ...; blocks count on.
  std::string baked_prefix = "spoke-m";
  std::vector<InstanceSpec> first;  // The first instances, in their order.

  std::string id() const;
};

struct SimSpec {
  uint64_t seed = 1;
  std::vector<SubnetSpec> subnets;
  std::vector<ScaleSetSpec> scale_sets;
  // The groups "/subscriptions/S/resourceGroups/G" that exist besides those named above.
  std::vector<std::string> resource_groups;
};

// A set with its own subnet, for tests: subscription "sub", group "rg", VNet "vnet".
SimSpec SmallSpec(int instances, std::string_view prefix = "10.0.0.0/16",
                  Orchestration orchestration = Orchestration::kUniform);

// Reads JSON with the names of the fields above; `orchestration` is "Uniform" or "Flexible".
// Errors: kInvalidArgument, with the path of what is wrong.
absl::StatusOr<SimSpec> ParseSpec(std::string_view json);

}  // namespace spoke::azure_sim
