// The plugin's socket: one connection, one request with the pod's namespace as a descriptor, one
// answer, which may come late. Runs on the agent's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/os/event_loop.h"
#include "lib/os/unique_fd.h"
#include "lib/telemetry/log.h"
#include "netagent/cni/responder.h"

namespace spoke::netagent {

// Not thread-safe; belongs to the loop's thread. Outlives its responders.
class CniServer final : public ResponseChannel {
 public:
  static constexpr size_t kMaxRequestBytes = 1 << 20;  // A GC names every attachment of the node.

  // Handles one request, which is borrowed; `pod_netns` is invalid when the plugin sent none.
  using Handler =
      std::function<void(const cni::Request&, os::UniqueFd pod_netns, Responder responder)>;

  // Borrows `loop` and `log`.
  CniServer(os::EventLoop& loop, Handler handler, telemetry::Log& log);
  CniServer(const CniServer&) = delete;
  CniServer& operator=(const CniServer&) = delete;
  // Closes everything. The socket's file stays: a plugin that is refused there knows that an agent
  // belongs here, and waits for the next one.
  ~CniServer() override;

  // Creates the socket, for root only, under another name, and puts it in the place of what a dead
  // agent left behind: at no moment is there no file. Errors: kNotFound (no such directory);
  // kInvalidArgument (the path is longer than 103 bytes); those of socket(2), bind(2), listen(2)
  // and rename(2).
  absl::Status Listen(const std::string& path);

  // Stops listening, carries out what has been asked already, and closes what waits: those ask the
  // next agent.
  void Stop();

  absl::Status Send(uint64_t client, const cni::Response& response) override;
  void Close(uint64_t client) override;
  void OnHangUp(uint64_t client, std::function<void()> gone) override;

 private:
  struct Client {
    os::UniqueFd fd;
    bool watched = false;  // Whether the loop watches it.
    bool asked = false;
    std::function<void()> gone;
  };
  void Accept();
  void Serve(uint64_t id);
  void HangUp(uint64_t id);

  os::EventLoop& loop_;
  const Handler handler_;
  telemetry::Log& log_;
  os::UniqueFd listener_;
  std::map<uint64_t, Client> clients_;
  uint64_t last_client_ = 0;
  // One buffer for all requests, since one is read at a time; an unwritten part costs no memory.
  const std::unique_ptr<char[]> buffer_;
};

}  // namespace spoke::netagent
