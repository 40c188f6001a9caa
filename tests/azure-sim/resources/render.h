// Resources as the JSON that ARM shows. Pure; not thread-safe, since the case of ids may vary.
#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "tests/azure-sim/knobs.h"
#include "tests/azure-sim/world.h"

namespace spoke::azure_sim {

// One for each request.
class Renderer {
 public:
  Renderer(const Knobs& knobs, SeededRandom& random, std::string_view api_version, absl::Time now)
      : knobs_(knobs), random_(random), api_version_(api_version), now_(now) {}

  Json Of(const ScaleSet& set);
  // Of a Uniform set; `with_view` adds the instance view.
  Json Of(const Instance& instance, bool with_view);
  Json InstanceView(const Instance& instance) const;
  // Of a Flexible set.
  Json VirtualMachine(const Instance& instance, bool with_view);
  // What a list with "statusOnly" shows of a machine.
  Json RunStatus(const Instance& instance);
  // What the list of a Flexible set's instances shows: little more than ids.
  Json FlexibleMember(const Instance& instance);
  // `null_entries`: a NIC whose ipConfigurations are null.
  Json Of(const Nic& nic, bool null_entries = false);
  Json Of(const Nic& nic, const NicEntry& entry);
  Json Of(const Subnet& subnet, const std::vector<std::string>* ip_configuration_ids);
  Json Of(const VirtualNetwork& network);
  Json Profile(const NetworkProfile& profile);

  // `id` as Azure might spell it this time.
  std::string Id(const std::string& id);

 private:
  Json Reference(const std::string& id) { return {{"id", Id(id)}}; }
  std::string Time(absl::Time time) const;

  const Knobs& knobs_;
  SeededRandom& random_;
  std::string_view api_version_;
  absl::Time now_;
};

// "00-0D-3A-31-45-48", as Network writes it.
std::string DashedMac(const ip::MacAddress& mac);
// "000D3A314548", as IMDS and wireserver write it.
std::string BareMac(const ip::MacAddress& mac);

}  // namespace spoke::azure_sim
