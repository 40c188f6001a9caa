// One HTTP listener with threads of its own, around cpp-httplib.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/http/message.h"
#include "tests/azure-sim/sim_service.h"

namespace spoke::azure_sim {

struct ListenOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // The port; 0: any that is free.
  // The certificate and key. Both are given or none; with both it speaks TLS.
  std::string tls_cert;
  std::string tls_key;
  // The threads. A connection that is kept open holds one of them.
  int threads = 64;
};

class HttpServer {
 public:
  // Handles a request; called on many threads.
  using Handler = std::function<Answer(const http::Request&)>;

  // Listens in the network namespace of the calling thread, and serves until it is destroyed.
  // Errors: kUnavailable (the address cannot be bound); kInvalidArgument (certificate or key).
  static absl::StatusOr<std::unique_ptr<HttpServer>> Open(const ListenOptions& options,
                                                          Handler handler);

  virtual ~HttpServer() = default;
  virtual int port() const = 0;
};

}  // namespace spoke::azure_sim
