// The versions of Azure's APIs, each provider's own. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/azure-sim/knobs.h"

namespace spoke::azure_sim {

enum class Api : uint8_t {
  kCompute,          // The API of Microsoft.Compute.
  kNetwork,          // The API of Microsoft.Network.
  kScaleSetNics,     // The paths of Microsoft.Compute that Network answers: an old version only.
  kResourceManager,  // The API of subscriptions and resource groups, which have no provider.
};
// Returns "Microsoft.Compute". Resource Manager's own is "Microsoft.Resources".
std::string_view NamespaceOf(Api api);

// Returns whether the simulated cloud has this version. knobs.compute_blocks can take Compute's
// newest away.
bool HasVersion(Api api, std::string_view version, const Knobs& knobs);

// Returns all that it has, oldest first: "2023-07-01, 2023-09-01".
std::string VersionsText(Api api, const Knobs& knobs);

// Returns whether a text is like "2025-04-01" or "2025-04-01-preview": what no API takes is refused
// before any is looked for.
bool IsVersionForm(std::string_view version);

// Returns whether this version of Compute has etags.
inline bool HasComputeEtags(std::string_view version) { return version >= "2024-03-01"; }
// Returns whether this version of Compute knows blocks of addresses in the simulated cloud.
bool HasComputeBlocks(std::string_view version, const Knobs& knobs);

}  // namespace spoke::azure_sim
