// Shows resources as the JSON of ARM. Pure; not thread-safe, since the case of ids may vary.
#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "tests/azure-sim/knobs.h"
#include "tests/azure-sim/world.h"

namespace spoke::azure_sim {

// A renderer for one request.
class Renderer {
 public:
  Renderer(const Knobs& knobs, SeededRandom& random, std::string_view api_version, absl::Time now)
      : knobs_(knobs), random_(random), api_version_(api_version), now_(now) {}

  Json Of(const ScaleSet& set);
  // Shows an instance of a Uniform set; `with_view` adds the instance view.
  Json Of(const Instance& instance, bool with_view);
  Json InstanceView(const Instance& instance) const;
  // Shows an instance of a Flexible set.
  Json VirtualMachine(const Instance& instance, bool with_view);
  // Shows what a list with "statusOnly" has of a machine.
  Json RunStatus(const Instance& instance);
  // Shows what the list of a Flexible set's instances has: little more than ids.
  Json FlexibleMember(const Instance& instance);
  // Shows a NIC; with `null_entries` its ipConfigurations are null.
  Json Of(const Nic& nic, bool null_entries = false);
  Json Of(const Nic& nic, const NicEntry& entry);
  Json Of(const Subnet& subnet, const std::vector<std::string>* ip_configuration_ids);
  Json Of(const VirtualNetwork& network);
  Json Profile(const NetworkProfile& profile);

  // Returns `id` as Azure might spell it this time.
  std::string Id(const std::string& id);

 private:
  Json Reference(const std::string& id) { return {{"id", Id(id)}}; }
  std::string Time(absl::Time time) const;

  const Knobs& knobs_;
  SeededRandom& random_;
  std::string_view api_version_;
  absl::Time now_;
};

// Returns "00-0D-3A-31-45-48", as Network writes it.
std::string DashedMac(const ip::MacAddress& mac);
// Returns "000D3A314548", as IMDS and wireserver write it.
std::string BareMac(const ip::MacAddress& mac);

}  // namespace spoke::azure_sim
