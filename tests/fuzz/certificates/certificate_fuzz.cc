// Feeds the DER of a certificate. Never a crash; what is read of its holder alone is what the whole
// certificate says.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "lib/base/check.h"
#include "lib/tls/certificate.h"
#include "lib/tls/certificate_holder.h"

namespace tls = spoke::tls;

namespace {

std::string PemOf(std::string_view der) {
  constexpr size_t kColumns = 64;  // RFC 7468, section 2.
  std::string text;
  absl::Base64Escape({der.data(), der.size()}, &text);
  std::string pem = "-----BEGIN CERTIFICATE-----\n";
  for (size_t at = 0; at < text.size(); at += kColumns) pem += text.substr(at, kColumns) + "\n";
  return pem + "-----END CERTIFICATE-----\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string pem = PemOf({reinterpret_cast<const char*>(data), size});
  const auto holder = tls::ReadCertificateHolder(pem);
  const auto whole = tls::ReadCertificate(pem);
  if (!holder.ok() || !whole.ok()) return 0;
  CHECK(holder->serial == whole->serial, "one serial number");
  CHECK(holder->organizations == whole->organizations, "the same organizations");
  CHECK(holder->not_after == whole->not_after, "one end");
  return 0;
}
