// The values in ip-masq-agent's files (github.com/kubernetes-sigs/ip-masq-agent).
#pragma once

#include <vector>

#include "lib/ip/prefix.h"

namespace spoke::netagent {

// The configuration, merged where there are several files.
struct IpMasqConfig {
  std::vector<ip::Prefix> non_masquerade;
  bool masquerade_link_local = false;
  bool masquerade_link_local_ipv6 = false;
  // Whether IPv6 is translated at all: there the flag --enable-ipv6 says so, not the files.
  bool ipv6 = false;

  bool operator==(const IpMasqConfig&) const = default;
};

}  // namespace spoke::netagent
