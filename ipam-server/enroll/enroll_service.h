// Answers agents that ask for their certificate: asks the cluster who they are, or looks at the
// certificate that they have, lets the core decide, and signs.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/authority/cluster_authority.h"
#include "ipam-server/enroll/enroll_gate.h"
#include "ipam-server/enroll/enrollment_decision.h"
#include "ipam-server/enroll/operator_login.h"
#include "ipam-server/enroll/token_reviewer.h"
#include "ipam-server/revocation/revocations.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "proto/spoke/v1/enroll.grpc.pb.h"

namespace spoke::ipam {

// Thread-safe: gRPC's threads call it, each for one request.
class EnrollService final : public v1::EnrollService::Service {
 public:
  struct Settings {
    EnrollRules rules;
    absl::Duration certificate_life = absl::Hours(24);
    EnrollGate::Settings gate = {};
    OperatorRules operators = {};  // Naming nobody: operators get no certificates.
  };
  // The edges, all borrowed.
  struct Edges {
    TokenReviewer& reviewer;
    const Revocations& revocations;
    const os::Clock& clock;
    telemetry::Log& log;
    // For how long no other server can lead, from now on: one that does not lead may have an old
    // list of what was revoked. Empty: this is the only server.
    std::function<absl::Duration()> margin = {};
  };

  // Borrows `authority`.
  EnrollService(Settings settings, const ClusterAuthority& authority, Edges edges)
      : settings_(std::move(settings)),
        authority_(authority),
        edges_(std::move(edges)),
        gate_(settings_.gate) {}

  // Errors: as the proto file has them.
  grpc::Status Enroll(grpc::ServerContext* context, const v1::EnrollRequest* request,
                      v1::EnrollReply* reply) override;
  grpc::Status IssueOperatorCertificate(grpc::ServerContext* context,
                                        const v1::OperatorCertificateRequest* request,
                                        v1::OperatorCertificateReply* reply) override;

 private:
  // Lets one in, who must Leave(). Errors: kResourceExhausted; kUnavailable (another server may
  // lead).
  absl::Status Enter(const std::string& peer);
  void Leave(const std::string& peer);
  absl::Status Answer(const v1::EnrollRequest& request, v1::EnrollReply& reply);
  absl::Status Answer(const v1::OperatorCertificateRequest& request,
                      v1::OperatorCertificateReply& reply);
  // Who asks, if it may.
  struct Asker {
    std::string pod;                // Empty: its certificate has vouched for it.
    std::string machine;            // As the cloud calls it; empty: unknown.
    std::string serial;             // Of the certificate that is renewed.
    std::vector<std::string> uris;  // What the new certificate says of the node.
  };
  absl::StatusOr<Asker> Authorize(const v1::EnrollRequest& request);
  absl::StatusOr<Asker> AuthorizeByToken(const v1::EnrollRequest& request);
  absl::StatusOr<Asker> AuthorizeByCertificate(const v1::EnrollRequest& request);

  const Settings settings_;
  const ClusterAuthority& authority_;
  const Edges edges_;
  absl::Mutex mutex_;
  EnrollGate gate_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ipam
