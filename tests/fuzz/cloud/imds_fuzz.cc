// Feeds what may come from the metadata service's address: never a crash, and nothing above the
// limits.
#include <cstddef>
#include <cstdint>

#include "lib/base/check.h"
#include "netagent/azure/identity.h"
#include "netagent/azure/imds_document.h"

namespace azure = spoke::netagent::azure;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto instance = azure::ParseImdsInstance({reinterpret_cast<const char*>(data), size});
  if (!instance.ok()) {
    CHECK(absl::IsInvalidArgument(instance.status()), "a document is refused as one");
    return 0;
  }
  CHECK(instance->nics.size() <= azure::kMaxImdsNics, "NICs are limited");
  for (const azure::ImdsNic& nic : instance->nics) {
    CHECK(nic.addresses.size() <= azure::kMaxImdsAddresses, "addresses are limited");
    const auto identity = azure::IdentityOf(*instance, "eth0", nic.mac);
    CHECK(!absl::IsFailedPrecondition(identity.status()), "a NIC is found by its MAC");
  }
  return 0;
}
