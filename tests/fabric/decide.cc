#include "tests/fabric/decide.h"

#include <optional>

#include "absl/status/statusor.h"
#include "lib/ip/prefix.h"
#include "tests/fabric/frame.h"

namespace spoke::fabric {
namespace {

bool IsLinkLocal(const ip::Address& address) {
  return !address.is_v4() && address.high() >> 54U == 0xFE80U >> 6U;
}

// A frame of NIC `from` of `table`, known to bear its MAC, by the kind of its payload.
struct Decider {
  const NicTable& table;
  size_t from;
  std::span<const uint8_t> bytes;

  Decision operator()(const ArpMessage& arp) const {
    if (arp.sender_mac != table.nics()[from].mac) return Drop{DropReason::kSourceMac};
    if (table.HolderOf(arp.sender) != from) return Drop{DropReason::kSourceAddress};
    if (!arp.is_request) return Drop{DropReason::kArpReply};
    return Reply{BuildArpReply(arp, kFabricMac)};
  }

  Decision operator()(const NeighbourSolicitation& solicitation) const {
    // A router asks from its link-local address when it forwards, so that one is no forgery. The
    // unspecified address (duplicate address detection) gets no answer: it would look like a clash.
    if (!IsLinkLocal(solicitation.source) && table.HolderOf(solicitation.source) != from) {
      return Drop{DropReason::kSourceAddress};
    }
    return Reply{BuildAdvertisement(solicitation, table.nics()[from].mac, kFabricMac)};
  }

  Decision operator()(const IpPacket& packet) const {
    if (table.HolderOf(packet.source) != from) return Drop{DropReason::kSourceAddress};
    const std::optional<size_t> to = table.HolderOf(packet.destination);
    if (!to.has_value()) return Drop{DropReason::kUnknownDestination};
    return Forward{*to, Readdress(bytes, table.nics()[*to].mac, kFabricMac)};
  }

  Decision operator()(const OtherPayload&) const { return Drop{DropReason::kEthertype}; }
};

}  // namespace

std::string_view NameOf(DropReason reason) {
  switch (reason) {
    case DropReason::kMalformed:
      return "malformed";
    case DropReason::kEthertype:
      return "ethertype";
    case DropReason::kSourceMac:
      return "source_mac";
    case DropReason::kSourceAddress:
      return "source_address";
    case DropReason::kUnknownDestination:
      return "unknown_destination";
    case DropReason::kArpReply:
      return "arp_reply";
  }
  return "";  // Not reached: the switch is complete.
}

Decision Decide(const NicTable& table, size_t from, std::span<const uint8_t> frame) {
  const absl::StatusOr<Frame> parsed = ParseFrame(frame);
  if (!parsed.ok()) return Drop{DropReason::kMalformed};
  if (parsed->source != table.nics()[from].mac) return Drop{DropReason::kSourceMac};
  return std::visit(Decider{table, from, frame}, parsed->payload);
}

}  // namespace spoke::fabric
