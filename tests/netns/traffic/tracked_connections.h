// Entries of the kernel's connection tracking, made by hand (ctnetlink), for tests and benchmarks.
#pragma once

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>

#include "lib/ip/address.h"
#include "lib/netlink/message.h"

namespace spoke::testing_support {

// Enters a UDP connection that lasts ten minutes. `ends` are source and destination of its first
// packet, then of the answers. `number` tells it from others with the same ends; `zone` 0: none.
inline netlink::Request TrackConnection(const std::array<ip::Address, 4>& ends, uint32_t number,
                                        uint16_t zone = 0) {
  nfgenmsg fixed{};
  fixed.nfgen_family = netlink::FamilyNumber(ends[0].family());
  netlink::Request request("track a connection", (NFNL_SUBSYS_CTNETLINK << 8) | IPCTNL_MSG_CT_NEW,
                           NLM_F_CREATE | NLM_F_EXCL, fixed);
  // The number's 32 bits are in two ports, the same way round in both directions.
  const auto low = htons(static_cast<uint16_t>(number & 0xFFFFU));
  const auto high = htons(static_cast<uint16_t>(number >> 16U));
  const bool v4 = ends[0].is_v4();
  for (const uint16_t direction : {CTA_TUPLE_ORIG, CTA_TUPLE_REPLY}) {
    const bool original = direction == CTA_TUPLE_ORIG;
    request.BeginNest(direction)
        .BeginNest(CTA_TUPLE_IP)
        .PutAddress(v4 ? CTA_IP_V4_SRC : CTA_IP_V6_SRC, ends.at(original ? 0 : 2))
        .PutAddress(v4 ? CTA_IP_V4_DST : CTA_IP_V6_DST, ends.at(original ? 1 : 3))
        .EndNest()
        .BeginNest(CTA_TUPLE_PROTO)
        .PutU8(CTA_PROTO_NUM, IPPROTO_UDP)
        .PutValue(CTA_PROTO_SRC_PORT, original ? low : high)
        .PutValue(CTA_PROTO_DST_PORT, original ? high : low)
        .EndNest()
        .EndNest();
  }
  constexpr uint32_t kSeconds = 600;
  request.PutU32(CTA_TIMEOUT, htonl(kSeconds));
  if (zone != 0) request.PutValue(CTA_ZONE, htons(zone));
  return request;
}

}  // namespace spoke::testing_support
