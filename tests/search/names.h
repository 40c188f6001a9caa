// What the numbers of a World mean to the programs: addresses, machines, containers and times.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ipam-server/ledger/node_record.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/node_api/assignments.h"
#include "netagent/links/attach_plan.h"
#include "tests/search/world.h"

namespace spoke::search {

// A tick is longer than the cooldown, and shorter than two of them.
inline constexpr absl::Duration kCooldown = absl::Seconds(30);
inline constexpr absl::Duration kTickLength = absl::Seconds(31);
inline const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
inline const absl::Time kLongAgo = kNow - kTickLength;

inline const ip::Address& AddressOf(size_t number) {
  static const std::array<ip::Address, kAddresses> all = {ip::Address::Parse("10.0.0.1").value(),
                                                          ip::Address::Parse("10.0.0.2").value(),
                                                          ip::Address::Parse("10.0.0.3").value()};
  return all[number];
}
inline ip::Prefix PrefixOf(size_t number) { return ip::Prefix::Host(AddressOf(number)); }
inline size_t NumberOf(const ip::Address& address) {
  return static_cast<size_t>(ip::Distance(AddressOf(0), address));
}
inline std::vector<ip::Prefix> PrefixesOf(Mask mask) {
  std::vector<ip::Prefix> prefixes;
  for (size_t i = 0; i < kAddresses; ++i) {
    if (Has(mask, i)) prefixes.push_back(PrefixOf(i));
  }
  return prefixes;
}
inline Mask MaskOf(const std::vector<ip::Prefix>& prefixes) {
  Mask mask = 0;
  for (const ip::Prefix& prefix : prefixes) mask |= BitOf(NumberOf(prefix.base()));
  return mask;
}
inline Mask MaskOf(const std::vector<ip::Address>& addresses) {
  Mask mask = 0;
  for (const ip::Address& address : addresses) mask |= BitOf(NumberOf(address));
  return mask;
}

inline ipam::NodeKey KeyOf(size_t node, size_t vm) {
  return {std::string(1, static_cast<char>('a' + node)),
          std::string(1, static_cast<char>('0' + vm))};
}
// A boot is of one machine.
inline std::string BootOf(size_t node, size_t vm, size_t boot) {
  return {static_cast<char>('a' + node), static_cast<char>('0' + vm),
          static_cast<char>('0' + boot)};
}

// Pods are numbered from 1 here, so that 0 is none.
inline netagent::AttachmentKey ContainerOf(uint8_t pod) {
  return {std::string(1, static_cast<char>('0' + pod)), "eth0"};
}
inline uint8_t PodOf(const std::string& container) {
  return static_cast<uint8_t>(container.front() - '0');
}

// A generation that is of this step is the newest there is.
inline constexpr uint64_t kNewest = 255;
inline uint8_t GenerationOf(uint64_t generation) {
  return static_cast<uint8_t>(generation < kNewest ? generation : kNewest);
}

inline node_api::Assignment ToAssignment(size_t address, const AssignmentSaid& said) {
  return {.address = AddressOf(address),
          .generation = said.generation,
          .since = kNow,
          .lessee = {.container_id = ContainerOf(said.pod).container_id, .ifname = "eth0"}};
}

}  // namespace spoke::search
