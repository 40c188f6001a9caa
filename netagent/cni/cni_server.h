// The plugin's socket: one connection, one request with the pod's namespace as a descriptor, one
// answer, which may come late. Runs on the agent's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "lib/cni_api/wire.h"
#include "lib/os/event_loop.h"
#include "lib/os/unique_fd.h"
#include "lib/telemetry/log.h"

namespace spoke::netagent {

// A channel that carries answers; a client is known by its number, which is never used again.
class ResponseChannel {
 public:
  virtual ~ResponseChannel() = default;

  // Sends the answer and closes. Errors: kUnavailable (the client has gone).
  virtual absl::Status Send(uint64_t client, const cni::Response& response) = 0;
  // Closes without an answer. Passes over a client that has gone.
  virtual void Close(uint64_t client) = 0;
  // Calls `gone`, once, if the client goes before it is answered.
  virtual void OnHangUp(uint64_t client, std::function<void()> gone) = 0;
};

// Answers exactly once; when it is destroyed before, the connection is closed, and the client asks
// again or asks the next agent. Move-only; not thread-safe; the channel outlives it.
class Responder {
 public:
  Responder(ResponseChannel& channel, uint64_t client) : channel_(&channel), client_(client) {}
  Responder(Responder&& other) noexcept
      : channel_(std::exchange(other.channel_, nullptr)), client_(other.client_) {}
  Responder& operator=(Responder&& other) noexcept {
    if (this != &other) {
      Drop();
      channel_ = std::exchange(other.channel_, nullptr);
      client_ = other.client_;
    }
    return *this;
  }
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;
  ~Responder() { Drop(); }

  // Answers the client. Errors: kUnavailable (it has gone); kFailedPrecondition (it was answered).
  absl::Status Answer(const cni::Response& response) {
    ResponseChannel* channel = std::exchange(channel_, nullptr);
    if (channel == nullptr) return absl::FailedPreconditionError("answered before");
    return channel->Send(client_, response);
  }

  // Calls `gone`, on the loop's thread, when the client goes before it is answered. It may destroy
  // this.
  void OnHangUp(std::function<void()> gone) {
    if (channel_ != nullptr) channel_->OnHangUp(client_, std::move(gone));
  }

 private:
  void Drop() {
    if (channel_ != nullptr) std::exchange(channel_, nullptr)->Close(client_);
  }

  ResponseChannel* channel_;  // Null: answered, or moved from.
  uint64_t client_;
};

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
  // agent left behind: at no moment is there no file. Takes cni::StoppedMark away. Errors:
  // kNotFound (no such directory); kInvalidArgument (the path is longer than 103 bytes); those of
  // socket(2), bind(2), listen(2) and rename(2).
  absl::Status Listen(const std::string& path);

  // Leaves cni::StoppedMark, stops listening, carries out what has been asked already, and closes
  // what waits: those ask the next agent.
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
  std::string path_;  // The path it listens at; empty: it does not.
  std::map<uint64_t, Client> clients_;
  uint64_t last_client_ = 0;
  // One buffer for all requests, since one is read at a time; an unwritten part costs no memory.
  const std::unique_ptr<char[]> buffer_;
};

}  // namespace spoke::netagent
