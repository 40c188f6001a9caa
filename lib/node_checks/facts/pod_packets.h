// Compares what pods' links carried with what the agent counted of it, look by look, for the check
// "counters". Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spoke::node_checks {

// What happened between two looks.
struct PodPackets {
  uint64_t carried = 0;  // Packets that passed links of pods, both ways.
  uint64_t counted = 0;  // Packets from and to pods that have a class or were dropped by a rule.

  bool operator==(const PodPackets&) const = default;
};

// Remembers the totals of the look before. Not thread-safe.
class PodPacketLooks {
 public:
  // The most comparisons that are kept: both numbers are not read at the same moment, so that one
  // alone says little.
  static constexpr size_t kKept = 2;

  // Adds a look. `links` has each link's total by its name; `counted` is the agent's total,
  // nullopt: nobody has said one. Returns the comparisons of the last looks in a row, the newest
  // last. A link counts from the first look at which it is there; a total that went back, as after
  // a reset of the counters, begins anew.
  const std::vector<PodPackets>& Add(std::map<std::string, uint64_t> links,
                                     std::optional<uint64_t> counted);

 private:
  std::map<std::string, uint64_t> links_;
  std::optional<uint64_t> counted_;
  std::vector<PodPackets> comparisons_;
};

}  // namespace spoke::node_checks
