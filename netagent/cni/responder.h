// The way back to one client that waits for its answer.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "lib/cni_api/wire.h"

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

}  // namespace spoke::netagent
