// A gRPC server that takes connections itself, so that it can bound what gRPC cannot: how many one
// peer has and how often it opens them (PeerGate), and how many bytes each sends. What gRPC can
// bound, it is told to: streams, headers, memory, handshakes, and connections that nobody uses.
//
// Each connection is watched beside gRPC, by its only descriptor and without a copy of what passes:
// when it has sent too much, or too much that does not become messages, it is reset at once. Its
// peer then has to stay away for a time. Of a connection that gRPC has closed before its last bytes
// were looked at, these are not counted; the peer has spent one of its new connections on them.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/os/unique_fd.h"
#include "lib/rpc/message_counter.h"
#include "lib/rpc/peer_gate.h"
#include "lib/rpc/refusal_counter.h"
#include "lib/telemetry/log.h"

namespace spoke::rpc {

// The server. Thread-safe.
class BoundedServer {
 public:
  struct Listener {
    std::string name;  // The name for the log: "agents".
    // The address: host:port (port 0: any free one), or unix:/an/absolute/path.
    std::string address;
    std::shared_ptr<grpc::ServerCredentials> credentials;
    ListenerLimits limits;
    // Of a socket of files: whether only root and the user of this process are let in, whatever the
    // mode of the socket says.
    bool own_users_only = false;
  };
  // Serves what `builder` has registered, which reads protobuf messages, gets `limits`, and no port
  // and no interceptors of its own. A socket that
  // a program has left behind is replaced, and has the mode that the process's umask leaves.
  // Borrows the log: it hears of refusals (connections_refused), at most once a minute. Errors:
  // kInvalidArgument (no such address); kUnavailable (in use, not of this machine, or gRPC would
  // not start).
  static absl::StatusOr<std::unique_ptr<BoundedServer>> Start(grpc::ServerBuilder& builder,
                                                              Listener listener,
                                                              telemetry::Log& log);
  // Does what Shutdown() does with no time to spare, if nobody has called that.
  ~BoundedServer();
  BoundedServer(const BoundedServer&) = delete;
  BoundedServer& operator=(const BoundedServer&) = delete;

  // Takes no more connections, and ends calls at the deadline. Call it once.
  void Shutdown(std::chrono::system_clock::time_point deadline);

  grpc::Server& server() { return *server_; }
  int port() const { return port_; }  // Returns the port; 0: a socket.
  std::shared_ptr<const RefusalCounter> refusals() const { return refusals_; }

 private:
  class Handover;
  class Watch;
  BoundedServer(telemetry::Log& log, Listener listener);
  absl::Status Open();
  void Stop();

  telemetry::Log& log_;
  const Listener listener_;
  std::vector<os::UniqueFd> sockets_;  // The sockets that listen.
  std::string path_;  // The path of the socket, which is removed at the end; else empty.
  int port_ = 0;
  os::UniqueFd wake_;  // An eventfd that says that the end has come.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<Handover> handover_;
  std::unique_ptr<grpc::Server> server_;
  const std::shared_ptr<RefusalCounter> refusals_ = std::make_shared<RefusalCounter>();
  const std::shared_ptr<MessageCounter> messages_ = std::make_shared<MessageCounter>();
  std::thread thread_;
};

}  // namespace spoke::rpc
