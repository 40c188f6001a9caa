#include "tests/fabric/decide.h"

#include <optional>

#include "absl/status/statusor.h"
#include "lib/ip/prefix.h"
#include "tests/fabric/frame.h"
#include "tests/fabric/icmp.h"

namespace spoke::fabric {
namespace {

bool IsLinkLocal(const ip::Address& address) {
  return !address.is_v4() && address.high() >> 54U == 0xFE80U >> 6U;
}

// Returns whether `address` is multicast, reserved, or a broadcast to the whole link.
bool IsForMany(const ip::Address& address) {
  return address.is_v4() ? address.low() >= 0xE0000000U : address.high() >> 56U == 0xFFU;
}

// Returns the address that a payload is about, by the kind of the payload; nothing for an unknown
// kind.
struct DestinationOf {
  std::optional<ip::Address> operator()(const ArpMessage& arp) const { return arp.target; }
  std::optional<ip::Address> operator()(const NeighbourSolicitation& solicitation) const {
    return solicitation.target;
  }
  std::optional<ip::Address> operator()(const IpPacket& packet) const { return packet.destination; }
  std::optional<ip::Address> operator()(const OtherPayload&) const { return std::nullopt; }
};

// Decides about a frame of NIC `from` of `table`, known to bear its MAC, by the kind of its
// payload.
struct Decider {
  const NicTable& table;
  const Rules& rules;
  const Arrival& arrival;

  Decision operator()(const ArpMessage& arp) const {
    if (arp.sender_mac != table.nics()[arrival.nic].mac) return Drop{DropReason::kSourceMac};
    if (table.HolderOf(arp.sender) != arrival.nic) return Drop{DropReason::kSourceAddress};
    if (!arp.is_request) return Drop{DropReason::kArpReply};
    return Reply{BuildArpReply(arp, kFabricMac)};
  }

  Decision operator()(const NeighbourSolicitation& solicitation) const {
    // A router asks from its link-local address when it forwards, so that one is no forgery. The
    // unspecified address (duplicate address detection) gets no answer: it would look like a clash.
    if (!IsLinkLocal(solicitation.source) && table.HolderOf(solicitation.source) != arrival.nic) {
      return Drop{DropReason::kSourceAddress};
    }
    return Reply{BuildAdvertisement(solicitation, table.nics()[arrival.nic].mac, kFabricMac)};
  }

  // The checks stand in the order in which a router makes them.
  Decision operator()(const IpPacket& packet) const {
    if (table.HolderOf(packet.source) != arrival.nic) return Drop{DropReason::kSourceAddress};
    const ip::Address& destination = packet.destination;
    if (IsForMany(destination) || IsLinkLocal(destination)) {
      return Drop{DropReason::kUnknownDestination};
    }
    if (rules.gateways.Has(destination)) return Drop{DropReason::kToGateway};
    const std::optional<size_t> to = table.HolderOf(destination);
    if (!to.has_value()) {
      const bool has_subnet = rules.gateways.Of(destination) != nullptr;
      return RefuseOrDrop(packet, DropReason::kUnknownDestination,
                          has_subnet ? IcmpError::kNoHost : IcmpError::kNoRoute);
    }
    if (*to == arrival.nic) return Drop{DropReason::kBackToSender};
    const bool routed = rules.gateways.AreApart(packet.source, destination);
    if (routed && packet.hops <= 1) {
      return RefuseOrDrop(packet, DropReason::kHopLimit, IcmpError::kHopLimit);
    }
    const size_t bytes = arrival.segment_bytes > 0 ? arrival.segment_bytes : packet.bytes;
    if (rules.mtu > 0 && bytes > rules.mtu) {
      // A router would fragment what may be; the fabric is told to be stricter.
      if (packet.may_be_fragmented) return Drop{DropReason::kTooBig};
      return RefuseOrDrop(packet, DropReason::kTooBig, IcmpError::kTooBig);
    }
    Forward forward{*to, Readdress(arrival.frame, table.nics()[*to].mac, kFabricMac)};
    if (routed) DecrementHops(forward.frame);
    return forward;
  }

  Decision operator()(const OtherPayload&) const { return Drop{DropReason::kEthertype}; }

  Decision RefuseOrDrop(const IpPacket& packet, DropReason reason, IcmpError error) const {
    const Gateway* const gateway = GatewayFor(packet.source);
    if (gateway == nullptr || !packet.may_be_answered) return Drop{reason};
    return Refuse{reason,
                  BuildIcmpError(error, arrival.frame, gateway->address, kFabricMac, rules.mtu)};
  }

  // Returns the gateway of the subnet that `source`, an address of the NIC, is in or, where a pod's
  // address is in none, that the NIC's own address of the same family is in; nullptr when there is
  // none.
  const Gateway* GatewayFor(const ip::Address& source) const {
    if (const Gateway* const gateway = rules.gateways.Of(source)) return gateway;
    for (const ip::Address& own : table.nics()[arrival.nic].addresses) {
      if (own.is_v4() != source.is_v4()) continue;
      if (const Gateway* const gateway = rules.gateways.Of(own)) return gateway;
    }
    return nullptr;
  }
};

// A leak is not hidden: nothing is asked of a tagged frame except a NIC that it is for.
Decision DecideTagged(const NicTable& table, const Arrival& arrival, const Frame& frame) {
  const std::optional<ip::Address> destination = std::visit(DestinationOf{}, frame.payload);
  if (!destination.has_value()) return Drop{DropReason::kEthertype};
  const std::optional<size_t> to = table.HolderOf(*destination);
  if (!to.has_value()) return Drop{DropReason::kUnknownDestination};
  if (*to == arrival.nic) return Drop{DropReason::kBackToSender};
  return Forward{*to, Readdress(arrival.frame, table.nics()[*to].mac, kFabricMac), true};
}

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
    case DropReason::kVlanTag:
      return "vlan_tag";
    case DropReason::kBackToSender:
      return "back_to_sender";
    case DropReason::kToGateway:
      return "to_gateway";
    case DropReason::kHopLimit:
      return "hop_limit";
    case DropReason::kTooBig:
      return "too_big";
  }
  return "";  // This is not reached: the switch is complete.
}

Decision Decide(const NicTable& table, const Rules& rules, const Arrival& arrival) {
  const bool tagged = CountTags(arrival.frame) > 0;
  if (tagged && !rules.delivers_tags) return Drop{DropReason::kVlanTag};
  const absl::StatusOr<Frame> parsed = ParseFrame(arrival.frame);
  if (!parsed.ok()) return Drop{DropReason::kMalformed};
  if (tagged) return DecideTagged(table, arrival, *parsed);
  if (parsed->source != table.nics()[arrival.nic].mac) return Drop{DropReason::kSourceMac};
  return std::visit(Decider{table, rules, arrival}, parsed->payload);
}

}  // namespace spoke::fabric
