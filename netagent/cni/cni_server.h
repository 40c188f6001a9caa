// The plugin's socket: one connection, one request with the pod's namespace as a descriptor, one
// answer. Runs on the agent's loop.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/os/event_loop.h"
#include "lib/os/unique_fd.h"
#include "lib/telemetry/log.h"

namespace spoke::v1 {
class CniRequest;
class CniResponse;
}  // namespace spoke::v1

namespace spoke::netagent {

// Not thread-safe; belongs to the loop's thread.
class CniServer {
 public:
  // `pod_netns` is invalid when the plugin sent none.
  using Handler = std::function<v1::CniResponse(const v1::CniRequest&, os::UniqueFd pod_netns)>;

  // Borrows `loop` and `log`.
  CniServer(os::EventLoop& loop, Handler handler, telemetry::Log& log);
  CniServer(const CniServer&) = delete;
  CniServer& operator=(const CniServer&) = delete;
  // Closes everything and removes the socket file.
  ~CniServer();

  // Creates the socket, for root only, in place of what a dead agent left behind.
  // Errors: kNotFound (no such directory); kInvalidArgument (the path is too long for a unix
  // socket: 107 bytes); as socket(2), bind(2) and listen(2).
  absl::Status Listen(const std::string& path);

 private:
  void Accept();
  void Serve(int client);
  void Drop(int client);

  os::EventLoop& loop_;
  const Handler handler_;
  telemetry::Log& log_;
  std::string path_;
  os::UniqueFd listener_;
  std::map<int, os::UniqueFd> clients_;
};

}  // namespace spoke::netagent
