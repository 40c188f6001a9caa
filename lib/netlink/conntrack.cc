#include "lib/netlink/conntrack.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {
namespace {

constexpr uint16_t TypeOf(uint16_t message) {
  return static_cast<uint16_t>((NFNL_SUBSYS_CTNETLINK << 8U) | message);
}

absl::Status Malformed() { return absl::DataLossError("malformed ctnetlink message"); }

nfgenmsg Fixed(uint8_t family) {
  nfgenmsg fixed{};
  fixed.nfgen_family = family;
  fixed.version = NFNETLINK_V0;
  return fixed;
}

// Returns source and destination of one direction.
std::optional<std::array<ip::Address, 2>> EndsOf(std::span<const uint8_t> tuple,
                                                 ip::Family family) {
  const bool v4 = family == ip::Family::kV4;
  std::optional<ip::Address> source;
  std::optional<ip::Address> destination;
  AttributeReader parts(tuple);
  while (const auto part = parts.Next()) {
    if (part->type != CTA_TUPLE_IP) continue;
    AttributeReader addresses(part->payload);
    while (const auto address = addresses.Next()) {
      if (address->type == (v4 ? CTA_IP_V4_SRC : CTA_IP_V6_SRC)) source = address->Address(family);
      if (address->type == (v4 ? CTA_IP_V4_DST : CTA_IP_V6_DST)) {
        destination = address->Address(family);
      }
    }
    if (addresses.malformed()) return std::nullopt;
  }
  if (parts.malformed() || !source || !destination) return std::nullopt;
  return std::array{*source, *destination};
}

// Returns whether what the kernel says of the protocol could be read; `connection` gets it.
bool ReadProtocol(std::span<const uint8_t> tuple, TrackedConnection& connection) {
  AttributeReader parts(tuple);
  while (const auto part = parts.Next()) {
    if (part->type != CTA_TUPLE_PROTO) continue;
    AttributeReader fields(part->payload);
    while (const auto field = fields.Next()) {
      if (field->type == CTA_PROTO_NUM) {
        connection.protocol = field->U8().value_or(0);
      }
      if (field->type == CTA_PROTO_SRC_PORT) {
        connection.answering_port = ntohs(ReadStruct<uint16_t>(field->payload).value_or(0));
      }
    }
    if (fields.malformed()) return false;
  }
  return !parts.malformed();
}

// The number in enum tcp_conntrack of linux/netfilter/nf_conntrack_tcp.h.
constexpr uint8_t kTimeWait = 7;
constexpr uint8_t kClose = 8;

// Returns whether CTA_PROTOINFO says that a TCP connection is over. What cannot be read is no
// reason to take one for that.
bool IsClosed(std::span<const uint8_t> info) {
  AttributeReader protocols(info);
  while (const auto protocol = protocols.Next()) {
    if (protocol->type != CTA_PROTOINFO_TCP) continue;
    AttributeReader parts(protocol->payload);
    while (const auto part = parts.Next()) {
      if (part->type != CTA_PROTOINFO_TCP_STATE || part->payload.empty()) continue;
      const uint8_t state = part->payload.front();
      return state == kTimeWait || state == kClose;
    }
  }
  return false;
}

// Names the entry, by its tuple and zone.
Request AboutConnection(std::string_view act, uint16_t type, const TrackedConnection& connection) {
  CHECK(!connection.original.empty(), "a change of a tracked connection names which");
  Request request(fmt::format("{} the tracked connection of {} and {}", act,
                              connection.ends[0].ToString(), connection.ends[1].ToString()),
                  TypeOf(type), 0, Fixed(FamilyNumber(connection.ends[0].family())));
  request.PutBytes(NLA_F_NESTED | CTA_TUPLE_ORIG, connection.original);
  if (connection.zone) request.PutValue(CTA_ZONE, *connection.zone);
  request.Tolerate(ENOENT);
  return request;
}

}  // namespace

absl::StatusOr<TrackedConnection> ParseTrackedConnection(std::span<const uint8_t> payload) {
  const auto fixed = ReadStruct<nfgenmsg>(payload);
  if (!fixed || (fixed->nfgen_family != AF_INET && fixed->nfgen_family != AF_INET6)) {
    return Malformed();
  }
  const ip::Family family = fixed->nfgen_family == AF_INET ? ip::Family::kV4 : ip::Family::kV6;
  TrackedConnection connection;
  std::optional<std::array<ip::Address, 2>> original;
  std::optional<std::array<ip::Address, 2>> reply;
  AttributeReader reader(payload, sizeof(nfgenmsg));
  while (const auto attribute = reader.Next()) {
    if (attribute->type == CTA_TUPLE_ORIG) {
      if (attribute->payload.size() > TrackedConnection::kMaxTupleBytes) return Malformed();
      connection.original.assign(attribute->payload.begin(), attribute->payload.end());
      original = EndsOf(attribute->payload, family);
    }
    if (attribute->type == CTA_TUPLE_REPLY) {
      reply = EndsOf(attribute->payload, family);
      if (!ReadProtocol(attribute->payload, connection)) return Malformed();
    }
    if (attribute->type == CTA_ZONE) connection.zone = ReadStruct<uint16_t>(attribute->payload);
    if (attribute->type == CTA_ID) connection.id = attribute->U32();
    if (attribute->type == CTA_MARK) {
      const auto mark = ReadStruct<uint32_t>(attribute->payload);
      if (mark) connection.mark = ntohl(*mark);
    }
    if (attribute->type == CTA_PROTOINFO) connection.closed = IsClosed(attribute->payload);
  }
  if (reader.malformed() || !original || !reply) return Malformed();
  connection.ends = {original->at(0), original->at(1), reply->at(0), reply->at(1)};
  return connection;
}

Request DeleteTrackedConnection(const TrackedConnection& connection) {
  Request request = AboutConnection("delete", IPCTNL_MSG_CT_DELETE, connection);
  if (connection.id) request.PutU32(CTA_ID, *connection.id);
  return request;
}

Request MarkTrackedConnection(const TrackedConnection& connection, uint32_t value, uint32_t mask) {
  Request request = AboutConnection("mark", IPCTNL_MSG_CT_NEW, connection);
  request.PutValue(CTA_MARK, htonl(value));
  request.PutValue(CTA_MARK_MASK, htonl(mask));
  return request;
}

absl::Status ProbeConntrack(Socket& socket) {
  const uint16_t type = TypeOf(IPCTNL_MSG_CT_GET_STATS);
  const absl::Status status =
      GetOne(socket,
             Request("ask for the statistics of tracked connections", type, 0, Fixed(AF_UNSPEC)),
             type)
          .status();
  // This is nfnetlink's error for a subsystem that is not there, and whose module cannot be loaded.
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::UnimplementedError(fmt::format(
      "this kernel has no ctnetlink (module nf_conntrack_netlink): {}", base::MessageOf(status)));
}

absl::Status DumpTrackedConnections(
    Socket& socket, absl::FunctionRef<void()> restart,
    absl::FunctionRef<absl::Status(const TrackedConnection&)> each) {
  const uint16_t type = TypeOf(IPCTNL_MSG_CT_NEW);
  return Dump(
      socket, Request("list tracked connections", TypeOf(IPCTNL_MSG_CT_GET), 0, Fixed(AF_UNSPEC)),
      restart, [&](const Message& message) -> absl::Status {
        const auto head = ReadStruct<nfgenmsg>(message.payload);
        // No other family has addresses of ours.
        const bool passed_over = message.type != type || (head && head->nfgen_family != AF_INET &&
                                                          head->nfgen_family != AF_INET6);
        if (passed_over) return absl::OkStatus();
        const auto connection = ParseTrackedConnection(message.payload);
        return connection.ok() ? each(*connection) : connection.status();
      });
}

}  // namespace spoke::netlink
