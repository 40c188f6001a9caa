// Counts how many of the kernel's tracked connections each pod of this node has begun, and how many
// of its ports hold translated ones. Pure: no I/O, no clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/ip/address.h"

namespace spoke::netagent {

// The target that connections lead to, as the packets on the wire have it.
struct ConnectionTarget {
  ip::Address address;
  uint8_t protocol = 0;  // IPPROTO_*
  uint16_t port = 0;     // 0: the protocol has none.

  auto operator<=>(const ConnectionTarget&) const = default;
};

// The connections of one pod.
struct PodConnections {
  uint32_t link = 0;  // The index of the node's end of its link.
  std::vector<ip::Address> addresses;
  std::string pod_namespace;
  std::string pod_name;

  uint64_t connections = 0;       // Those the pod began, translated ones included.
  uint64_t translated_ports = 0;  // Those whose source is translated: a port each.
  // The targets of the translated ones with most. A count may be too small by a 65th of
  // `translated_ports`, and is never too large; a target that has more than that is there.
  struct AtTarget {
    ConnectionTarget target;
    uint64_t connections = 0;

    bool operator==(const AtTarget&) const = default;
  };
  std::vector<AtTarget> targets;

  bool operator==(const PodConnections&) const = default;
};

// Counts one list of the kernel's table. Its memory does not grow with the table. Not thread-safe;
// may be used on another thread than the one it was made on.
class ConnectionTally {
 public:
  // The number of targets that are told apart at a time for each pod.
  static constexpr size_t kTargets = 64;

  // Counts for `pods`, whatever they hold already.
  explicit ConnectionTally(std::vector<PodConnections> pods);

  // Forgets all that was counted.
  void Reset();
  // Counts one connection. `ends`: source and destination of its first packet, then of the answers;
  // `protocol` and `port` are those of the end that answers. A connection of nobody's here counts
  // in seen() alone.
  void Add(const std::array<ip::Address, 4>& ends, uint8_t protocol, uint16_t port);

  uint64_t seen() const { return seen_; }
  const std::vector<PodConnections>& pods() const { return pods_; }

 private:
  std::vector<PodConnections> pods_;
  std::unordered_map<ip::Address, size_t, ip::AddressHash> pod_of_;
  uint64_t seen_ = 0;
};

}  // namespace spoke::netagent
