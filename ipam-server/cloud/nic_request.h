// What is asked of a cloud for a machine's NIC, and what the cloud says of it. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/calls/cloud_lane.h"
#include "ipam-server/ledger/node_record.h"

namespace spoke::ipam {

// An entry that is to get an address, or a block, of the cloud's choice.
struct WantedConfiguration {
  std::string name;
  ip::Family family = ip::Family::kV4;
  int prefix_length = 32;

  auto operator<=>(const WantedConfiguration&) const = default;
};

// Everything of ours on one node's NIC.
struct NicAddresses {
  NodeKey node;
  ip::MacAddress nic_mac;
  std::vector<IpConfiguration> configurations;  // Sorted.
  // The cloud's own name of the VM, in lower case; empty where a cloud has none.
  std::string instance = {};

  bool operator==(const NicAddresses&) const = default;
};

// What one NIC shall hold.
struct NicRequest {
  NodeKey node;
  ip::MacAddress nic_mac;
  std::vector<IpConfiguration> configurations;   // The entries to keep.
  std::vector<WantedConfiguration> wanted = {};  // The ones with addresses to be chosen.
  std::vector<IpConfiguration> removing = {};    // The ones to take off.
  std::string instance = {};
  CloudLane lane = CloudLane::kWarmUp;
  // An operator has mended what the cloud refused: not to be waited for any longer.
  bool mended = false;

  // The NIC that holds just `configurations`.
  NicAddresses Configured() const;
  bool operator==(const NicRequest&) const = default;
};

// When a request will have been carried out, as far as can be told.
struct CloudForecast {
  CloudLane lane = CloudLane::kWarmUp;
  absl::Time eta;
  std::string waits_for;  // "Azure's limit UpdateVMScaleSetVMs of subscription ...".
};

// How near a cloud's limits are, and how many NICs wait.
struct CloudLoad {
  // By limit, under the cloud's name for it: the share, 0 to 1, that is surely left of it where
  // least is left. Limits of a single VM are not in it.
  std::map<std::string, double> limits_left;
  // The NICs whose request waits or is under way, in the order of kCloudLanes.
  std::array<size_t, kCloudLanes.size()> waiting = {};
};

}  // namespace spoke::ipam
