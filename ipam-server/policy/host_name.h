// Names of hosts on the Internet as operators list them. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace spoke::ipam {

// "data.example.org", or "*.example.org" for all hosts below example.org (not itself), in lower
// case. Labels are those of RFC 1123, 2.1: 1 to 63 letters, digits and '-', neither end a '-'; 253
// signs in all; the last label has a letter, so that no address passes for a name. Errors:
// kInvalidArgument, with what to write instead: an address, a name without a domain, a '*' anywhere
// else or of a whole top-level domain, a dot at the end, a name inside the cluster (".svc",
// ".cluster.local", "localhost").
absl::StatusOr<std::string> ParseHostPattern(std::string_view text);

// Whether `pattern` is one for many names, which nobody can resolve.
bool IsWildcard(std::string_view pattern);

}  // namespace spoke::ipam
