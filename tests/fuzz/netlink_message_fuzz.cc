// Any bytes as a netlink datagram, and as the payload of each message we parse.
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/check.h"
#include "lib/netlink/conntrack.h"
#include "lib/netlink/link.h"
#include "lib/netlink/message.h"
#include "lib/netlink/network_layer.h"
#include "lib/netlink/queueing/filter.h"
#include "lib/netlink/queueing/htb.h"
#include "lib/netlink/queueing/qdisc.h"

namespace {

// What deletes or marks an entry of the kernel's table names it: without a tuple it would empty the
// table.
void CheckChanges(std::span<const uint8_t> payload) {
  const auto connection = spoke::netlink::ParseTrackedConnection(payload);
  if (!connection.ok()) return;
  for (const spoke::netlink::Request& request :
       {spoke::netlink::DeleteTrackedConnection(*connection),
        spoke::netlink::MarkTrackedConnection(*connection, 4, 0x3F)}) {
    const auto message = spoke::netlink::MessageReader(request.bytes()).Next();
    spoke::netlink::AttributeReader reader(message->payload, sizeof(nfgenmsg));
    const auto first = reader.Next();
    CHECK(first && first->type == CTA_TUPLE_ORIG &&
              std::equal(first->payload.begin(), first->payload.end(), connection->original.begin(),
                         connection->original.end()),
          "a change names the connection as the kernel did");
  }
}

void ParseAll(std::span<const uint8_t> payload) {
  static_cast<void>(spoke::netlink::ParseLink(payload));
  static_cast<void>(spoke::netlink::ParseAddress(payload));
  static_cast<void>(spoke::netlink::ParseRoute(payload));
  static_cast<void>(spoke::netlink::ParseNeighbour(payload));
  static_cast<void>(spoke::netlink::ParseRule(payload));
  static_cast<void>(spoke::netlink::ParseQdisc(payload));
  static_cast<void>(spoke::netlink::ParseHtbClass(payload));
  static_cast<void>(spoke::netlink::ParseBpfFilter(payload));
  CheckChanges(payload);
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
