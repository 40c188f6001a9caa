// The checks that there are, by their ids, for programs that count what checks find and make none.
// Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace spoke::node_checks {

// In the order in which Examine() makes them. examine.cc does not compile if it has others.
inline constexpr auto kCheckIds = std::to_array<std::string_view>({
    "kernel-veth",
    "kernel-nftables",
    "kernel-tbf",
    "kernel-bpf",
    "kernel-ifb",
    "kernel-htb",
    "nic",
    "mtu",
    "gateway",
    "nic-errors",
    "nic-carrier",
    "nic-speed",
    "tcp-resent",
    "ports",
    "counters",
    "dns-node",
    "dns-cluster",
    "metadata",
    "clock-kept",
    "clock-server",
    "hub",
    "peer-spoke",
    "forwarding",
    "forwarding-v6",
    "rp-filter",
    "neighbour-table",
    "connection-table",
    "strict-tracking",
    "ipvs",
    "forward-rules",
    "other-networks",
    "agent-config",
    "cni-config",
    "cni-bin-dir",
    "cni-chain",
    "cni-plugin",
    "agent",
    "state-dir",
    "server",
    "cloud-init",
    "udev-link",
    "networkd-network",
    "networkd-foreign",
});

// Returns the place of `id` in kCheckIds; kCheckIds.size(): there is no such check, as far as this
// version knows.
constexpr size_t PlaceOfCheck(std::string_view id) {
  size_t place = 0;
  while (place < kCheckIds.size() && kCheckIds[place] != id) ++place;
  return place;
}

}  // namespace spoke::node_checks
