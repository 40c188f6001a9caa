#include "netagent/nftables/nft_features.h"

#include <algorithm>
#include <array>

#include "lib/base/status.h"
#include "netagent/claims.h"

namespace spoke::netagent {
namespace {

constexpr std::array kAll = {
    NftFeature::kTables,     NftFeature::kIngress, NftFeature::kChainDevices,
    NftFeature::kForward,    NftFeature::kEgress,  NftFeature::kDynamicSets,
    NftFeature::kMasquerade, NftFeature::kHash,    NftFeature::kConnectionLimit,
};

// In every namespace.
constexpr const char* kDevice = "lo";
// Behind everything else at that device, for the instant it may be there.
constexpr int32_t kLastPriority = 1'000;

nft::Chain DeviceChain(nft::Hook hook) {
  return {.name = "probe",
          .base = nft::BaseHook{.hook = hook, .priority = kLastPriority, .devices = {kDevice}}};
}

nft::AddRule RuleOf(std::vector<nft::Expression> expressions) {
  return {{.chain = "probe", .expressions = std::move(expressions)}};
}

// What it takes to have the feature, in a table of `family` that is empty.
std::vector<nft::Change> Trial(NftFeature feature) {
  const nft::AddChain plain{{.name = "probe"}};
  const nft::Chain ingress = DeviceChain(nft::Hook::kIngress);
  const nft::LoadPayload source{nft::Header::kNetwork, 12, 4, 0};
  switch (feature) {
    case NftFeature::kTables:
      return {plain, nft::AddSet{{.name = "set", .key = {nft::Field::kIpv4}, .counts = true}},
              RuleOf({source, nft::LookUp{.set = "set"}})};
    case NftFeature::kIngress:
      return {nft::AddChain{ingress}, RuleOf({nft::CountHere{}})};
    case NftFeature::kChainDevices: {
      nft::Chain later = ingress;
      later.name = "later";
      nft::Chain empty = later;
      empty.base->devices.clear();
      // What a transaction adds it cannot take away, so two chains. Kernels that know no devices of
      // their own delete the chain in place of its device: hence the rule.
      return {nft::AddChain{ingress}, nft::DeleteDevices{ingress}, RuleOf({nft::CountHere{}}),
              nft::AddChain{empty}, nft::AddDevices{later}};
    }
    case NftFeature::kForward:
      return {nft::AddChain{ingress}, RuleOf({source, nft::LoadMeta{nft::MetaKey::kInterface, 1},
                                              nft::Forward{.device = 1, .address = 0}})};
    case NftFeature::kEgress:
      return {nft::AddChain{DeviceChain(nft::Hook::kEgress)}, RuleOf({nft::CountHere{}})};
    case NftFeature::kDynamicSets:
      return {plain,
              nft::AddSet{{.name = "set",
                           .key = {nft::Field::kIpv4, nft::Field::kMark},
                           .dynamic = true,
                           .counts = true,
                           .size = 16}},
              RuleOf({source, nft::LoadMeta{nft::MetaKey::kMark, 1}, nft::PutInSet{.set = "set"}})};
    case NftFeature::kMasquerade:
      return {nft::AddChain{{.name = "probe",
                             .base = nft::BaseHook{.type = nft::ChainType::kNat,
                                                   .hook = nft::Hook::kPostrouting,
                                                   .priority = kLastPriority}}},
              RuleOf({nft::Masquerade{}})};
    case NftFeature::kHash:
      return {plain, RuleOf({source, nft::HashOf{.from = 0, .length = 4, .to = 1, .modulus = 2}})};
    case NftFeature::kConnectionLimit:
      return {plain, RuleOf({nft::LimitConnections{.count = 1, .over = true}})};
  }
  return {};
}

bool OfDevices(NftFeature feature) {
  return feature == NftFeature::kIngress || feature == NftFeature::kChainDevices ||
         feature == NftFeature::kForward || feature == NftFeature::kEgress;
}

}  // namespace

std::string_view NameOf(NftFeature feature) {
  switch (feature) {
    case NftFeature::kTables:
      return "tables";
    case NftFeature::kIngress:
      return "netdev-ingress";
    case NftFeature::kChainDevices:
      return "netdev-chain-devices";
    case NftFeature::kForward:
      return "netdev-forward";
    case NftFeature::kEgress:
      return "netdev-egress";
    case NftFeature::kDynamicSets:
      return "dynamic-sets";
    case NftFeature::kMasquerade:
      return "masquerade";
    case NftFeature::kHash:
      return "jhash";
    case NftFeature::kConnectionLimit:
      return "connection-limit";
  }
  return "unknown";
}

std::vector<NftFeatureState> ProbeNftFeatures(NftTables& tables) {
  std::vector<NftFeatureState> states;
  for (const NftFeature feature : kAll) {
    const nft::TableKey table{OfDevices(feature) ? nft::Family::kNetdev : nft::Family::kInet,
                              std::string(claims::kProbeTable)};
    nft::Transaction trial;
    // What somebody else may have put there under our name.
    trial.Add(table, nft::DeleteTable{});
    trial.Add(table, nft::AddTable{});
    for (nft::Change& change : Trial(feature)) trial.Add(table, std::move(change));
    trial.Add(table, nft::DeleteTable{});
    const absl::Status status = tables.Apply(trial);
    states.push_back({feature, status.ok(), std::string(base::MessageOf(status))});
  }
  return states;
}

bool Has(const std::vector<NftFeatureState>& states, NftFeature feature) {
  return std::any_of(states.begin(), states.end(), [feature](const NftFeatureState& state) {
    return state.feature == feature && state.present;
  });
}

}  // namespace spoke::netagent
