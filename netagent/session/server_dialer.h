// Opens connections to servers, several side by side: each with TLS and all, up to the point where
// a stream can begin. What is dialled when is decided elsewhere (session_machine.h).
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "lib/rpc/credentials.h"

namespace grpc {
class Channel;
}

namespace spoke::netagent {

// Thread-safe. Each dial has a thread for as long as it lasts, some milliseconds as a rule.
class ServerDialer {
 public:
  struct Settings {
    // Each is host:port, where a name may have several addresses, which are tried one after the
    // other; or unix:/path.
    std::vector<std::string> servers;
    std::string server_name;  // The name in their certificates; empty: that of each.
    rpc::TlsFiles tls;        // Read for each dial, so that renewed certificates are taken up.
  };
  // Takes what came of the dial of server number `server`. Errors: those of the TLS files;
  // kUnavailable (nobody listens there, no TLS with it, its name is not known, or no answer within
  // 20 s; the message says it). Called on a thread of the dialer's.
  using Done =
      std::function<void(size_t server, absl::StatusOr<std::shared_ptr<grpc::Channel>> connection)>;

  ServerDialer(Settings settings, Done done);
  ServerDialer(const ServerDialer&) = delete;
  ServerDialer& operator=(const ServerDialer&) = delete;
  // Stops, and waits for the threads, some 0.1 s.
  ~ServerDialer();

  // Dials a server. Returns at once.
  void Dial(size_t server);
  // Gives up the dials that are under way: of these, `done` hears no more, except for one whose
  // answer is there in this moment. Returns at once.
  void Stop();

 private:
  struct Job {
    std::atomic<bool> stopped = false;
    std::atomic<bool> over = false;  // The thread does nothing more.
    std::thread thread;
  };
  void Run(size_t server, Job& job);
  absl::Status Explained(const absl::Status& failure) const;
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Open(size_t server, const Job& job) const;

  const Settings settings_;
  const Done done_;
  absl::Mutex mutex_;
  std::list<Job> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::netagent
