// IPv6 in a pod whose runtime has switched it off.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "lib/netns/netns.h"

namespace spoke::netagent {

// Switches IPv6 on for `link` and for the loopback device, by which a pod reaches itself, in the
// pod's namespace, by the sysctls below `sysctl_root` (see SysctlRoot()). A second call changes
// nothing. Errors: kNotFound (no such link, or a kernel without IPv6); kPermissionDenied; as errno
// says.
absl::Status SwitchOnIpv6(const netns::Netns& pod, const std::string& link,
                          const std::string& sysctl_root);

}  // namespace spoke::netagent
