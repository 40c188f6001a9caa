// Looks at where a pod's network namespace is mounted, so that it can be known later whether it is
// gone (attach/lost_dels.h).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "netagent/attach/assignments.h"

namespace spoke::netagent {

// Looks at what is at `path` now: the directory in which it ends, and the namespace that it leads
// to. Both parts are 0 where there is no such directory, the namespace's where there is nothing of
// that name. Errors: kInvalidArgument (a path that is not absolute); kFailedPrecondition (there is
// something else than a network namespace: from within a container, one whose mount is not seen);
// kPermissionDenied; what errno says.
absl::StatusOr<NetnsTrace> LookAtNetns(const std::string& path);

// Looks at `path` if it leads to the namespace of the descriptor `netns`, which is borrowed; if it
// does not, or cannot be looked at, returns a trace by which nothing is known again. Takes some ten
// microseconds.
NetnsTrace TraceNetns(const std::string& path, int netns);

}  // namespace spoke::netagent
