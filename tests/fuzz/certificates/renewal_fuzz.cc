// Feeds what anybody on the network may send in place of a token: a certificate to be renewed and a
// proof. Never a crash; nobody proves anything without the key, and no certificate that we have not
// signed is ours.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/check.h"
#include "lib/tls/authority.h"
#include "lib/tls/certificate.h"
#include "lib/tls/renewal.h"

namespace tls = spoke::tls;

namespace {

const absl::Time kBegin = absl::FromUnixSeconds(1'800'000'000);

std::string MakeRoot() {
  return tls::MakeAuthorityCertificate(tls::MakeKey().value(), "fuzz",
                                       {kBegin, kBegin + absl::Hours(1)})
      .value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string root = MakeRoot();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The proof stands behind the last line's end of the certificate.
  const size_t end = text.rfind('\n');
  const std::string_view certificate = text.substr(0, end);
  const std::string_view proof = end == std::string_view::npos ? "" : text.substr(end + 1);
  const auto facts = tls::ReadCertificate(certificate);
  CHECK(!tls::CheckSignedBy(certificate, root).ok(), "only our root signs for us");
  CHECK(!tls::CheckRenewalProof(certificate, "node-1", "request", proof).ok(),
        "nobody proves without the key");
  CHECK(!tls::CheckRenewalProof(root, "node-1", "request", text).ok(),
        "nobody proves without the key");
  if (facts.ok()) {
    CHECK(!facts->serial.empty(), "a certificate that is read has a number");
  }
  return 0;
}
