// Feeds what a store may hold in place of the authority's records and those of revoked identities.
// Never a crash; nothing is taken that was not sealed under our key, and what is read is the same
// when it is written and read again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ipam-server/authority/authority_record.h"
#include "ipam-server/revocation/denied_record.h"
#include "lib/base/check.h"

namespace ipam = spoke::ipam;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ipam::SealKey key = ipam::SealKey::From("0123456789abcdefghijklmnopqrstuv").value();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CHECK(!ipam::DecodeFormerMarkKey(bytes, key).ok(), "nobody seals without the key");
  const auto roots = ipam::DecodeRoots(bytes, key);
  if (roots.ok()) {
    const auto again = ipam::DecodeRoots(ipam::EncodeRoots(*roots, key).value(), key);
    CHECK(again.ok() && *again == *roots, "what is read survives a round trip");
  }
  if (const auto name = ipam::ParseDeniedKey(bytes); name.ok()) {
    CHECK(ipam::DeniedKeyOf(*name) == bytes, "a key is written in one way");
  }
  if (const auto denial = ipam::DecodeDenial(bytes); denial.ok()) {
    const auto again = ipam::DecodeDenial(ipam::EncodeDenial(*denial));
    CHECK(again.ok() && *again == *denial, "what is read survives a round trip");
  }
  return 0;
}
