// Keeps this node's certificate: gets it in return for the token of the agent's pod, or for the one
// that it has, and renews it in time; and keeps the roots that the node trusts. What connects to
// the server waits for the first certificate; nothing else does.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/base/backoff.h"
#include "lib/os/clock.h"
#include "lib/rpc/credentials.h"
#include "lib/telemetry/log.h"
#include "lib/tls/certificate.h"
#include "netagent/enroll/enroll_call.h"

namespace spoke::netagent {

// Thread-safe. One thread of its own, which may wait for files and for the server.
//
// The key is made once a boot and stays on the node; a renewal replaces the certificate alone, so
// that whoever reads both files finds what fits together. The certificate is also asked for anew
// when it is of another authority than `files.ca`, or of another node. `files.ca` is written here:
// the roots of `ca_file` and those that the server has handed out (trusted_roots.h), which are kept
// beside it in handed.pem.
class Enroller {
 public:
  struct Settings {
    rpc::TlsFiles files;     // All in one directory, which is made when it is missing.
    std::string ca_file;     // Read at each look: it may come later, and be replaced.
    std::string token_file;  // Read for each attempt: the kubelet renews it. It may be missing once
                             // there is a certificate.
    std::string node_name;
    std::string vm_id;
    base::Backoff backoff = {};              // The pauses after attempts that failed.
    absl::Duration look = absl::Minutes(1);  // The pause between looks at a good certificate.
  };
  struct Edges {
    // Gives a certificate: EnrollCall::Ask(), or a test's own.
    std::function<absl::StatusOr<EnrollAnswer>(const EnrollAsk& ask)> ask;
    // Makes an `ask` that is under way end soon; called when the enroller goes.
    std::function<void()> cancel;
    // Called on the enroller's thread, once, when there is a certificate to connect with.
    std::function<absl::Status()> on_ready;
    const os::Clock& clock;
    telemetry::Log& log;
  };

  Enroller(Settings settings, Edges edges);
  Enroller(const Enroller&) = delete;
  Enroller& operator=(const Enroller&) = delete;
  // Cancels the attempt that is under way, and waits for the thread.
  ~Enroller();

  void Start();

  // Makes one attempt unless the certificate is good until its renewal; for tests, before Start().
  // True: there is a new one. Errors: why there is none; the files are as they were, except that a
  // missing key is made, and roots that have changed are taken up.
  absl::StatusOr<bool> KeepCertificate();

  // Why the latest attempt failed; OK: it did not, or none was due. It says so even while an older
  // certificate still serves.
  absl::Status standing() const;

 private:
  void Run();
  absl::StatusOr<tls::CertificateFacts> ReadPresent() const;
  bool CanConnect() const;
  absl::StatusOr<std::string> KeyOfNode() const;
  absl::Status CheckIssued(const std::string& certificate, const std::string& key,
                           const std::string& roots) const;
  absl::Status KeepRoots() const;
  absl::StatusOr<EnrollAsk> AskFor(const std::string& key) const;
  absl::Status Take(const EnrollAnswer& answer, const std::string& key) const;
  std::string handed_file() const;
  // Waits; true: go on.
  bool Wait(absl::Duration pause);
  void Tell(const absl::Status& status);

  const Settings settings_;
  const Edges edges_;
  double jitter_ = 0;   // The renewal's, as this agent drew it.
  bool ready_ = false;  // The thread's: on_ready() has succeeded.
  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status standing_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace spoke::netagent
