// Checks what the NIC and TCP have counted since the look before.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "fmt/core.h"
#include "lib/node_checks/checks.h"

namespace spoke::node_checks {
namespace {

// A good link loses less than one packet in a million; a handful is no trend.
constexpr uint64_t kFewErrors = 10;
constexpr double kMostErrors = 0.0001;
// What is for nobody here counts as dropped too: some frames a second of a switch's own protocols.
constexpr uint64_t kFewDrops = 1000;
constexpr double kMostDrops = 0.001;
// A link that goes down once may have been replugged.
constexpr uint64_t kFewCarrierLosses = 2;
// A network that is not overloaded sends less than 1 % again; some peer is always gone.
constexpr uint64_t kFewSegments = 1000;
constexpr double kMostResent = 0.05;
constexpr double kMostPorts = 0.8;
// What probes of the kubelet's and answers to them are on a node with some pods. What is neither
// counted nor dropped by a rule is for no one (an exhausted hop limit, no route): a tenth leaves
// room for it.
constexpr uint64_t kFewCarried = 1000;
constexpr double kLeastCounted = 0.1;

double Share(uint64_t part, uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(whole, 1));
}

// Returns how many ports there are for connections that name none.
std::optional<uint64_t> PortsOf(const NodeFacts& facts) {
  const auto range = facts.sysctls.find("net.ipv4.ip_local_port_range");
  if (range == facts.sysctls.end()) return std::nullopt;
  const std::vector<std::string> words =
      absl::StrSplit(range->second, absl::ByAnyChar("\t "), absl::SkipEmpty());
  uint64_t first = 0;
  uint64_t last = 0;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &first) ||
      !absl::SimpleAtoi(words[1], &last) || last < first) {
    return std::nullopt;
  }
  return last - first + 1;
}

}  // namespace

void CheckNicErrors(const NodeFacts& facts, Findings& findings) {
  if (!facts.counted) return;
  const std::string& nic = facts.settings.nic;
  const NetworkCounters& counted = *facts.counted;
  const auto find = [&](uint64_t count, const char* what, std::string why, std::string remedy) {
    findings.Add({.severity = Severity::kWarning,
                  .object = nic,
                  .what = fmt::format("{} {} of {} packets since the last look", what, count,
                                      counted.packets),
                  .why = std::move(why),
                  .remedy = std::move(remedy)});
  };
  const auto is_much = [&](uint64_t count, uint64_t few, double most) {
    return count >= few && Share(count, counted.packets) >= most;
  };
  if (is_much(counted.errors, kFewErrors, kMostErrors)) {
    find(counted.errors, "had errors in",
         "a cable, a port or the NIC is bad: what is lost is sent again late, and jobs wait for it",
         fmt::format(
             "ethtool -S {0} | grep -i err; drain the node and let the VM have another host", nic));
  }
  if (is_much(counted.missed, kFewErrors, kMostErrors)) {
    find(counted.missed, "had no room for",
         "packets come faster than the node takes them from the NIC: what is lost is sent again "
         "late",
         fmt::format("ethtool -G {0} rx 4096; spread its interrupts over more processors", nic));
  }
  if (is_much(counted.dropped, kFewDrops, kMostDrops)) {
    find(counted.dropped, "dropped",
         "the kernel has no memory or no time for them, or they are for nobody here: what is lost "
         "is sent again late",
         fmt::format("ip -s -s link show {0}; cat /proc/net/softnet_stat; raise "
                     "net.core.netdev_max_backlog and net.core.netdev_budget",
                     nic));
  }
}

void CheckCarrier(const NodeFacts& facts, Findings& findings) {
  if (!facts.counted || facts.counted->carrier_lost < kFewCarrierLosses) return;
  findings.Add(
      {.severity = Severity::kWarning,
       .object = facts.settings.nic,
       .what = fmt::format("went down {} times since the last look", facts.counted->carrier_lost),
       .why = "each time the node is cut off for seconds, and its routes are lost",
       .remedy = "journalctl -k says when and why; drain the node and let the VM have "
                 "another host, or look at cable and port"});
}

void CheckGateways(const NodeFacts& facts, Findings& findings) {
  for (const GatewayFacts& gateway : facts.gateways) {
    if (!gateway.silent) continue;
    findings.Add(
        {.severity = Severity::kWarning,
         .object = gateway.address,
         .what = fmt::format("is the default route's gateway by {}, and nobody answers for it",
                             facts.settings.nic),
         .why = "other subnets, the hub and the Internet are behind it, for the node and its pods",
         .remedy = fmt::format("ip neighbour show {0}; ping {0}; if other nodes reach it, drain "
                               "this one and let the VM have another host",
                               gateway.address)});
  }
}

void CheckSpeed(const NodeFacts& facts, Findings& findings) {
  if (!facts.speed_mbit || !facts.best_speed_mbit || *facts.speed_mbit >= *facts.best_speed_mbit) {
    return;
  }
  findings.Add({.severity = Severity::kWarning,
                .object = facts.settings.nic,
                .what = fmt::format("runs at {} Mbit/s, and had {} Mbit/s before",
                                    *facts.speed_mbit, *facts.best_speed_mbit),
                .why = "the slowest node of a job decides how fast it is",
                .remedy = fmt::format("ethtool {}; look at cable and port, or let the VM have "
                                      "another host",
                                      facts.settings.nic)});
}

void CheckRetransmissions(const NodeFacts& facts, Findings& findings) {
  if (!facts.counted || facts.counted->tcp_sent < kFewSegments) return;
  const double share = Share(facts.counted->tcp_resent, facts.counted->tcp_sent);
  if (share < kMostResent) return;
  findings.Add(
      {.severity = Severity::kWarning,
       .object = "TCP",
       .what = fmt::format("sent {:.1f} % of {} segments again since the last look", 100 * share,
                           facts.counted->tcp_sent),
       .why = "the network between this node and others loses packets",
       .remedy = "spokectl reachability node says with whom; ss -ti names the connections"});
}

void CheckPorts(const NodeFacts& facts, Findings& findings) {
  const auto ports = PortsOf(facts);
  if (!ports || !facts.tcp_sockets || Share(*facts.tcp_sockets, *ports) < kMostPorts) return;
  findings.Add({.severity = Severity::kWarning,
                .object = "net.ipv4.ip_local_port_range",
                .what = fmt::format("has {} ports, and {} sockets of TCP are open or end", *ports,
                                    *facts.tcp_sockets),
                .why = "when no port is left, connections of the node itself to one destination "
                       "fail",
                .remedy = "ss -tan state time-wait | wc -l; sysctl -w "
                          "net.ipv4.ip_local_port_range='1024 65535'"});
}

void CheckCounters(const NodeFacts& facts, Findings& findings) {
  if (facts.pod_packets.size() < PodPacketLooks::kKept) return;
  PodPackets sum;
  for (const PodPackets& look : facts.pod_packets) {
    if (look.carried < kFewCarried || Share(look.counted, look.carried) >= kLeastCounted) return;
    sum.carried += look.carried;
    sum.counted += look.counted;
  }
  findings.Add({.severity = Severity::kWarning,
                .object = "traffic",
                .what = fmt::format("of pods was {} packets at {} looks in a row, and {} of them "
                                    "were counted",
                                    sum.carried, facts.pod_packets.size(), sum.counted),
                .why = "what a team used is not known, and the rules that count are those that "
                       "keep clusters apart",
                .remedy = "nft list table inet spoke; look for traffic_ in the agent's log; where "
                          "the rules are there, restart the agent: pods keep their connections. A "
                          "pod that floods packets which go nowhere looks the same: ip -s link "
                          "show type veth has its link, ip route show dev LINK its address"});
}

}  // namespace spoke::node_checks
