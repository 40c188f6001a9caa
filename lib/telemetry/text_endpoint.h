// GET /metrics over plain HTTP/1.1, one request a connection, and an end that waits for nobody: for
// a program that has to be gone at once when it is told to go.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/os/unique_fd.h"

namespace spoke::telemetry {

// So long somebody may take to ask, and then to read the answer. Nobody else waits for that; when
// too many do it, those who have asked for nothing are cut off first, the oldest before the others.
inline constexpr absl::Duration kRequestPatience = absl::Seconds(1);

class TextEndpoint {
 public:
  // Gives the text of a scrape, on the endpoint's own thread.
  using Render = std::function<std::string()>;

  // `address` is "HOST:PORT" with a numeric host ("127.0.0.1:9465", "[::1]:9465"; port 0: any free
  // one). There is neither TLS nor a password. Errors: kInvalidArgument (no such address),
  // kUnavailable (cannot listen there: in use, or not an address of this machine).
  static absl::StatusOr<std::unique_ptr<TextEndpoint>> Open(const std::string& address,
                                                            Render render);
  // Waits for a scrape that is under way, not for its reader.
  ~TextEndpoint();

  int port() const { return port_; }

 private:
  TextEndpoint(os::UniqueFd listener, os::UniqueFd wake, int port, Render render);
  class Connection;
  void Run();
  void Accept(std::list<Connection>& connections);

  const os::UniqueFd listener_;
  const os::UniqueFd wake_;  // An eventfd: the end has come.
  const int port_;
  const Render render_;
  std::thread thread_;
};

}  // namespace spoke::telemetry
