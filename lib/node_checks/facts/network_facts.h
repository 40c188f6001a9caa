// The part of a node's facts that netlink knows, of the calling thread's network namespace.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/node_checks/facts/facts.h"

namespace spoke::node_checks {

// Fills `links`, `links_status`, `nic`, the device that facts.settings names, and `gateways`.
void ReadLinks(NodeFacts& facts);

// Returns the name of the device by which the node reaches others (uplink.h): by IPv4's default
// routes, and by IPv6's where IPv4 has none. Blocks for a millisecond. Errors: those of
// ChooseUplink(), and of netlink::Dump().
absl::StatusOr<std::string> ReadUplink();

// Fills `chains` and `firewall_status`: nf_tables', and those of legacy iptables, which `proc`
// (the process file system) says whether there are. A kernel without nf_tables has no rules there,
// which is no failure.
void ReadFirewall(const std::string& proc, NodeFacts& facts);

}  // namespace spoke::node_checks
