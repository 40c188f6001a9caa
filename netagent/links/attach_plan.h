// What one attachment looks like in the kernel, decided before anything is touched. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/cni_api/pod_options.h"
#include "lib/ip/address.h"

namespace spoke::netagent {

// The key of everything the plugin does (CNI spec 1.0.0, "Attachment"): never the pod's name, which
// a new pod may bear while the old one is still being taken down.
struct AttachmentKey {
  std::string container_id;
  std::string ifname;  // CNI_IFNAME, inside the pod.

  auto operator<=>(const AttachmentKey&) const = default;
};

// The options that an attachment has beside its addresses.
struct AttachOptions {
  std::optional<ip::MacAddress> pod_mac = std::nullopt;  // nullopt: derived from the key.
  uint32_t mtu = 0;                                      // Bytes; 0: the node's choice.
  // The position of this interface among its container's. The first (0) has the pod's default
  // routes; what comes from a later one's address leaves by that one all the same.
  uint32_t ordinal = 0;
  cni::Bandwidth bandwidth = {};
  cni::InternetOptions internet = {};

  bool operator==(const AttachOptions&) const = default;
};

// A rule: what comes from `address` leaves by `table` unless the main table has more for it than a
// default route. For addresses of a NIC that is not the node's first (Links::SetNicTable()).
struct SourceTable {
  ip::Address address;
  uint32_t table = 0;

  bool operator==(const SourceTable&) const = default;
};

// A veth pair with its addresses: all that links/link_plan.h plans by.
struct AttachSpec {
  std::string host_link;  // The name of the end in the node's namespace.
  std::string pod_link;   // The name of the end in the pod's namespace.
  ip::MacAddress host_mac;
  ip::MacAddress pod_mac;
  uint32_t mtu = 0;                    // Bytes; both ends.
  std::vector<ip::Address> addresses;  // One or two: at most one a family.
  uint32_t ordinal = 0;                // The same as AttachOptions::ordinal.
  cni::Bandwidth bandwidth = {};
  std::vector<SourceTable> source_tables = {};  // For some of the addresses; at most one each.

  bool operator==(const AttachSpec&) const = default;
};

// Returns the same number for the same key in every build and version: names in the kernel and on
// disk are made of it. FNV-1a, 64 bits, over the container id, a NUL and the interface name.
uint64_t StableHash(const AttachmentKey& key);

// The host link's name: claims::kLinkPrefix and 12 hex digits of a hash of `key`. The same key
// always gives the same name, so a DEL finds its link with nothing but the key.
std::string HostLinkName(const AttachmentKey& key);

// Whether `name` has the form that HostLinkName() gives. No other link is ever listed as ours or
// removed, whoever asks.
bool IsHostLinkName(std::string_view name);

// The next hop of the pod's default route for what comes from `address`.
ip::Address GatewayOf(const ip::Address& address);

// Plans the spec for `key`; `node_mtu` is used where the options have none. MACs that nobody asked
// for are locally administered, unicast and derived from the key. Errors: kInvalidArgument (no
// address, two of one family, a multicast MAC, or an MTU below 68, RFC 791's minimum; with an IPv6
// address below 1280, RFC 8200).
absl::StatusOr<AttachSpec> PlanAttach(const AttachmentKey& key, std::vector<ip::Address> addresses,
                                      uint32_t node_mtu, const AttachOptions& options = {});

}  // namespace spoke::netagent
