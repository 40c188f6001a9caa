// Any bytes as a netlink datagram, and as the payload of each message we parse.
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/netlink/address.h"
#include "lib/netlink/filter.h"
#include "lib/netlink/htb.h"
#include "lib/netlink/link.h"
#include "lib/netlink/message.h"
#include "lib/netlink/neighbour.h"
#include "lib/netlink/qdisc.h"
#include "lib/netlink/route.h"
#include "lib/netlink/rule.h"

namespace {

void ParseAll(std::span<const uint8_t> payload) {
  static_cast<void>(spoke::netlink::ParseLink(payload));
  static_cast<void>(spoke::netlink::ParseAddress(payload));
  static_cast<void>(spoke::netlink::ParseRoute(payload));
  static_cast<void>(spoke::netlink::ParseNeighbour(payload));
  static_cast<void>(spoke::netlink::ParseRule(payload));
  static_cast<void>(spoke::netlink::ParseQdisc(payload));
  static_cast<void>(spoke::netlink::ParseHtbClass(payload));
  static_cast<void>(spoke::netlink::ParseBpfFilter(payload));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> input(data, size);
  ParseAll(input);
  spoke::netlink::MessageReader reader(input);
  while (const auto message = reader.Next()) {
    static_cast<void>(spoke::netlink::ParseAcknowledgement(*message));
    ParseAll(message->payload);
  }
  return 0;
}
