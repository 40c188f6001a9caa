// The list of IP configurations of one NIC in a request body: what we may change in it, and how.
// Pure.
//
// A PUT carries the whole list, so whatever is missing from it is taken off the NIC. Everything
// here therefore starts from the list as read, touches only entries whose names begin with our
// prefix, and leaves every field of the others as it was.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "lib/ip/address.h"

namespace spoke::ipam::azure {

// Private addresses a NIC holds at most, and a VM over all its NICs; the primary one included.
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits
inline constexpr size_t kMaxConfigurations = 256;

// A configuration that is to be: Azure chooses the address, or the block.
struct NewConfiguration {
  std::string name;
  ip::Family family = ip::Family::kV4;
  int prefix_length = 32;  // 32 or 128: one address; 28: a block.

  bool operator==(const NewConfiguration&) const = default;
};

// What one PUT changes on one NIC. Adding what is there and removing what is not changes nothing,
// so that a change may be sent again; with nothing to do the list is sent as it is, which makes
// Azure compare the NIC with it.
struct NicChange {
  std::string nic_name;  // The name in the list of NICs; case does not count.
  std::vector<NewConfiguration> add;
  std::vector<std::string> remove;
  std::string prefix;  // The prefix of our names.
};

// How two APIs write the same thing.
enum class ConfigurationStyle {
  kCompute,  // The style of the model of a scale set's VM.
  kNetwork,  // The style of a NIC of its own, which says "Dynamic" in every entry.
};

// Applies `change` to `list`, the JSON array `ipConfigurations`. New entries get the subnet and the
// application security groups of the primary entry, as Azure demands of all entries of a NIC, and
// of several entries the primary is marked.
// Errors: kInvalidArgument (a name to add or remove without our prefix, an empty prefix or name,
// the primary to be removed, a length that no block has, an entry of the list that cannot be
// read); kFailedPrecondition (the list is empty, or several entries are primary, or the primary has
// no subnet: nothing to go by); kResourceExhausted (more than kMaxConfigurations entries). After an
// error `list` is unchanged.
absl::Status ApplyChange(const NicChange& change, ConfigurationStyle style, nlohmann::json& list);

// The entry marked as primary, else the first; `list` is an array and not empty.
size_t PrimaryIndexOf(const nlohmann::json& list);

bool SameName(std::string_view a, std::string_view b);

}  // namespace spoke::ipam::azure
