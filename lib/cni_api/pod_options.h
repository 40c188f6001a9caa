// What the plugin tells the agent of a pod and of the limits that it asks for: the values of
// PodReference, Bandwidth and InternetOptions of proto/spoke/v1/cni.proto. Pure. Header-only, and
// free of every library, since the plugin is exec'd for each pod.
#pragma once

#include <cstdint>
#include <string>

#include "lib/units/quantity.h"

namespace spoke::cni {

// The pod's names, for people and policy; never a key.
struct PodReference {
  std::string pod_namespace;
  std::string name;
  std::string uid;

  bool operator==(const PodReference&) const = default;
};

// The limits of CNI's capability "bandwidth": all traffic of the link. Ingress is towards the pod.
struct Bandwidth {
  units::BitRate ingress_rate = {};    // The rate; zero: not limited.
  units::BitCount ingress_burst = {};  // The burst; zero: none asked for. The agent bounds it.
  units::BitRate egress_rate = {};
  units::BitCount egress_burst = {};

  bool operator==(const Bandwidth&) const = default;
};

// The limits of payload exchanged with the Internet, from the pod's annotations. Ingress is towards
// the pod.
struct InternetOptions {
  units::BitRate ingress = {};  // The rate; zero: not limited.
  units::BitRate egress = {};
  uint32_t weight = 1;  // The pod's part where pods share a total; 1 to kMaxPodWeight.

  bool operator==(const InternetOptions&) const = default;
};
inline constexpr uint32_t kMaxPodWeight = 100;

}  // namespace spoke::cni
