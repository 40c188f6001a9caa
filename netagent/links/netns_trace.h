// Looks at where a pod's network namespace is mounted, so that it can be known later whether it is
// gone (attach/lost_dels.h).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "netagent/attach/assignments.h"

namespace spoke::netagent {

// What is at `path` now: the directory in which it ends, and the namespace that it leads to. Both
// parts are 0 where there is no such directory, the namespace's where there is nothing of that
// name. Errors: kInvalidArgument (a path that is not absolute); kFailedPrecondition (there is
// something else than a network namespace: from within a container, one whose mount is not seen);
// kPermissionDenied; as errno says.
absl::StatusOr<NetnsTrace> LookAtNetns(const std::string& path);

// The same, if `path` leads to the namespace of the descriptor `netns`, which is borrowed; else,
// and where it cannot be looked at, a trace by which nothing is known again. Takes some ten
// microseconds.
NetnsTrace TraceNetns(const std::string& path, int netns);

}  // namespace spoke::netagent
