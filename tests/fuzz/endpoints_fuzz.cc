// Feeds what a NAT host's file of endpoints may hold: refused, or rules that name what is there.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/check.h"
#include "netagent/egress/endpoint_text.h"
#include "netagent/egress/nat_host.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using spoke::netagent::EndpointTable;
  const auto table =
      spoke::netagent::ParseEndpoints(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!table.ok()) return 0;
  for (const auto& service : table->services) {
    CHECK(service.port != 0, "a service has a port");
    CHECK(service.protocol == 6 || service.protocol == 17, "a service is of TCP or UDP");
  }
  spoke::nft::Transaction transaction;
  const absl::Status status = AppendNatHost({}, *table, {}, transaction);
  CHECK(status.ok() == !transaction.empty(), "a table becomes rules whole or not at all");
  return 0;
}
