// What OpenSSL keeps for each connection of a server, where thousands of clients are connected and
// say little.
#pragma once

#include "absl/status/status.h"

namespace spoke::tls {

// Has all that TLS contexts of this process do from now on cost less, of those that are made later:
//   - Servers hand out no session tickets (RFC 8446, section 4.6.1), and clients ask for none. No
//     client of ours keeps them, and OpenSSL makes two for each connection, for which it reads the
//     client's certificate anew.
//   - Buffers for records, 34 KiB a connection, are given back while nothing is on its way
//     (SSL_MODE_RELEASE_BUFFERS: SSL_CTX_set_mode(3ssl)).
// Other defaults that the system's configuration of OpenSSL has for TLS stay (config(5ssl), section
// "SSL Configuration"). Not thread-safe: to be called once, before there are other threads. Errors:
// kInternal (OpenSSL does not take it).
absl::Status MakeConnectionsLean();

}  // namespace spoke::tls
