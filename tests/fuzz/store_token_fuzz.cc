// Feeds what an agent may show as the token of a store: never a crash, and only what the key has
// signed is taken. Text of any form is also tried as if it had been signed; a mark that is read
// from it is the same when it is written and read again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "ipam-server/loop/store_witness.h"
#include "lib/base/check.h"
#include "lib/tls/message_code.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kKey = "a key that nobody knows";
  CHECK(!spoke::ipam::VerifyMark(text, kKey).ok(), "nobody can sign without the key");
  const std::string code = absl::BytesToHexString(spoke::tls::CodeOf(kKey, text));
  const auto mark = spoke::ipam::VerifyMark(std::string(text) + "." + code, kKey);
  if (!mark.ok()) return 0;
  const auto again = spoke::ipam::VerifyMark(spoke::ipam::SignMark(*mark, kKey), kKey);
  CHECK(again.ok() && *again == *mark, "an accepted mark survives a round trip");
  return 0;
}
