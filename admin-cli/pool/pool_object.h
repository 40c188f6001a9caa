// A pool as a policy object: what `pool create` and `pool resize` send. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace spoke::ctl {

struct PoolObject {
  std::string name;
  std::string cidr;
  std::string vnet;  // The VNet; empty: left out, as all below.
  uint32_t block_prefix_length = 0;
  std::map<std::string, std::string> node_labels;
  std::vector<std::string> namespaces;
};

// Returns the object as YAML. Values are quoted, so that none can be taken for anything but text.
std::string PoolYaml(const PoolObject& pool);

// Returns `yaml`, a Pool object as the server gives it, with another CIDR block and nothing else
// changed. Errors: kInternal (no cidr in its spec, or several: not a pool as this spokectl knows
// it).
absl::StatusOr<std::string> WithCidr(std::string_view yaml, std::string_view cidr);

}  // namespace spoke::ctl
