// Calls to the server's enroll port.
#pragma once

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace grpc {
class ClientContext;
}

namespace spoke::netagent {

// The server to ask, and the authority to trust.
struct EnrollServer {
  std::string server;       // host:port
  std::string server_name;  // The name its certificate must bear; empty: that of `server`.
  std::string ca_file;
};

struct EnrollAsk {
  std::string csr;  // PEM
  std::string node_name;
  std::string vm_id;
  std::string token;  // Empty: the certificate has to do.
  // The present certificate in PEM, and the proof that its key is here (lib/tls/renewal.h). Empty:
  // there is none, or none that could be sent.
  std::string certificate = "";
  std::string proof = "";
};

// What the server gives, in PEM.
struct EnrollAnswer {
  std::string certificate;  // The certificate, and what follows it.
  std::string roots;        // Whose signatures count from now on; empty: it does not say.
};

// Thread-safe; one Ask() at a time.
class EnrollCall {
 public:
  explicit EnrollCall(EnrollServer server) : server_(std::move(server)) {}
  EnrollCall(const EnrollCall&) = delete;
  EnrollCall& operator=(const EnrollCall&) = delete;

  // Gives the certificate. Blocks for `patience` at most. Errors:
  // those of proto/spoke/v1/enroll.proto; kNotFound and so on (the file with the authority cannot
  // be read); kUnavailable, kDeadlineExceeded (no server answers, or it is not who it should be);
  // kCancelled.
  absl::StatusOr<EnrollAnswer> Ask(const EnrollAsk& ask,
                                   absl::Duration patience = absl::Seconds(30));

  // Ends the Ask() that is under way, and all later ones.
  void Cancel();

 private:
  const EnrollServer server_;
  absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace spoke::netagent
