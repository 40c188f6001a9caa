// Enrollment as a server runs it, on a port of this machine: the real authority and the real port,
// and a small API server in the place of the cluster's, which knows one agent. Tests only.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ipam-server/enroll/enrollment.h"
#include "ipam-server/enroll/testing/fake_api_server.h"
#include "ipam-server/revocation/revocations.h"
#include "lib/os/clock.h"
#include "lib/os/file.h"
#include "lib/rpc/credentials.h"
#include "lib/telemetry/log.h"
#include "tests/support/temp_dir.h"

namespace spoke::testing_support {

// Thread-safe, as what it holds is.
class ServedEnrollment {
 public:
  struct Settings {
    std::vector<std::string> server_names = {"spoke-ipam-server", "127.0.0.1"};
    ipam::OperatorRules operators = {};  // With rules, operators have a port.
    absl::Duration look = absl::Minutes(1);
  };
  // All borrowed.
  struct Edges {
    const ipam::Revocations& revocations;
    const os::Clock& clock;
    telemetry::Log& log;
  };

  // Serves at once. The token "good" is that of the agent's pod on node-1.
  ServedEnrollment(const Settings& settings, const Edges& edges) {
    cluster_.cluster().AddToken("good",
                                {.authenticated = true,
                                 .user = "system:serviceaccount:spoke-system:spoke-netagent",
                                 .audiences = {"spoke-ipam-server"},
                                 .pod_name = "agent-1",
                                 .pod_uid = "uid-1"});
    cluster_.cluster().AddPod({.k8s_namespace = "spoke-system",
                               .name = "agent-1",
                               .uid = "uid-1",
                               .node_name = "node-1",
                               .service_account = "spoke-netagent"});
    cluster_.cluster().AddNode({.name = "node-1",
                                .provider_id = "azure:///subscriptions/s/machines/7",
                                .labels = {{"topology.kubernetes.io/zone", "eastus-1"}}});
    auto opened = ipam::Enrollment::Open(
        {.address = "127.0.0.1:0",
         .files = files(),
         .directory = dir_.File("ca"),
         .server_names = settings.server_names,
         .rules = {.audience = "spoke-ipam-server",
                   .k8s_namespace = "",
                   .service_account = "spoke-netagent"},
         .operators = settings.operators,
         .serves_operators = !settings.operators.empty(),
         .access = cluster_.access(),
         .look = settings.look,
         .reload = absl::Seconds(1)},
        {.revocations = edges.revocations, .clock = edges.clock, .log = edges.log});
    EXPECT_TRUE(opened.ok()) << opened.status();
    enrollment_ = *std::move(opened);
    const absl::Status serving = enrollment_->Serve();
    EXPECT_TRUE(serving.ok()) << serving;
  }

  ipam::FakeApiServer& cluster() { return cluster_; }
  int port() const { return enrollment_->port(); }
  rpc::RefusalCounts refusals() const { return enrollment_->refusals()->counts(); }

  // What the server shows and whom it trusts, in files that it keeps good.
  rpc::TlsFiles files() const {
    return {.ca = File("ca.pem"), .certificate = File("server.pem"), .key = File("server.key")};
  }
  // For another port of the server, which asks for certificates of this authority.
  absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Credentials() const {
    return rpc::RenewedServerCredentials(files(), rpc::ClientCertificate::kRequired,
                                         absl::Seconds(1));
  }
  std::string AuthorityPem() const { return os::ReadFile(File("ca.pem")).value_or(""); }
  std::string AuthorityKey() const { return os::ReadFile(File("ca.key")).value_or(""); }
  // The path of a file in the authority's directory.
  std::string File(const std::string& name) const { return dir_.File("ca/" + name); }

 private:
  const TempDir dir_;
  ipam::FakeApiServer cluster_;
  std::unique_ptr<ipam::Enrollment> enrollment_;
};

}  // namespace spoke::testing_support
