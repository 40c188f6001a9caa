// Names of hosts and nodes as certificates and Kubernetes have them. Pure, thread-safe.
#pragma once

#include <string_view>

namespace spoke::base {

// Returns whether `text` is what Kubernetes calls a DNS subdomain, which names of nodes are: at
// most 253 signs; labels of 1 to 63 lower-case letters, digits and '-' between dots, with neither
// end a '-' (RFC 1123, section 2.1). No wildcard, and no dot at the end. IPv4 addresses fit too.
bool IsDnsName(std::string_view text);

// Returns whether `text` is one label of such a name, as namespaces and most objects are named.
bool IsDnsLabel(std::string_view text);

}  // namespace spoke::base
