// Routing rules: which table a packet is looked up in. The request functions and ParseRule() are
// pure.
#pragma once

#include <linux/rtnetlink.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/netlink/request.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {

// The packets whose mark is `value` under `mask`.
struct PacketMark {
  uint32_t value = 0;
  uint32_t mask = 0xFFFF'FFFF;

  bool operator==(const PacketMark&) const = default;
};

// A rule that leads into a table. Those that select by anything but source and mark are not told
// apart.
struct Rule {
  ip::Family family = ip::Family::kV4;
  uint32_t priority = 0;           // The lower priority comes first.
  std::optional<ip::Prefix> from;  // The source, of `family`; nullopt: any.
  uint32_t table = RT_TABLE_MAIN;
  uint8_t protocol = RTPROT_UNSPEC;  // The program that added it.
  // The length of a prefix: what the table has only by one of this length or less does not count.
  // 0: no default route.
  std::optional<uint32_t> suppress_prefix_length;
  std::optional<PacketMark> mark = std::nullopt;  // The mark; nullopt: any.

  bool operator==(const Rule&) const = default;
};

// Reads the payload of an RTM_NEWRULE message. Errors: kDataLoss (cut short, a length that cannot
// be, or a family that is neither IPv4 nor IPv6).
absl::StatusOr<Rule> ParseRule(std::span<const uint8_t> payload);

// Adds a rule. One that is there already is no error.
Request AddRule(const Rule& rule);
// Deletes a rule. One that is not there is no error.
Request DeleteRule(const Rule& rule);

// Returns the family's rules that `protocol` added; RTPROT_UNSPEC: all that lead into a table.
// Errors: as Dump().
absl::StatusOr<std::vector<Rule>> DumpRules(Socket& socket, ip::Family family, uint8_t protocol);

}  // namespace spoke::netlink
