// What the fast path goes by, and what it counts. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/ip/address.h"

namespace spoke::netagent {

// Addresses `first` to `last`, both of one family, and by which neighbour of the uplink they are
// reached.
struct FastHop {
  ip::Address first;
  ip::Address last;
  std::optional<ip::Address> gateway;  // Nothing: the destination itself.

  bool operator==(const FastHop&) const = default;
};

// The most of one family.
inline constexpr size_t kMaxFastHops = 32;

struct FastPathTable {
  std::string uplink;
  std::vector<FastHop> hops;  // Disjoint; at most kMaxFastHops a family.

  bool operator==(const FastPathTable&) const = default;
};

// Of one pod, all of it of the class cluster. The bytes of IP packets.
struct FastCounts {
  uint64_t sent_packets = 0;
  uint64_t sent_bytes = 0;
  uint64_t received_packets = 0;
  uint64_t received_bytes = 0;

  bool operator==(const FastCounts&) const = default;
};

struct FastPodReading {
  uint64_t id = 0;
  bool ended = false;
  uint32_t host_index = 0;
  std::vector<ip::Address> addresses;
  FastCounts counts;

  bool operator==(const FastPodReading&) const = default;
};

}  // namespace spoke::netagent
