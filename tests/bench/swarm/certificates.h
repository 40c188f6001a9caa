// Files with certificates for a server on this machine and for simulated agents, one for each, all
// signed by an authority made for them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace spoke::swarm {

// Writes into `directory`, which exists: ca.pem, server.pem and server.key (for 127.0.0.1), and
// NAME.pem and NAME.key for each of so many agents. They are good for a day. Errors: those of
// writing files, kInternal.
absl::Status WriteCertificates(const std::string& directory, uint32_t agents);

}  // namespace spoke::swarm
