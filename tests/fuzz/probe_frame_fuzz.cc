// Feeds what may arrive at the NIC while an address is being proven: never a crash, and a frame is
// not both an echo reply and an ARP reply.
#include <cstddef>
#include <cstdint>

#include "lib/base/check.h"
#include "netagent/packets/probe_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto echo = spoke::netagent::ParseEchoReply({data, size});
  const auto arp = spoke::netagent::ParseArpReply({data, size});
  CHECK(!echo || !arp, "a frame is one thing");
  CHECK(!echo || (echo->from.is_v4() && echo->to.is_v4()), "probes are IPv4");
  CHECK(!arp || arp->address.is_v4(), "ARP is for IPv4");
  return 0;
}
