#include "netagent/links/attach_plan.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/fnv1a.h"
#include "netagent/claims.h"

namespace spoke::netagent {
namespace {

// Locally administered (bit 1) and unicast (bit 0 clear), IEEE 802-2014 section 8.4. `end` tells
// the two ends of one pair apart.
ip::MacAddress MacFrom(uint64_t hash, uint8_t end) {
  ip::MacAddress mac;
  mac.octets[0] = end;
  for (size_t i = 1; i < mac.octets.size(); ++i) {
    mac.octets[i] = static_cast<uint8_t>(hash >> (8 * i));
  }
  return mac;
}

constexpr uint8_t kHostEnd = 0x0A;
constexpr uint8_t kPodEnd = 0x0E;
constexpr uint32_t kMinMtuV4 = 68;
constexpr uint32_t kMinMtuV6 = 1280;

}  // namespace

uint64_t StableHash(const AttachmentKey& key) {
  // The separator keeps ("ab", "c") apart from ("a", "bc").
  return base::Fnv1a(key.ifname,
                     base::Fnv1a(std::string_view("\0", 1), base::Fnv1a(key.container_id)));
}

std::string HostLinkName(const AttachmentKey& key) {
  return fmt::format("{}{:012x}", claims::kLinkPrefix, StableHash(key) >> 16U);
}

bool IsHostLinkName(std::string_view name) {
  constexpr size_t kDigits = 12;
  return name.size() == claims::kLinkPrefix.size() + kDigits &&
         name.starts_with(claims::kLinkPrefix) &&
         name.find_first_not_of("0123456789abcdef", claims::kLinkPrefix.size()) == name.npos;
}

ip::Address GatewayOf(const ip::Address& address) {
  return address.is_v4() ? claims::kGatewayV4 : claims::kGatewayV6;
}

absl::StatusOr<AttachSpec> PlanAttach(const AttachmentKey& key, std::vector<ip::Address> addresses,
                                      uint32_t node_mtu, const AttachOptions& options) {
  const auto v4 = std::count_if(addresses.begin(), addresses.end(),
                                [](const ip::Address& address) { return address.is_v4(); });
  const auto v6 = static_cast<std::ptrdiff_t>(addresses.size()) - v4;
  if (addresses.empty() || v4 > 1 || v6 > 1) {
    return absl::InvalidArgumentError(
        fmt::format("an attachment has one address a family, not {} IPv4 and {} IPv6", v4, v6));
  }
  if (options.pod_mac && options.pod_mac->is_multicast()) {
    return absl::InvalidArgumentError(
        fmt::format("MAC {} is a group's, not a device's", options.pod_mac->ToString()));
  }
  const uint32_t mtu = options.mtu != 0 ? options.mtu : node_mtu;
  const uint32_t least = v6 > 0 ? kMinMtuV6 : kMinMtuV4;
  if (mtu < least) {
    return absl::InvalidArgumentError(fmt::format("MTU {} is below the minimum of {}", mtu, least));
  }
  const uint64_t hash = StableHash(key);
  return AttachSpec{.host_link = HostLinkName(key),
                    .pod_link = key.ifname,
                    .host_mac = MacFrom(hash, kHostEnd),
                    .pod_mac = options.pod_mac.value_or(MacFrom(hash, kPodEnd)),
                    .mtu = mtu,
                    .addresses = std::move(addresses),
                    .ordinal = options.ordinal,
                    .bandwidth = options.bandwidth};
}

}  // namespace spoke::netagent
