// Feeds what may come from the metadata service's address, or from whoever writes the file of
// announced maintenance: never a crash, nothing above the limits, and what is read can be said to
// a server.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/check.h"
#include "netagent/maintenance/scheduled_events.h"
#include "proto/spoke/v1/node.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto maintenance = spoke::netagent::ParseScheduledEvents(text, "pool_1");
  if (!maintenance.ok()) {
    CHECK(absl::IsInvalidArgument(maintenance.status()), "a document is refused as one");
    return 0;
  }
  CHECK(maintenance->events.size() <= spoke::node_api::kMaxMaintenanceEvents, "events are limited");
  spoke::v1::Maintenance wire;
  ToWire(*maintenance, wire);
  const auto said = spoke::node_api::FromWire(wire);
  CHECK(said.ok() && said->events.size() == maintenance->events.size(), "a server takes all of it");
  return 0;
}
