// Calls to the server's enroll port.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace grpc {
class ClientContext;
}

namespace spoke::netagent {

// The servers to ask, one of which gives certificates, and the authority to trust.
struct EnrollServers {
  std::vector<std::string> servers;  // At least one, each host:port.
  std::string server_name;           // The name their certificates must bear; empty: that of each.
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
  explicit EnrollCall(EnrollServers servers);
  EnrollCall(const EnrollCall&) = delete;
  EnrollCall& operator=(const EnrollCall&) = delete;

  // Gives the certificate, and what follows it, in PEM. Servers are asked one after the other, the
  // one that answered last time first (at the beginning any), until one answers. Blocks for
  // `patience` at most, of which each server has its part. Errors: those of
  // proto/spoke/v1/enroll.proto; kNotFound and so on (the file with the authority cannot be read);
  // kUnavailable, kDeadlineExceeded (no server answers, or it is not who it should be; the message
  // says it of each); kCancelled.
  absl::StatusOr<EnrollAnswer> Ask(const EnrollAsk& ask,
                                   absl::Duration patience = absl::Seconds(30));

  // Ends the Ask() that is under way, and all later ones.
  void Cancel();

 private:
  absl::StatusOr<EnrollAnswer> AskOne(const std::string& server, const EnrollAsk& ask,
                                      absl::Duration patience);

  const EnrollServers servers_;
  size_t first_ = 0;  // The server that is asked first.
  absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace spoke::netagent
