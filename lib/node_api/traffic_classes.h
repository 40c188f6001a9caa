// The names of traffic classes. Pure.
#pragma once

#include <array>
#include <string_view>

namespace spoke::node_api {

// The classes that all nodes tell apart.
inline constexpr std::array<std::string_view, 8> kTrafficClasses = {
    "cluster",  "hub",        "internet",        "loopback",
    "platform", "peer-spoke", "platform-denied", "storage"};

// Behind this stands the name of a destination group: a part of the Internet that a policy names.
inline constexpr std::string_view kGroupTraffic = "group:";

// Names no class but several: all that leaves the cluster's networks.
inline constexpr std::string_view kExternalTraffic = "external";

// Returns whether traffic of the class leaves the cluster's networks: to the Internet, or to a
// destination group, which is a part of it.
constexpr bool IsExternalTraffic(std::string_view traffic_class) {
  return traffic_class == "internet" ||
         traffic_class.substr(0, kGroupTraffic.size()) == kGroupTraffic;
}

}  // namespace spoke::node_api
