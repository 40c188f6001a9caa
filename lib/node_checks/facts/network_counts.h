// What the kernel counts of the NIC, of TCP and of ports, from the text of its files. Pure.
//
// Sources: Documentation/ABI/testing/sysfs-class-net and sysfs-class-net-statistics of the kernel;
// RFC 4022 for the counters of TCP in /proc/net/snmp; proc(5) for /proc/net/sockstat and
// /proc/net/dev.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace spoke::node_checks {

// Totals since the device or the kernel began. What cannot be read is 0.
struct NetworkCounters {
  uint64_t packets = 0;       // Those that the NIC has received and sent.
  uint64_t errors = 0;        // Those among them with an error.
  uint64_t missed = 0;        // Those that came and found no room in the NIC.
  uint64_t dropped = 0;       // Those that the kernel threw away, at the NIC's device.
  uint64_t carrier_lost = 0;  // How often the link went down.
  uint64_t tcp_sent = 0;      // Segments, of the node itself and not of pods.
  uint64_t tcp_resent = 0;    // Segments that were sent again.

  bool operator==(const NetworkCounters&) const = default;
};

// Returns what has been counted between two looks; nullopt: a counter went back, as those of a
// device that was made anew do.
std::optional<NetworkCounters> Difference(const NetworkCounters& before,
                                          const NetworkCounters& now);

// Takes OutSegs and RetransSegs from the text of /proc/net/snmp; leaves them alone if they are not
// there.
void ParseTcpCounters(std::string_view snmp, NetworkCounters& out);

// Returns the IPv4 sockets of TCP that hold a port, in use and in TIME_WAIT, from the text of
// /proc/net/sockstat.
std::optional<uint64_t> ParseTcpSockets(std::string_view sockstat);

// Returns the packets received and sent by each device whose name begins with `prefix`, from the
// text of /proc/net/dev. A line that cannot be read is passed over.
std::map<std::string, uint64_t> ParsePackets(std::string_view dev, std::string_view prefix);

}  // namespace spoke::node_checks
