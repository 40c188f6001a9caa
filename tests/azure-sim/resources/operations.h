// Every operation that Azure documents below the resource types served here: which of them are
// simulated, and which are refused. Pure.
//
// docs/AZURE_SIMULATOR.md lists the same, and a test compares the two.
// https://learn.microsoft.com/rest/api/compute, https://learn.microsoft.com/rest/api/virtualnetwork
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/azure-sim/resources/api_versions.h"
#include "tests/azure-sim/target.h"

namespace spoke::azure_sim {

enum class Scope : uint8_t { kSubscription, kGroup };
enum class Simulated : uint8_t { kYes, kInPart, kNo };

struct ApiOperation {
  Api api = Api::kCompute;
  Scope scope = Scope::kGroup;
  std::string_view method;
  // The path below the provider; a name is "*": "virtualMachineScaleSets/*/start".
  std::string_view path;
  std::string_view name;  // The name as the SDKs call it: "VirtualMachineScaleSets_Start".
  Simulated simulated = Simulated::kNo;
};

std::span<const ApiOperation> ApiOperations();

// The operations of one path, one for each method. Empty: there is no such path.
struct PathOperations {
  std::vector<const ApiOperation*> operations;

  bool empty() const { return operations.empty(); }
  // Returns the operation; null: the method is none of the path's.
  const ApiOperation* Of(std::string_view method) const;
  // Returns "GET, PUT", for the header Allow.
  std::string Methods() const;
};

// `provider` is the place of the provider's namespace among the segments of `target`.
const PathOperations& OperationsAt(const Target& target, size_t provider, Scope scope);

// Returns "virtualMachineScaleSets/virtualMachines": as Azure's errors call what a path is of.
std::string TypeOf(const ApiOperation& operation);

// Returns whether the path names a resource, which has a location; a list has none.
bool NamesResource(const ApiOperation& operation);

}  // namespace spoke::azure_sim
