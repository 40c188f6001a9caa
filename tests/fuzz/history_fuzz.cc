// Feeds what a damaged store may hold of the past: never a crash, and a chunk that is accepted
// survives a round trip.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ipam-server/history/history_codec.h"
#include "lib/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto entries = spoke::ipam::DecodeHistory(bytes);
  if (!entries.ok()) return 0;
  const auto again = spoke::ipam::DecodeHistory(spoke::ipam::EncodeHistory(*entries));
  CHECK(again.ok() && *again == *entries, "an accepted chunk survives a round trip");
  for (const auto& entry : *entries) {
    CHECK(spoke::ipam::MayMention(bytes, entry.address), "no chunk hides an address");
  }
  spoke::ipam::AssignmentsOf(*entries);
  return 0;
}
