#include "tests/bench/swarm/certificates.h"

#include "absl/time/clock.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/tls/authority.h"
#include "lib/tls/certificate.h"
#include "tests/bench/swarm/sim_node.h"

namespace spoke::swarm {
namespace {

absl::Status Write(const std::string& path, const std::string& text) {
  return os::WriteFileAtomic(path, text, os::Durability::kVisible);
}

absl::Status WritePair(const std::string& path, const tls::Authority& authority,
                       const tls::Subject& subject, const tls::Validity& validity) {
  ASSIGN_OR_RETURN(const std::string key, tls::MakeKey());
  ASSIGN_OR_RETURN(const tls::PublicKey public_key, tls::PublicKeyOf(key));
  ASSIGN_OR_RETURN(const std::string certificate,
                   tls::IssueCertificate(authority, public_key, subject, validity));
  RETURN_IF_ERROR(Write(path + ".key", key));
  return Write(path + ".pem", certificate);
}

}  // namespace

absl::Status WriteCertificates(const std::string& directory, uint32_t agents) {
  const absl::Time now = absl::Now();
  const tls::Validity validity{now - absl::Hours(1), now + absl::Hours(24)};
  tls::Authority authority;
  ASSIGN_OR_RETURN(authority.key, tls::MakeKey());
  ASSIGN_OR_RETURN(authority.certificate,
                   tls::MakeAuthorityCertificate(authority.key, "spoke-swarm", validity));
  RETURN_IF_ERROR(Write(directory + "/ca.pem", authority.certificate));
  RETURN_IF_ERROR(WritePair(directory + "/server", authority,
                            {.common_name = "spoke-ipam-server",
                             .addresses = {ip::Address::V4(0x7F000001)},
                             .purpose = tls::Purpose::kServer},
                            validity));
  for (uint32_t i = 0; i < agents; ++i) {
    const std::string name = NamesOf(i).name;
    RETURN_IF_ERROR(WritePair(directory + "/" + name, authority,
                              {.common_name = name, .dns_names = {name}}, validity));
  }
  return absl::OkStatus();
}

}  // namespace spoke::swarm
