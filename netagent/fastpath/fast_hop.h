// The values that the fast path goes by, and those that it counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ip/address.h"

namespace spoke::netagent {

// The addresses `first` to `last`, both of one family, and the neighbour of the uplink by which
// they are reached.
struct FastHop {
  ip::Address first;
  ip::Address last;
  std::optional<ip::Address> gateway;  // The neighbour; nothing: it is the destination itself.

  bool operator==(const FastHop&) const = default;
};

// The most hops of one family.
inline constexpr size_t kMaxFastHops = 32;

struct FastPathTable {
  std::string uplink;         // The uplink's name; empty: nothing comes or goes by the fast path.
  std::vector<FastHop> hops;  // The hops are disjoint; at most kMaxFastHops a family.

  bool operator==(const FastPathTable&) const = default;
};

// The counts of one pod, all of the class cluster. Bytes are those of IP packets.
struct FastCounts {
  uint64_t sent_packets = 0;
  uint64_t sent_bytes = 0;
  uint64_t received_packets = 0;
  uint64_t received_bytes = 0;

  bool operator==(const FastCounts&) const = default;
};

// The way that the packets of a pod go.
enum class PodWay : uint8_t { kOrdinary, kFast };

struct FastPodReading {
  uint64_t id = 0;
  PodWay way = PodWay::kFast;
  bool ended = false;
  // Whether it has more translated pairs than are remembered: then, whatever its way, it goes the
  // ordinary one.
  bool over_share = false;
  uint32_t host_index = 0;
  std::vector<ip::Address> addresses;
  std::optional<ip::MacAddress> pod_mac = std::nullopt;
  FastCounts counts;

  bool operator==(const FastPodReading&) const = default;
};

// The count of packets that pods sent and that ended at their links.
struct RefusedCount {
  std::string reason;  // One of kRefusedReasons.
  uint64_t packets = 0;
  uint64_t bytes = 0;  // Bytes of frames.

  bool operator==(const RefusedCount&) const = default;
};

// The reasons: another address or MAC than the pod's own; a VLAN tag; what only a router says;
// neither IP nor ARP, or not even its header.
inline constexpr std::array<std::string_view, 4> kRefusedReasons = {"unknown-source", "vlan-tag",
                                                                    "router-message", "protocol"};

}  // namespace spoke::netagent
