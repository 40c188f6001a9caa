// The pod's network namespace: opened, and told from what it must not be.
#pragma once

#include <string>

#include "cni-plugin/cni_error.h"
#include "lib/os/unique_fd.h"

namespace spoke::cni {

// Opens `path` as a network namespace. `own`: that of this process, as a path in /proc.
// Errors: code 4 (nothing there, or no network namespace), 8 (it is `own`: the node's, so that an
// attachment would take the node's own network apart).
Expected<os::UniqueFd> OpenNetns(const std::string& path, const char* own);

// Returns whether `path` is the namespace that `netns` refers to, by identity: "/var/run/netns/a"
// and "/run/netns/a" are the same.
bool IsSameNetns(int netns, const std::string& path);

}  // namespace spoke::cni
