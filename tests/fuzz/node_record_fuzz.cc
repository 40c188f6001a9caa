// Feeds what a damaged store may hold: never a crash, and a record that is accepted survives a
// round trip.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ipam-server/store/record_codec.h"
#include "lib/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto record = spoke::ipam::DecodeNode({reinterpret_cast<const char*>(data), size});
  if (!record.ok()) return 0;
  const auto again = spoke::ipam::DecodeNode(spoke::ipam::EncodeNode(*record));
  CHECK(again.ok() && *again == *record, "an accepted record survives a round trip");
  return 0;
}
