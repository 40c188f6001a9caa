// What a host link is set to: said once, for building it, for looking at it and for putting it
// right. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace spoke::netagent {

struct HostLinkSetting {
  uint16_t number = 0;    // IPV4_DEVCONF_* of linux/ip.h, which kernel/ holds it against.
  std::string_view name;  // Below net.ipv4.conf.LINK.
  uint32_t value = 0;
};

inline constexpr std::array<HostLinkSetting, 8> kHostLinkSettings = {{
    {1, "forwarding", 1},
    // Strict: what the pod sends from an address that is not routed to it is dropped.
    {8, "rp_filter", 1},
    // The node speaks for nobody on this link, and learns no routes or neighbours from a pod.
    {3, "proxy_arp", 0},
    {21, "arp_accept", 0},
    // It answers no question either: the gateway's neighbour entry in the pod is permanent.
    {19, "arp_ignore", 8},
    {4, "accept_redirects", 0},
    {6, "send_redirects", 0},
    {9, "accept_source_route", 0},
}};

// No IPv6 link-local address on the host link: nobody speaks to it, and its routes would make every
// further link slower to bring up (the kernel walks those of all links). IN6_ADDR_GEN_MODE_NONE.
inline constexpr uint8_t kHostLinkAddressGeneration = 1;

}  // namespace spoke::netagent
