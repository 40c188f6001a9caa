// What ip-masq-agent's files say (github.com/kubernetes-sigs/ip-masq-agent). Values.
#pragma once

#include <vector>

#include "lib/ip/prefix.h"

namespace spoke::netagent {

// Merged, where there are several files.
struct IpMasqConfig {
  std::vector<ip::Prefix> non_masquerade;
  bool masquerade_link_local = false;
  bool masquerade_link_local_ipv6 = false;
  // Whether IPv6 is translated at all: what the flag --enable-ipv6 is there, not in the files.
  bool ipv6 = false;

  bool operator==(const IpMasqConfig&) const = default;
};

}  // namespace spoke::netagent
