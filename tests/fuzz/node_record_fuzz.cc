// Feeds what a damaged store may hold: never a crash, and a record that is accepted survives a
// round trip, whichever kind of record the bytes are taken for.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ipam-server/policy/object_codec.h"
#include "ipam-server/store/record_codec.h"
#include "lib/base/check.h"

namespace {

template <typename Decode, typename Encode>
void CheckRoundTrip(std::string_view bytes, Decode decode, Encode encode) {
  const auto record = decode(bytes);
  if (!record.ok()) return;
  const auto again = decode(encode(*record));
  CHECK(again.ok() && *again == *record, "an accepted record survives a round trip");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spoke::ipam;  // NOLINT(google-build-using-namespace): the only function.
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckRoundTrip(bytes, &DecodeNode, &EncodeNode);
  CheckRoundTrip(bytes, &DecodeQuarantine,
                 [](const auto& entry) { return EncodeQuarantine(entry.first, entry.second); });
  CheckRoundTrip(bytes, &DecodeReservation, &EncodeReservation);
  CheckRoundTrip(bytes, &DecodeBreaker, &EncodeBreaker);
  CheckRoundTrip(bytes, &DecodeStore, &EncodeStore);
  CheckRoundTrip(bytes, &DecodePolicyVersion, &EncodePolicyVersion);
  return 0;
}
