// Tests that an agent without a certificate gets its own from the server, and nobody else does: the
// real authority, the real port, the real calls. Only the cluster's API server is a small one of
// ours.
#include <grpcpp/create_channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/store/testing/memory_store.h"
#include "lib/rpc/credentials.h"
#include "proto/spoke/v1/node.grpc.pb.h"
#include "tests/support/enrolling_agent.h"
#include "tests/support/recording_log.h"
#include "tests/support/served_enrollment.h"
#include "tests/support/temp_dir.h"

namespace spoke {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr const char* kConfigMap = "/api/v1/namespaces/spoke-system/configmaps/spoke-ca";

// The agents' port: takes whoever bears the name that it gives.
class NodePort final : public v1::NodeService::Service {
 public:
  grpc::Status Connect(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ServerMessage, v1::AgentMessage>* stream) override {
    v1::AgentMessage message;
    if (!stream->Read(&message)) return grpc::Status::OK;
    const rpc::PeerCertificate peer = rpc::PeerCertificateOf(*context->auth_context());
    const std::vector<std::string>& names = peer.names;
    {
      absl::MutexLock lock(&mutex_);
      uris_ = peer.uris;
    }
    if (std::find(names.begin(), names.end(), message.hello().node_name()) == names.end()) {
      return {grpc::StatusCode::PERMISSION_DENIED, "another name"};
    }
    v1::ServerMessage welcome;
    welcome.mutable_welcome()->set_session_epoch(1);
    stream->Write(welcome);
    return grpc::Status::OK;
  }

  // Returns the URIs in the certificate of the peer that spoke last.
  std::vector<std::string> uris() {
    absl::MutexLock lock(&mutex_);
    return uris_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> uris_ ABSL_GUARDED_BY(mutex_);
};

class EnrollTest : public testing::Test {
 protected:
  EnrollTest() {
    enrollment_.cluster().cluster().AddToken(
        "expired", {.error = "[invalid bearer token, token has expired]"});
    ServeNodes();
  }
  ~EnrollTest() override { nodes_->Shutdown(); }

  static std::string Read(const std::string& path) { return os::ReadFile(path).value_or(""); }
  static void Put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(os::WriteFileAtomic(path, text, os::Durability::kVisible).ok());
  }

  void ServeNodes() {
    const auto credentials = enrollment_.Credentials();
    ASSERT_TRUE(credentials.ok()) << credentials.status();
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", *credentials, &port_);
    builder.RegisterService(&service_);
    nodes_ = builder.BuildAndStart();
  }

  absl::StatusOr<bool> Enroll(const std::string& token, const std::string& node) {
    return agent_.Enroll(token, node);
  }

  // Says hello as `node`; puts the server's certificate into `server_pem`.
  absl::Status Connect(const rpc::TlsFiles& files, const std::string& node,
                       std::string* server_pem = nullptr) {
    ASSIGN_OR_RETURN(const auto credentials, rpc::ClientCredentials(files));
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1::NodeService::NewStub(
        grpc::CreateCustomChannel(fmt::format("127.0.0.1:{}", port_), credentials, arguments));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
    const auto stream = stub->Connect(&context);
    v1::AgentMessage hello;
    hello.mutable_hello()->set_node_name(node);
    stream->Write(hello);
    v1::ServerMessage welcome;
    const bool welcomed = stream->Read(&welcome);
    const grpc::Status status = stream->Finish();
    if (welcomed && server_pem != nullptr) {
      const auto pem = context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
      *server_pem = std::string(pem.at(0).data(), pem.at(0).size());
    }
    return rpc::FromGrpc(static_cast<int>(status.error_code()), status.error_message());
  }

  const testing_support::TempDir dir_;
  // TLS itself looks at the real time, so this is near it; and long enough before for a renewal.
  static constexpr absl::Duration kBefore = absl::Hours(24 * 300);
  os::SimClock clock_{absl::Now() - kBefore};
  testing_support::RecordingLog log_;
  ipam::MemoryStore store_;
  const std::unique_ptr<ipam::Revocations> revocations_ =
      ipam::Revocations::Open(store_, clock_, [](uint64_t, const absl::Status&) {}).value();
  testing_support::ServedEnrollment enrollment_{
      {.look = absl::Milliseconds(20)},
      {.revocations = *revocations_, .clock = clock_, .log = log_}};
  NodePort service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> nodes_;
  // The first refuses, as a server does that stands by.
  testing_support::EnrollingAgent agent_{
      {"unix:" + dir_.File("nobody.sock"), fmt::format("127.0.0.1:{}", enrollment_.port())},
      enrollment_.AuthorityPem(),
      clock_,
      log_};
  const rpc::TlsFiles& files_ = agent_.files();
};

TEST_F(EnrollTest, AnAgentEnrollsAndConnectsWithItsCertificate) {
  clock_.Advance(kBefore);
  const auto enrolled = Enroll("good", "node-1");
  ASSERT_TRUE(enrolled.ok()) << enrolled.status();
  EXPECT_TRUE(*enrolled);
  const absl::Status connected = Connect(files_, "node-1");
  EXPECT_TRUE(connected.ok()) << connected;
  EXPECT_THAT(service_.uris(), testing::UnorderedElementsAre(
                                   "azure:///subscriptions/s/machines/7",
                                   "spoke-node:node-1?topology.kubernetes.io/zone=eastus-1"));
  EXPECT_TRUE(absl::IsPermissionDenied(Connect(files_, "node-2")));
  EXPECT_EQ(log_.Count("node_enrolled"), 1);
}

TEST_F(EnrollTest, AnotherNodesNameIsRefused) {
  clock_.Advance(kBefore);
  const auto refused = Enroll("good", "node-2");
  EXPECT_TRUE(absl::IsPermissionDenied(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("runs on node node-1, and asks for node node-2"));
  EXPECT_EQ(log_.Count("enroll_refused"), 1);
  EXPECT_THAT(log_.lines(), testing::Not(Contains(HasSubstr("token=good"))));
}

TEST_F(EnrollTest, AnExpiredTokenIsRefused) {
  clock_.Advance(kBefore);
  const auto refused = Enroll("expired", "node-1");
  EXPECT_TRUE(absl::IsUnauthenticated(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("token has expired"));
  EXPECT_TRUE(absl::IsUnauthenticated(Enroll("nobody's", "node-1").status()));
}

TEST_F(EnrollTest, AnotherAuthorityIsTrustedByNeitherSide) {
  clock_.Advance(kBefore);
  ASSERT_TRUE(Enroll("good", "node-1").ok());
  const tls::Authority other = ipam::OpenAuthority(dir_.File("other"), clock_.Now()).value();
  // A certificate that it has signed.
  const rpc::TlsFiles foreign{
      .ca = files_.ca, .certificate = dir_.File("foreign.pem"), .key = files_.key};
  Put(foreign.certificate,
      tls::IssueCertificate(other, tls::PublicKeyOf(Read(files_.key)).value(),
                            {.common_name = "node-1", .dns_names = {"node-1"}},
                            {clock_.Now() - absl::Hours(1), clock_.Now() + absl::Hours(1)})
          .value());
  EXPECT_TRUE(absl::IsUnavailable(Connect(foreign, "node-1")));
  // The server's own certificate is for servers alone.
  EXPECT_TRUE(absl::IsUnavailable(Connect({.ca = files_.ca,
                                           .certificate = enrollment_.files().certificate,
                                           .key = enrollment_.files().key},
                                          "spoke-ipam-server")));
  // An agent that trusts it tells its token to nobody.
  agent_.Trust(other.certificate);
  const size_t calls = enrollment_.cluster().calls().size();
  const auto refused = Enroll("good", "node-1");
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  const auto after = enrollment_.cluster().calls();
  EXPECT_EQ(std::count(after.begin() + static_cast<ptrdiff_t>(calls), after.end(),
                       "POST /apis/authentication.k8s.io/v1/tokenreviews"),
            0);
}

TEST_F(EnrollTest, ACertificateIsRenewedByItsKeyWhileNobodyCanBeAskedAboutTheToken) {
  clock_.Advance(kBefore);
  ASSERT_TRUE(Enroll("good", "node-1").ok());
  const std::string first = Read(files_.certificate);
  enrollment_.cluster().FailWith(503);
  // It has ended in the outage.
  clock_.Advance(absl::Hours(24 * 7));
  const auto renewed = Enroll("good", "node-1");
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_TRUE(*renewed);
  const auto before = tls::ReadCertificate(first);
  const auto after = tls::ReadCertificate(Read(files_.certificate));
  EXPECT_EQ(after->dns_names, before->dns_names);
  EXPECT_EQ(after->uris, before->uris) << "what it says of the machine stays";
  EXPECT_GT(after->not_after, clock_.Now() + absl::Hours(23));
  // A token that is no good is an answer, though the certificate would do.
  enrollment_.cluster().FailWith(0);
  clock_.Advance(absl::Hours(13));
  EXPECT_TRUE(absl::IsUnauthenticated(Enroll("expired", "node-1").status()));
  // Without any token it does.
  EXPECT_TRUE(Enroll("", "node-1").ok());
}

TEST_F(EnrollTest, ACertificateThatEndedTooLongAgoIsNotRenewed) {
  clock_.Advance(kBefore);
  ASSERT_TRUE(Enroll("good", "node-1").ok());
  clock_.Advance(absl::Hours(24 * 8 + 1));
  const auto refused = Enroll("", "node-1");
  EXPECT_TRUE(absl::IsUnauthenticated(refused.status())) << refused.status();
  EXPECT_TRUE(Enroll("good", "node-1").ok());
}

TEST_F(EnrollTest, ARevokedCertificateIsNotRenewed) {
  clock_.Advance(kBefore);
  ASSERT_TRUE(Enroll("good", "node-1").ok());
  const std::string serial = tls::ReadCertificate(Read(files_.certificate))->serial;
  ASSERT_TRUE(revocations_->Revoke({ipam::DeniedKind::kSerial, serial}, {.reason = "stolen"}).ok());
  clock_.Advance(absl::Hours(13));
  const auto refused = Enroll("", "node-1");
  EXPECT_TRUE(absl::IsPermissionDenied(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("is revoked: stolen"));
  // The pod's token gets another one, unless the node is revoked too.
  EXPECT_TRUE(Enroll("good", "node-1").ok());
  const ipam::DeniedName machine =
      *ipam::DeniedName::From("machine", "azure:///subscriptions/s/machines/7");
  ASSERT_TRUE(revocations_->Revoke(machine, {}).ok());
  clock_.Advance(absl::Hours(13));
  EXPECT_TRUE(absl::IsPermissionDenied(Enroll("good", "node-1").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(Enroll("", "node-1").status()));
}

TEST_F(EnrollTest, TooManyRequestsOfOneNodeAreRefused) {
  clock_.Advance(kBefore);
  absl::Status last;
  for (int i = 0; i < 30 && last.ok(); ++i) {
    agent_.Forget();
    last = Enroll("good", "node-1").status();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(last)) << last;
}

TEST_F(EnrollTest, TheServerSaysThatItsClusterDoesNotAnswer) {
  clock_.Advance(kBefore);
  enrollment_.cluster().FailWith(503);
  EXPECT_TRUE(absl::IsUnavailable(Enroll("good", "node-1").status()));
  enrollment_.cluster().FailWith(403);
  EXPECT_TRUE(absl::IsFailedPrecondition(Enroll("good", "node-1").status()));
  enrollment_.cluster().FailWith(0);
  EXPECT_TRUE(Enroll("good", "node-1").ok());
}

TEST_F(EnrollTest, TheAuthorityIsPublishedAndPutBack) {
  const std::string authority = Read(enrollment_.files().ca);
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  const auto published = [&] {
    while (absl::Now() < deadline) {
      const auto object = enrollment_.cluster().Object(kConfigMap);
      if (!object.is_null() && object["data"] == nlohmann::json{{"ca.pem", authority}}) return true;
      std::this_thread::yield();
    }
    return false;
  };
  EXPECT_TRUE(published());
  nlohmann::json changed = enrollment_.cluster().Object(kConfigMap);
  changed["data"] = {{"ca.pem", "somebody's"}};
  enrollment_.cluster().SetObject(kConfigMap, changed);
  EXPECT_TRUE(published());
}

TEST_F(EnrollTest, TheServersCertificateIsRenewedWhileItServes) {
  const std::string before = Read(enrollment_.files().certificate);
  clock_.Advance(kBefore);  // The time is past two thirds of a year.
  ASSERT_TRUE(Enroll("good", "node-1").ok());
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  std::string seen = before;
  while (seen == before && absl::Now() < deadline) {
    const absl::Status connected = Connect(files_, "node-1", &seen);
    ASSERT_TRUE(connected.ok()) << connected;
  }
  EXPECT_NE(seen, before);
  EXPECT_EQ(seen, Read(enrollment_.files().certificate));
  EXPECT_EQ(log_.Count("certificate_not_renewed"), 0);
}

}  // namespace
}  // namespace spoke
