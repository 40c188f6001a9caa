// The `tls:` section that server and agent have in common. Pure.
#pragma once

#include "lib/config/config_text.h"
#include "lib/rpc/credentials.h"

namespace spoke::config {

// Reads `tls: {ca, certificate, key}` or `tls: {insecure: true}` of `root` into `tls`. Whether the
// files can be read is found out when they are used.
void ReadTls(const ConfigMap& root, rpc::TlsFiles* tls);

// Does the same for a program that can get its files itself: with `enroll` in `root`, `tls` becomes
// `enrolled`, and a map `tls` is a mistake, since two sets of files would contradict each other.
void ReadTlsOrEnrolled(const ConfigMap& root, const rpc::TlsFiles& enrolled, rpc::TlsFiles* tls);

}  // namespace spoke::config
