// Endpoints of etcd from any text. The laws: one that parses is read back from how it is written,
// with a host that a name server or a socket can be asked for, and a port.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ipam-server/store/etcd/endpoint.h"
#include "lib/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using spoke::ipam::etcd::ParseEndpoint;
  const auto endpoint = ParseEndpoint(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!endpoint.ok()) return 0;
  CHECK(endpoint->port != 0, "an endpoint has a port");
  CHECK(endpoint->host.find_first_of("/@[] ") == std::string::npos, "a host is a host alone");
  const auto again = ParseEndpoint(endpoint->ToString());
  CHECK(again.ok() && *again == *endpoint, "an endpoint is read back as it is written");
  return 0;
}
