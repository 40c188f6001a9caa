#include "lib/config/tls_fields.h"

#include <string>

#include "lib/base/status.h"

namespace spoke::config {

void ReadTls(const ConfigMap& root, rpc::TlsFiles* tls) {
  const ConfigMap map = root.Map("tls", Need::kRequired);
  if (!map.present()) return;
  map.String("ca", &tls->ca, Need::kOptional);
  map.String("certificate", &tls->certificate, Need::kOptional);
  map.String("key", &tls->key, Need::kOptional);
  map.Bool("insecure", &tls->insecure, Need::kOptional);
  if (const absl::Status status = tls->Validate(); !status.ok()) {
    map.Error("", std::string(base::MessageOf(status)));
  }
}

void ReadTlsOrEnrolled(const ConfigMap& root, const rpc::TlsFiles& enrolled, rpc::TlsFiles* tls) {
  if (!root.present() || !root.Has("enroll")) return ReadTls(root, tls);
  *tls = enrolled;
  if (!root.Has("tls")) return;
  rpc::TlsFiles ignored;
  ReadTls(root, &ignored);
  root.Error("tls", "give either tls or enroll, which gets the files itself; not both");
}

}  // namespace spoke::config
