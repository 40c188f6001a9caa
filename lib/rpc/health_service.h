// Says whether this program is ready and alive to whoever asks by gRPC's health protocol
// (proto/grpc/health/v1/health.proto): kubelets, load balancers, `--probe`.
//
// Three services: "readiness" (does it do its work; "" is the same), and "liveness" (does it turn
// at all; else a restart would help). Check answers NOT_FOUND for any other, Watch SERVICE_UNKNOWN.
// While one is NOT_SERVING, Check's trailing metadata `spoke-reason-bin` has a line for each reason
// (JoinReasons() in lib/rpc/health_text.h). There is no TLS and no password: reasons name hosts and
// files, so that a port belongs on an address that only the node reaches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spoke::rpc {

inline constexpr const char* kReasonKey = "spoke-reason-bin";
inline constexpr const char* kReadiness = "readiness";
inline constexpr const char* kLiveness = "liveness";

// The reasons why not; none: it is.
using Reasons = std::vector<std::string>;

// The service. Thread-safe.
class HealthService {
 public:
  struct Settings {
    std::string address;  // The address: unix:/an/absolute/path or host:port; port 0: any free one.
    Reasons not_ready;    // The reasons that hold until the first SetReadiness().
    // Returns the reasons; called at each Check, and once a second for each Watch of "liveness", on
    // gRPC's threads: it may not wait for what it watches.
    std::function<Reasons()> liveness;
  };
  // The most Watches at once; more are refused.
  static constexpr size_t kMaxWatches = 32;

  // Serves from now on, on threads of gRPC's that take no signals. A socket has mode 0600; one that
  // a program has left behind is replaced. Call it where nobody else creates files at the same
  // time, since the mode is set by the process's umask. Errors: kInvalidArgument (no such
  // address); kAlreadyExists (another program listens at the socket); kNotFound,
  // kPermissionDenied (its directory); kUnavailable (the port is in use, or not of this
  // machine).
  static absl::StatusOr<std::unique_ptr<HealthService>> Listen(Settings settings);
  // Ends what is being watched, and waits for no client.
  ~HealthService();
  HealthService(const HealthService&) = delete;
  HealthService& operator=(const HealthService&) = delete;

  // Sets the reasons. Those who watch hear of it at once. Saying the same again does nothing.
  void SetReadiness(Reasons not_ready);

  int port() const;  // Returns the port; 0: a socket.

 private:
  class Server;
  explicit HealthService(std::unique_ptr<Server> server);

  const std::unique_ptr<Server> server_;
};

}  // namespace spoke::rpc
