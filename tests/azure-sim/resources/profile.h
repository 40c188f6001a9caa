// Reads and checks network settings as clients send them. Pure.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/http/message.h"
#include "tests/azure-sim/knobs.h"
#include "tests/azure-sim/world.h"

namespace spoke::azure_sim {

// Either a value, or what Azure answers to such a request.
template <typename T>
struct Parsed {
  T value{};
  std::optional<http::Response> error;
};

struct ProfileRules {
  World& world;
  const Knobs& knobs;
  std::string_view owner;  // The id that errors name.
};

// Reads "networkInterfaceConfigurations" of a scale set or one of its instances.
Parsed<NetworkProfile> ParseProfile(const Json& list, const ProfileRules& rules);

// Checks what may follow what is there: NICs neither come nor go, and a primary IP configuration
// stays.
std::optional<http::Response> CheckSuccessor(const NetworkProfile& now, const NetworkProfile& next);

// Reads "ipConfigurations" of a NIC of its own, which may ask for certain addresses.
Parsed<std::vector<IpConfig>> ParseNicEntries(const Json& list, std::string_view nic,
                                              const ProfileRules& rules);

// Checks that the name of a primary entry is still there. A response: it is not.
std::optional<http::Response> CheckPrimaryStays(std::string_view primary,
                                                const std::vector<IpConfig>& next);

// Makes a value with sorted keys, so that what was sent in another order is still the same.
Extra MakeExtra(const Json& value);

}  // namespace spoke::azure_sim
