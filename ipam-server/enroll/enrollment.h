// Enrollment as the server runs it: owns the authority, publishes it and lets it change its root in
// time, serves agents that ask for certificates, and keeps the server's own good.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/authority/authority_files.h"
#include "ipam-server/authority/cluster_authority.h"
#include "ipam-server/enroll/enroll_service.h"
#include "ipam-server/enroll/kubernetes_token_reviewer.h"
#include "ipam-server/enroll/pausing_reviewer.h"
#include "ipam-server/revocation/revocations.h"
#include "lib/kubernetes/api.h"
#include "lib/os/clock.h"
#include "lib/rpc/bounded_server.h"
#include "lib/rpc/credentials.h"
#include "lib/rpc/refusal_counter.h"
#include "lib/telemetry/log.h"

namespace spoke::ipam {

struct EnrollmentSettings {
  std::string address;  // host:port of the port for agents without a certificate.
  rpc::TlsFiles files;  // What the server's ports read; in `directory`.
  std::string directory;
  std::vector<std::string> server_names;
  EnrollRules rules;  // If it has no namespace, that of `access` counts.
  absl::Duration certificate_life = absl::Hours(24);
  OperatorRules operators = {};
  // Whether operators have a port: only then is there a certificate of theirs to be published.
  bool serves_operators = false;
  kubernetes::ClusterAccess access;
  // How often the own certificates and the published objects are looked at.
  absl::Duration look = absl::Minutes(1);
  // How often files are read again by connections; whole seconds.
  absl::Duration reload = absl::Minutes(1);
};

// Thread-safe. One thread of its own looks after files and objects.
class Enrollment {
 public:
  // All borrowed.
  struct Edges {
    const Revocations& revocations;
    const os::Clock& clock;
    telemetry::Log& log;
    std::optional<ClusterAuthority::Place> place =
        {};                                       // nullopt: the authority is in the directory.
    std::function<absl::Duration()> margin = {};  // As EnrollService::Edges has it.
  };
  // Makes the authority where there is none, and the server's certificate, so that its files can be
  // read from then on. Errors: as ClusterAuthority::OpenDirectory() or
  // OpenStored(), and KeepCertificate(); kFailedPrecondition (no namespace is known).
  static absl::StatusOr<std::unique_ptr<Enrollment>> Open(EnrollmentSettings settings, Edges edges);
  Enrollment(const Enrollment&) = delete;
  Enrollment& operator=(const Enrollment&) = delete;
  // Ends what is being served, and waits for the thread.
  ~Enrollment();

  // Listens, and begins to publish: until the cluster takes the objects, with a warning, again and
  // again. Call once. Errors: as rpc::BoundedServer::Start() and rpc::RenewedServerCredentials().
  absl::Status Serve();
  ClusterAuthority& authority() { return *authority_; }
  // The port where it listens, and whom it has refused, once it serves.
  int port() const { return server_->port(); }
  std::shared_ptr<const rpc::RefusalCounter> refusals() const { return server_->refusals(); }

 private:
  Enrollment(EnrollmentSettings settings, std::unique_ptr<ClusterAuthority> authority,
             const Edges& edges);
  absl::Status TurnRoots();
  absl::Status KeepCertificates();
  absl::Status PublishAll();
  void LookAfter();

  const EnrollmentSettings settings_;
  const std::unique_ptr<ClusterAuthority> authority_;
  const os::Clock& clock_;
  telemetry::Log& log_;
  const kubernetes::Api api_;
  KubernetesTokenReviewer kubernetes_;
  const os::MonotonicClock uptime_;
  PausingReviewer reviewer_;
  EnrollService service_;
  std::unique_ptr<rpc::BoundedServer> server_;
  // With the authority in the store there may be several servers, which share a token for metrics.
  const bool is_stored_;
  bool told_unused_ = false;  // Of the thread that looks after objects.
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace spoke::ipam
