// Sets up what a node needs before its pods' packets can be forwarded.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/node_checks/examine.h"

namespace spoke::netagent {

struct ChangedSetting {
  std::string name;  // The name that sysctl(8) uses: "net.ipv4.ip_forward".
  std::string before;
  std::string after;

  bool operator==(const ChangedSetting&) const = default;
};

struct NodeSetupReport {
  std::vector<ChangedSetting> changed;  // The changes in the order they were made.
  std::vector<absl::Status> failed;     // A status for each thing that could not be done, named.
};

// Turns forwarding on, for IPv4 and, where the kernel has it, IPv6, in the calling thread's network
// namespace. Changes only what is not so yet; a second call changes nothing.
//
// A node that forwards IPv6 stops listening to router advertisements, and many a cloud's default
// route comes that way. So each device that listens now (accept_ra 1) is first told to go on all
// the same (2); if that fails, IPv6 forwarding stays off. New devices are not told, nor are pods'
// links, which listen to nobody (links/link_plan.h).
//
// `sysctl_root` is what SysctlRoot() says.
NodeSetupReport PrepareNode(const std::string& sysctl_root = "/proc/sys");

// Makes these settings, in their order. A setting that is not in the calling thread's network
// namespace, or that it may not change, is a failure.
NodeSetupReport MakeSettings(const std::vector<node_checks::KernelSetting>& settings,
                             const std::string& sysctl_root = "/proc/sys");

// Returns where sysctls can be set. A container that is not privileged has /proc/sys read-only, so
// the node's /proc/sys/net is mounted below `host_root` for it: the result is then
// `host_root`/proc/sys. Either way a thread sees the settings of the network namespace it is in.
// `own` is /proc/sys, except in tests.
std::string SysctlRoot(const std::string& host_root, const std::string& own = "/proc/sys");

}  // namespace spoke::netagent
