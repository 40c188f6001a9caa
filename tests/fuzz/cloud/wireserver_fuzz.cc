// Feeds what may come from the wire server's address: never a crash, and every NIC that is read is
// found by its MAC.
#include <cstddef>
#include <cstdint>

#include "lib/base/check.h"
#include "netagent/azure/wireserver.h"

namespace azure = spoke::netagent::azure;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto interfaces =
      azure::ParseWireserverInterfaces({reinterpret_cast<const char*>(data), size});
  if (!interfaces.ok()) {
    CHECK(absl::IsInvalidArgument(interfaces.status()), "a document is refused as one");
    return 0;
  }
  for (const azure::HostInterface& nic : *interfaces) {
    const auto addresses = azure::AddressesOf(*interfaces, nic.mac);
    CHECK(!absl::IsNotFound(addresses.status()), "a NIC is found by its MAC");
    if (!addresses.ok()) continue;
    for (const azure::HostSubnet& subnet : nic.subnets) {
      for (const azure::HostAddress& address : subnet.addresses) {
        CHECK(addresses->contains(address.range.last()), "and all its addresses with it");
      }
    }
  }
  return 0;
}
