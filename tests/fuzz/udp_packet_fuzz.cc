// Feeds what may pass by the node from port 53: never a crash, and a payload inside of the packet.
#include <cstddef>
#include <cstdint>

#include "lib/base/check.h"
#include "netagent/packets/udp_packet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto packet = spoke::netagent::ParseUdpPacket({data, size});
  if (!packet) return 0;
  const uint8_t* const begin = packet->payload.data();
  CHECK(begin >= data + 28 && begin + packet->payload.size() <= data + size,
        "the payload is behind two headers, and in the packet");
  return 0;
}
