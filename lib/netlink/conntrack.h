// Tracked connections (ctnetlink): which addresses the kernel's connection tracking has at the ends
// of each, and how one entry is deleted or marked. All but the probe and the dump are pure.
// Formats: linux/netfilter/nfnetlink_conntrack.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {

// One entry of the table.
struct TrackedConnection {
  // The longest tuple, more than the kernel writes.
  static constexpr size_t kMaxTupleBytes = 512;

  // The source and destination in the direction of the first packet, then of the packets that
  // answer. Where the connection is translated these are not the same two the other way round.
  std::array<ip::Address, 4> ends;
  // The protocol (IPPROTO_*), and where the answers come from: a port in the host's order; 0 where
  // the protocol has none (ICMP). Both are 0 where the kernel did not say.
  uint8_t protocol = 0;
  uint16_t answering_port = 0;
  // The content of CTA_TUPLE_ORIG as the kernel wrote it: addresses, protocol, its ports or ids,
  // and the zone of that direction alone.
  absl::InlinedVector<uint8_t, 80> original;
  std::optional<uint16_t> zone;  // The zone in network order; nullopt: none, or of one direction.
  // The kernel's id; as a rule another than that of a later one like it.
  std::optional<uint32_t> id;
  uint32_t mark = 0;
  // Whether both its ends are done with it (TCP's TIME_WAIT and CLOSE): the entry only waits to
  // expire.
  bool closed = false;
};

// Reads the payload of an IPCTNL_MSG_CT_NEW message. Errors: kDataLoss (cut short, a length that
// cannot be, an end that is missing, or a family that is neither IPv4 nor IPv6).
absl::StatusOr<TrackedConnection> ParseTrackedConnection(std::span<const uint8_t> payload);

// Deletes exactly this entry. One that is gone, or whose tuple has a new entry, is tolerated. A
// deletion without a tuple would empty the table, so `connection` must come from
// ParseTrackedConnection() (CHECK: it has a tuple).
Request DeleteTrackedConnection(const TrackedConnection& connection);

// Puts `value` into the bits `mask` of the entry's mark; the others stay. It creates none: one that
// is gone is tolerated. Where two entries follow each other with one tuple it may change the later
// one, since the kernel compares no id here. `connection` as above (CHECK).
Request MarkTrackedConnection(const TrackedConnection& connection, uint32_t value, uint32_t mask);

// Returns whether this kernel can list and delete entries; `socket` is one of Protocol::kNetfilter.
// Loads the kernel's module. Errors: kPermissionDenied (no CAP_NET_ADMIN); kUnimplemented (no
// ctnetlink).
absl::Status ProbeConntrack(Socket& socket);

// Reads every entry of IPv4 and IPv6 in the socket's network namespace; one may come twice. What is
// there from beginning to end comes, unless the hash table is resized meanwhile. `restart` and
// `each` as for Dump(), and so are the errors.
absl::Status DumpTrackedConnections(Socket& socket, absl::FunctionRef<void()> restart,
                                    absl::FunctionRef<absl::Status(const TrackedConnection&)> each);

}  // namespace spoke::netlink
