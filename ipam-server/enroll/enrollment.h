// Enrollment as the server runs it: owns the authority, publishes it, serves agents that ask for
// certificates, and keeps the server's own good.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/enroll/authority_files.h"
#include "ipam-server/enroll/enroll_service.h"
#include "ipam-server/enroll/kubernetes_api.h"
#include "ipam-server/enroll/kubernetes_token_reviewer.h"
#include "lib/os/clock.h"
#include "lib/rpc/bounded_server.h"
#include "lib/rpc/credentials.h"
#include "lib/rpc/refusal_counter.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

struct EnrollmentSettings {
  std::string address;  // host:port of the port for agents without a certificate.
  std::string directory;
  std::vector<std::string> server_names;
  EnrollRules rules;  // If it has no namespace, that of `access` counts.
  absl::Duration certificate_life = absl::Hours(24 * 30);
  OperatorRules operators = {};
  // Whether operators have a port: only then is there a certificate of theirs to be published.
  bool serves_operators = false;
  ClusterAccess access;
  // How often the own certificates and the published objects are looked at.
  absl::Duration look = absl::Minutes(1);
  // How often files are read again by connections; whole seconds.
  absl::Duration reload = absl::Minutes(1);
};

// Thread-safe. One thread of its own looks after files and objects.
class Enrollment {
 public:
  // Makes the authority where there is none, and the server's certificate, so that `files` can be
  // read from then on. Borrows clock and log. Errors: as OpenAuthority() and KeepCertificate();
  // kFailedPrecondition (no namespace is known).
  static absl::StatusOr<std::unique_ptr<Enrollment>> Open(EnrollmentSettings settings,
                                                          const os::Clock& clock,
                                                          telemetry::Log& log);
  Enrollment(const Enrollment&) = delete;
  Enrollment& operator=(const Enrollment&) = delete;
  // Ends what is being served, and waits for the thread.
  ~Enrollment();

  // Listens, and begins to publish: until the cluster takes the objects, with a warning, again and
  // again. Call once. Errors: as rpc::BoundedServer::Start() and rpc::RenewedServerCredentials().
  absl::Status Serve();
  // The port where it listens, and whom it has refused, once it serves.
  int port() const { return server_->port(); }
  std::shared_ptr<const rpc::RefusalCounter> refusals() const { return server_->refusals(); }

 private:
  Enrollment(EnrollmentSettings settings, tls::Authority authority, const os::Clock& clock,
             telemetry::Log& log);
  absl::Status KeepCertificates();
  absl::Status PublishAll();
  void LookAfter();

  const EnrollmentSettings settings_;
  const tls::Authority authority_;
  const os::Clock& clock_;
  telemetry::Log& log_;
  const KubernetesApi api_;
  KubernetesTokenReviewer reviewer_;
  EnrollService service_;
  std::unique_ptr<rpc::BoundedServer> server_;
  bool told_unused_ = false;  // Of the thread that looks after objects.
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace spoke::ipam
