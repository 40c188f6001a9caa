// Services that the kernel translates by IPVS, as kube-proxy's mode ipvs has them: nf_tables does
// not see what becomes of a packet there. Pure.
#pragma once

#include <string_view>

namespace spoke::node_checks {

// Returns whether the table has any; `ip_vs` is the text of /proc/net/ip_vs, empty where there is
// none. Safe on any input.
bool HasVirtualServices(std::string_view ip_vs);

}  // namespace spoke::node_checks
