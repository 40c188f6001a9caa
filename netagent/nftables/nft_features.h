// What of nf_tables this kernel can do: found out by trying, since versions and build options
// differ.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "netagent/nftables/nft_tables.h"

namespace spoke::netagent {

enum class NftFeature : uint8_t {
  kTables,           // nf_tables at all, with sets whose elements count.
  kIngress,          // Chains at the ingress of a device.
  kChainDevices,     // Devices of such a chain come and go one by one (Linux 6.5).
  kForward,          // Packets go from there to a neighbour ("fwd").
  kEgress,           // Chains at the egress of a device (Linux 5.16).
  kDynamicSets,      // Packets put elements that count into sets.
  kMasquerade,       // With random ports.
  kHash,             // jhash
  kConnectionLimit,  // ct count
};

struct NftFeatureState {
  NftFeature feature = NftFeature::kTables;
  bool present = false;
  std::string words;  // Why not, with the kernel's words; "" when it is present.

  bool operator==(const NftFeatureState&) const = default;
};

// As the feature is called in logs and metrics: "netdev-ingress".
std::string_view NameOf(NftFeature feature);

// Every feature once, in the order above. Each is tried in one transaction of its own that makes a
// table (claims::kProbeTable) with what it takes and deletes it again, so nothing of it is ever
// there for a packet or another program, and nothing is left behind however this ends.
//
// Trying loads the kernel's modules. Call it in the agent's namespace, once, before anything else.
std::vector<NftFeatureState> ProbeNftFeatures(NftTables& tables);

// Whether `states` has the feature as present.
bool Has(const std::vector<NftFeatureState>& states, NftFeature feature);

}  // namespace spoke::netagent
