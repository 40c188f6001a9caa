// An agent that a test speaks for, word by word, over TLS.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/tls/authority.h"
#include "proto/spoke/v1/node.grpc.pb.h"

namespace spoke::hostile {

// A key, and a certificate that `authority` has signed.
struct Credentials {
  std::string key;
  std::string certificate;
};
Credentials Enrolled(const tls::Authority& authority, const tls::Subject& subject);

// One stream. Not thread-safe. It ends with the object.
class HostileNode {
 public:
  // Connects to `target`, the server, whose certificate must bear `server_name`.
  HostileNode(const std::string& target, const std::string& server_name, const std::string& ca,
              const Credentials& credentials);
  HostileNode(const HostileNode&) = delete;
  HostileNode& operator=(const HostileNode&) = delete;
  ~HostileNode();

  // Returns false when the stream is over.
  bool Say(const v1::AgentMessage& message);
  // Returns the next message that `wanted` is true for; the others are passed over, but a
  // DesiredState is acknowledged. nullopt: the stream ended.
  template <typename Wanted>
  std::optional<v1::ServerMessage> Hear(const Wanted& wanted) {
    v1::ServerMessage message;
    while (stream_->Read(&message)) {
      Acknowledge(message);
      if (wanted(message)) return message;
    }
    return std::nullopt;
  }
  // Says hello, and waits until the server has listed so many addresses. Returns their bytes.
  // Errors: as the server ends the stream.
  absl::StatusOr<std::vector<std::string>> Greet(const v1::Hello& hello, size_t addresses = 0);
  // Returns how the stream ends, when no welcome is expected.
  absl::Status End();

 private:
  void Acknowledge(const v1::ServerMessage& message);

  std::unique_ptr<v1::NodeService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>> stream_;
  bool ended_ = false;
};

}  // namespace spoke::hostile
