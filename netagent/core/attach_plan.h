// What one attachment looks like in the kernel, decided before anything is touched. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"

namespace spoke::netagent {

// The key of everything the plugin does (CNI spec 1.0.0, "Attachment"): never the pod's name, which
// a new pod may bear while the old one is still being taken down.
struct AttachmentKey {
  std::string container_id;
  std::string ifname;  // CNI_IFNAME, inside the pod.

  auto operator<=>(const AttachmentKey&) const = default;
};

// A veth pair with its addresses: all that kernel/router.h needs to build it.
struct AttachSpec {
  std::string host_link;  // Name of the end in the node's namespace.
  std::string pod_link;   // Name of the end in the pod's namespace.
  ip::MacAddress host_mac;
  ip::MacAddress pod_mac;
  uint32_t mtu = 0;                    // Bytes; both ends.
  std::vector<ip::Address> addresses;  // One or two: at most one a family.

  bool operator==(const AttachSpec&) const = default;
};

// The host link's name: claims::kLinkPrefix and 12 hex digits of a hash of `key`. The same key
// always gives the same name, so a DEL finds its link with nothing but the key.
std::string HostLinkName(const AttachmentKey& key);

// The spec for `key`. MACs are locally administered, unicast and derived from the key.
// Errors: kInvalidArgument (no address, two of one family, or an MTU below 68, RFC 791's minimum;
// with an IPv6 address below 1280, RFC 8200).
absl::StatusOr<AttachSpec> PlanAttach(const AttachmentKey& key, std::vector<ip::Address> addresses,
                                      uint32_t mtu);

}  // namespace spoke::netagent
