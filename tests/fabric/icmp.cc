#include "tests/fabric/icmp.h"

#include <algorithm>
#include <cstddef>

#include "tests/fabric/frame.h"
#include "tests/fabric/wire_bytes.h"

namespace spoke::fabric {
namespace {

constexpr uint8_t kHops = 64;
constexpr size_t kIcmpHeaderBytes = 8;
// The most that is quoted of a packet: an error is never longer than what every host takes (RFC
// 1812, section 4.3.2.3, and RFC 4443, section 2.4).
constexpr size_t kMaxQuoteV4 = 576 - 20 - kIcmpHeaderBytes;
constexpr size_t kMaxQuoteV6 = 1280 - 40 - kIcmpHeaderBytes;

struct TypeAndCode {
  uint8_t type = 0;
  uint8_t code = 0;
};

TypeAndCode OfV4(IcmpError error) {
  switch (error) {
    case IcmpError::kNoRoute:
      return {3, 0};
    case IcmpError::kNoHost:
      return {3, 1};
    case IcmpError::kHopLimit:
      return {11, 0};
    case IcmpError::kTooBig:
      return {3, 4};
  }
  return {};  // This is not reached: the switch is complete.
}

TypeAndCode OfV6(IcmpError error) {
  switch (error) {
    case IcmpError::kNoRoute:
      return {1, 0};
    case IcmpError::kNoHost:
      return {1, 3};
    case IcmpError::kHopLimit:
      return {3, 0};
    case IcmpError::kTooBig:
      return {2, 0};
  }
  return {};  // This is not reached: the switch is complete.
}

// The MTU ends the second word for both families; RFC 4443 has all of that word for it.
std::vector<uint8_t> BuildMessage(TypeAndCode what, uint16_t mtu, Bytes quote) {
  std::vector<uint8_t> message{what.type, what.code, 0, 0, 0, 0};
  Append16(message, mtu);
  message.insert(message.end(), quote.begin(), quote.end());
  return message;
}

void AppendIpv4Header(std::vector<uint8_t>& out, const ip::Address& source,
                      const ip::Address& destination, size_t payload_bytes) {
  std::vector<uint8_t> header{0x45, 0};
  Append16(header, static_cast<uint16_t>(20 + payload_bytes));
  header.insert(header.end(), {0, 0, 0, 0, kHops, kIcmpv4, 0, 0});
  AppendAddress(header, source);
  AppendAddress(header, destination);
  Store16(header, 10, InternetChecksum(header));
  out.insert(out.end(), header.begin(), header.end());
}

void AppendIpv6Header(std::vector<uint8_t>& out, const ip::Address& source,
                      const ip::Address& destination, size_t payload_bytes) {
  out.insert(out.end(), {0x60, 0, 0, 0});
  Append16(out, static_cast<uint16_t>(payload_bytes));
  out.insert(out.end(), {kIcmpv6, kHops});
  AppendAddress(out, source);
  AppendAddress(out, destination);
}

}  // namespace

std::vector<uint8_t> BuildIcmpError(IcmpError error, Bytes frame, const ip::Address& address,
                                    const ip::MacAddress& mac, uint16_t mtu) {
  const Bytes packet = frame.subspan(kEthernetHeaderBytes);
  const bool v4 = address.is_v4();
  const Bytes from = v4 ? packet.subspan(12, 4) : packet.subspan(8, 16);
  const ip::Address sender = ip::Address::FromBytes(from).value();
  // What is behind the packet's end is padding.
  const size_t packet_bytes = v4 ? Load16(packet, 2) : size_t{40} + Load16(packet, 4);
  const Bytes quote = packet.first(std::min(packet_bytes, v4 ? kMaxQuoteV4 : kMaxQuoteV6));
  std::vector<uint8_t> message =
      BuildMessage(v4 ? OfV4(error) : OfV6(error), error == IcmpError::kTooBig ? mtu : 0, quote);
  Store16(message, 2,
          v4 ? InternetChecksum(message) : Icmpv6Checksum(address, sender, Bytes(message)));

  // The frame goes to where it came from.
  std::vector<uint8_t> out(frame.begin() + 6, frame.begin() + 12);
  AppendMac(out, mac);
  Append16(out, v4 ? kIpv4 : kIpv6);
  if (v4) {
    AppendIpv4Header(out, address, sender, message.size());
  } else {
    AppendIpv6Header(out, address, sender, message.size());
  }
  out.insert(out.end(), message.begin(), message.end());
  return out;
}

}  // namespace spoke::fabric
