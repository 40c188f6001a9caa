// The frames with which an address is proven: an ICMP echo (RFC 792) from it, the answer, and the
// ARP (RFC 826) that finds the next hop. Pure. IPv4 over Ethernet.
//
// Whole frames are built here, since an address under proof is on no device of the node: the
// kernel's own sockets would neither send from it nor hear the answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/ip/address.h"

namespace spoke::netagent {

struct EchoRequest {
  ip::MacAddress nic_mac;
  ip::MacAddress next_hop_mac;
  ip::Address from;  // Both addresses are IPv4.
  ip::Address to;
  uint16_t identifier = 0;
  uint16_t sequence = 0;
  uint64_t nonce = 0;  // The nonce in the payload: no stranger's answer has it.
};
std::vector<uint8_t> BuildEchoRequest(const EchoRequest& request);

struct EchoReply {
  ip::MacAddress nic_mac;  // The MAC that the frame is addressed to.
  ip::Address from;
  ip::Address to;
  uint16_t identifier = 0;
  uint64_t nonce = 0;

  bool operator==(const EchoReply&) const = default;
};
// Returns the reply; nullopt: anything but a whole echo reply with correct checksums and room for
// the nonce.
std::optional<EchoReply> ParseEchoReply(std::span<const uint8_t> frame);

// Returns the frame "Who has `target`? Tell `address`, which is at `nic_mac`."
std::vector<uint8_t> BuildArpRequest(const ip::MacAddress& nic_mac, const ip::Address& address,
                                     const ip::Address& target);

struct ArpReply {
  ip::Address address;
  ip::MacAddress mac;  // The MAC where it is.

  bool operator==(const ArpReply&) const = default;
};
// Returns the reply; nullopt: anything but a whole ARP reply.
std::optional<ArpReply> ParseArpReply(std::span<const uint8_t> frame);

}  // namespace spoke::netagent
