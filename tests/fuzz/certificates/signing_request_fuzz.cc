// Feeds what anybody on the network may send to have signed: never a crash, and what is taken is a
// key that an authority signs.
#include <cstddef>
#include <cstdint>

#include "lib/base/check.h"
#include "lib/tls/authority.h"
#include "lib/tls/certificate.h"

namespace tls = spoke::tls;

namespace {

const absl::Time kBegin = absl::FromUnixSeconds(1'800'000'000);
const tls::Validity kValidity{kBegin, kBegin + absl::Hours(1)};

tls::Authority MakeAuthority() {
  tls::Authority authority;
  authority.key = tls::MakeKey().value();
  authority.certificate = tls::MakeAuthorityCertificate(authority.key, "fuzz", kValidity).value();
  return authority;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tls::Authority authority = MakeAuthority();
  const auto key = tls::ReadSigningRequest({reinterpret_cast<const char*>(data), size});
  if (!key.ok()) {
    CHECK(absl::IsInvalidArgument(key.status()), "a request is refused as one");
    return 0;
  }
  const auto issued = tls::IssueCertificate(authority, *key, {.dns_names = {"node-1"}}, kValidity);
  CHECK(issued.ok(), "what was read can be signed");
  const auto facts = tls::ReadCertificate(*issued);
  CHECK(facts.ok(), "what was signed can be read");
  CHECK(facts->common_name.empty(), "the request's own names are passed over");
  CHECK(facts->dns_names.size() == 1, "the request's own names are passed over");
  return 0;
}
