// What may come from the wire server's address: never a crash, and every NIC that is read is found
// by its MAC.
#include <cstddef>
#include <cstdint>

#include "lib/base/check.h"
#include "netagent/azure/wireserver.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spoke::netagent::azure;
  const auto interfaces = ParseWireserverInterfaces({reinterpret_cast<const char*>(data), size});
  if (!interfaces.ok()) {
    CHECK(absl::IsInvalidArgument(interfaces.status()), "a document is refused as one");
    return 0;
  }
  for (const HostInterface& nic : *interfaces) {
    const auto addresses = AddressesOf(*interfaces, nic.mac);
    CHECK(addresses.ok(), "a NIC is found by its MAC");
    for (const HostSubnet& subnet : nic.subnets) {
      for (const HostAddress& address : subnet.addresses) {
        CHECK(addresses->contains(address.address), "and all its addresses with it");
      }
    }
  }
  return 0;
}
