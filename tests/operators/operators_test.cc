// Tests that each operator may do what its certificate's role says, and nobody else anything:
// spokectl's commands and the server's services over the real port, with real certificates.
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "admin-cli/context/context_file.h"
#include "admin-cli/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/admin/admin_gate.h"
#include "ipam-server/admin/testing/admin_fixture.h"
#include "lib/os/file.h"
#include "lib/rpc/bounded_server.h"
#include "lib/tls/authority.h"
#include "lib/tls/certificate.h"
#include "tests/support/recording_log.h"
#include "tests/support/served_enrollment.h"

namespace spoke {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPool =
    "apiVersion: spoke/v1\nkind: Pool\nmetadata: {name: blue}\nspec: {cidr: 10.7.0.0/24}\n";

class TextConsole final : public ctl::Console {
 public:
  void Out(std::string_view text) override { out += text; }
  void Err(std::string_view text) override { err += text; }
  absl::StatusOr<std::string> ReadInput(size_t) override { return input; }
  bool out_is_terminal() const override { return false; }
  bool err_is_terminal() const override { return false; }
  absl::Status written() const override { return absl::OkStatus(); }

  std::string input;
  std::string out;
  std::string err;
};

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

class OperatorsTest : public ipam::AdminTest {
 protected:
  OperatorsTest() {
    enrollment_.cluster().cluster().AddToken("night", {.authenticated = true,
                                                       .user = "system:serviceaccount:ops:night",
                                                       .audiences = {"spoke-operators"},
                                                       .groups = {"system:serviceaccounts:ops"}});
    enrollment_.cluster().cluster().AddToken("for-the-api-server",
                                             {.authenticated = true,
                                              .user = "system:serviceaccount:ops:night",
                                              .audiences = {"https://kubernetes.default.svc"}});
    enrollment_.cluster().cluster().AddToken("stranger", {.authenticated = true,
                                                          .user = "system:serviceaccount:web:shop",
                                                          .audiences = {"spoke-operators"}});
    authority_ = {.certificate = enrollment_.AuthorityPem(), .key = enrollment_.AuthorityKey()};
    ServeOperators();
  }
  ~OperatorsTest() override { operators_->Shutdown(std::chrono::system_clock::now()); }

  static std::string Read(const std::string& path) { return os::ReadFile(path).value_or(""); }
  std::string Put(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(os::WriteFileAtomic(dir_.File(name), text, os::Durability::kVisible).ok());
    return dir_.File(name);
  }

  void ServeOperators() {
    const auto credentials = enrollment_.Credentials();
    ASSERT_TRUE(credentials.ok()) << credentials.status();
    grpc::ServerBuilder builder;
    builder.RegisterService(&gate_);
    auto server = rpc::BoundedServer::Start(builder,
                                            {.name = "operators",
                                             .address = "127.0.0.1:0",
                                             .credentials = *credentials,
                                             .limits = rpc::kOperatorLimits},
                                            log_);
    ASSERT_TRUE(server.ok()) << server.status();
    operators_ = *std::move(server);
  }

  // Makes a context of the name, whose certificate says so.
  void AddContext(const std::string& name, const std::string& organization,
                  const tls::Authority& authority, absl::Duration ends = absl::Hours(1)) {
    const std::string key = tls::MakeKey().value();
    const absl::Time now = absl::Now();
    const auto certificate = tls::IssueCertificate(
        authority, tls::PublicKeyOf(key).value(),
        {.common_name = name, .organization = organization}, {now - absl::Hours(2), now + ends});
    ASSERT_TRUE(certificate.ok()) << certificate.status();
    ASSERT_TRUE(os::MakeDirectory(dir_.File("home")).ok());
    ctl::ContextFile file = ctl::ReadContexts(dir_.File("home/config.yaml")).value();
    file.contexts[name] = {.servers = {Address()},
                           .ca = Put(name + "-ca.pem", authority_.certificate),
                           .certificate = Put(name + ".pem", *certificate),
                           .key = Put(name + ".key", key)};
    ASSERT_TRUE(ctl::WriteContexts(dir_.File("home/config.yaml"), file).ok());
  }
  void AddContext(const std::string& name, const std::string& organization) {
    AddContext(name, organization, authority_);
  }
  std::string Address() const { return "127.0.0.1:" + std::to_string(operators_->port()); }

  // Runs `line`, whose words are apart by blanks, as spokectl of whoever has the contexts.
  Outcome Ctl(const std::string& line, const std::string& input = "") {
    TextConsole console;
    console.input = input;
    const ctl::World world{console, real_clock_, [](absl::Duration) { return false; },
                           [&](const std::string& name) {
                             return name == "SPOKE_CONFIG" ? dir_.File("home/config.yaml") : "";
                           }};
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const int code = ctl::Run(words, world);
    return {code, console.out, console.err};
  }
  nlohmann::json Log() {
    return nlohmann::json::parse(Ctl("audit-log --context admin -o json").out, nullptr, false);
  }
  std::string ModeOfNode() {
    v1::GetNodeRequest request;
    request.set_name("node1");
    v1::GetNodeResponse response;
    EXPECT_TRUE(Ask(&v1::AdminService::Stub::GetNode, request, response).ok());
    return response.node().mode();
  }

  os::RealClock real_clock_;
  testing_support::ServedEnrollment enrollment_{
      {.server_names = {"127.0.0.1"},
       .operators = {.operators = {"group:system:serviceaccounts:ops"}},
       .look = absl::Milliseconds(20)},
      {.revocations = *revocations_, .clock = real_clock_, .log = log_}};
  tls::Authority authority_;
  ipam::AdminGate gate_{
      "test", admin_, {.revocations = *revocations_, .clock = real_clock_, .log = log_}};
  std::unique_ptr<rpc::BoundedServer> operators_;
};

TEST_F(OperatorsTest, AViewerLooksAndTriesAndChangesNothing) {
  AddContext("viewer", "spoke:viewers");
  EXPECT_EQ(Ctl("diff -f - --context viewer", kPool).code, 1);
  ConnectNode();
  EXPECT_EQ(Ctl("node list --context viewer").code, 0);
  const Outcome drained = Ctl("node drain node1 --context viewer");
  EXPECT_EQ(drained.code, 5);
  EXPECT_THAT(drained.err,
              HasSubstr("viewer is viewer here, and SetNodeMode takes the role operator"));
  EXPECT_EQ(ModeOfNode(), "active");
  EXPECT_EQ(Ctl("apply -f - --context viewer", kPool).code, 5);
  EXPECT_EQ(PoolNames(), std::vector<std::string>{"default 10.1.0.0/24"});
  AddContext("admin", "spoke:admins");
  EXPECT_TRUE(Log().empty()) << Log();
  EXPECT_GE(log_.Count("operator_refused"), 1);
}

TEST_F(OperatorsTest, AnOperatorActsOnNodesAndIsOnRecord) {
  ConnectNode();
  AddContext("bob", "spoke:operators");
  const Outcome drained = Ctl("node drain node1 --context bob");
  EXPECT_EQ(drained.code, 0) << drained.err;
  EXPECT_EQ(ModeOfNode(), "draining");
  EXPECT_EQ(Ctl("apply -f - --context bob", kPool).code, 5);
  AddContext("admin", "spoke:admins");
  const nlohmann::json log = Log();
  ASSERT_EQ(log.size(), 1U) << log;
  EXPECT_EQ(log[0]["who"], "bob");
  EXPECT_EQ(log[0]["role"], "operator");
  EXPECT_EQ(log[0]["from"], "127.0.0.1");
  EXPECT_EQ(log[0]["method"], "SetNodeMode");
  EXPECT_EQ(log[0]["what"], "node node1 is draining");
  EXPECT_EQ(log[0]["policy_before"], log[0]["policy_after"]);
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("operator_change who=bob")));
}

TEST_F(OperatorsTest, ARevokedCertificateIsRefused) {
  AddContext("bob", "spoke:operators");
  ASSERT_EQ(Ctl("node list --context bob").code, 0);
  const auto facts = tls::ReadCertificate(Read(dir_.File("bob.pem")));
  ASSERT_TRUE(facts.ok());
  ASSERT_TRUE(revocations_
                  ->Revoke(ipam::DeniedName::From("serial", facts->serial).value(),
                           {.reason = "the laptop was stolen", .since = absl::Now()})
                  .ok());
  const Outcome refused = Ctl("node list --context bob");
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("the laptop was stolen"));
}

TEST_F(OperatorsTest, AnAdminChangesPolicyAndTakesItBack) {
  AddContext("admin", "spoke:admins");
  EXPECT_EQ(Ctl("rollout undo --context admin").code, 5) << "there is nothing to undo";
  EXPECT_EQ(Ctl("apply -f - --context admin", kPool).code, 0);
  EXPECT_THAT(PoolNames(), Contains("blue 10.7.0.0/24"));
  EXPECT_THAT(Ctl("policy history --context admin").out, HasSubstr("Pool/blue created"));
  const Outcome tried = Ctl("rollout undo --dry-run --context admin");
  EXPECT_EQ(tried.code, 0) << tried.err;
  EXPECT_THAT(PoolNames(), Contains("blue 10.7.0.0/24"));
  const Outcome undone = Ctl("rollout undo --context admin");
  EXPECT_EQ(undone.code, 0) << undone.err;
  EXPECT_THAT(undone.out, HasSubstr("Pool/blue deleted"));
  EXPECT_THAT(PoolNames(), Not(Contains("blue 10.7.0.0/24")));
  EXPECT_EQ(Ctl("rollout undo --context admin").code, 0) << "an undo is a change like others";
  EXPECT_THAT(PoolNames(), Contains("blue 10.7.0.0/24"));
  const nlohmann::json log = Log();
  ASSERT_EQ(log.size(), 3U);
  EXPECT_EQ(log[0]["method"], "UndoRollout");
  EXPECT_EQ(log[0]["policy_before"], log[1]["policy_after"]);
  EXPECT_GT(log[0]["policy_after"], log[0]["policy_before"]);
}

TEST_F(OperatorsTest, CertificatesThatAreNoOperatorsAreRefusedEachWithItsReason) {
  AddContext("node1", "");
  const Outcome node = Ctl("status --context node1");
  EXPECT_EQ(node.code, 5);
  EXPECT_THAT(node.err, HasSubstr("the certificate of node1 is no operator's"));
  AddContext("other", "spoke:admin");
  EXPECT_THAT(Ctl("status --context other").err, HasSubstr("its organization (O=) is none of"));
  AddContext("old", "spoke:admins", authority_, -absl::Hours(1));
  const Outcome old = Ctl("status --context old");
  EXPECT_EQ(old.code, 5);
  EXPECT_THAT(old.err, HasSubstr("the certificate of old ended on"));
  tls::Authority foreign{.certificate = "", .key = tls::MakeKey().value()};
  foreign.certificate =
      tls::MakeAuthorityCertificate(foreign.key, "another",
                                    {absl::Now() - absl::Hours(3), absl::Now() + absl::Hours(3)})
          .value();
  AddContext("foreign", "spoke:admins", foreign);
  EXPECT_THAT(Ctl("status --context foreign").err, HasSubstr("signed by another authority"));
}

// What spokectl says by itself, others need not: the server refuses it all the same.
TEST_F(OperatorsTest, TheServerTakesNoneOfThemEither) {
  tls::Authority foreign{.certificate = "", .key = tls::MakeKey().value()};
  foreign.certificate =
      tls::MakeAuthorityCertificate(foreign.key, "another",
                                    {absl::Now() - absl::Hours(3), absl::Now() + absl::Hours(3)})
          .value();
  AddContext("old", "spoke:admins", authority_, -absl::Hours(1));
  AddContext("foreign", "spoke:admins", foreign);
  const auto status_as = [&](const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    const auto stub =
        v1::AdminService::NewStub(grpc::CreateCustomChannel(Address(), credentials, arguments));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
    v1::GetStatusResponse response;
    return stub->GetStatus(&context, v1::GetStatusRequest(), &response).error_code();
  };
  for (const std::string name : {"old", "foreign"}) {
    const auto credentials = rpc::ClientCredentials({.ca = enrollment_.files().ca,
                                                     .certificate = dir_.File(name + ".pem"),
                                                     .key = dir_.File(name + ".key")});
    ASSERT_TRUE(credentials.ok());
    EXPECT_EQ(status_as(*credentials), grpc::StatusCode::UNAVAILABLE) << name;
  }
  EXPECT_EQ(status_as(rpc::AnonymousCredentials(enrollment_.files().ca).value()),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status_as(grpc::InsecureChannelCredentials()), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(OperatorsTest, LoginGivesTheRoleOfTheTokensGroupAndKeepsNoToken) {
  ConnectNode();
  const std::string line = "login --context prod --at " + Address() +
                           " --enroll 127.0.0.1:" + std::to_string(enrollment_.port()) + " --ca " +
                           enrollment_.files().ca;
  const Outcome login = Ctl(line, "night\n");
  EXPECT_EQ(login.code, 0) << login.err;
  EXPECT_THAT(login.out, HasSubstr("system:serviceaccount:ops:night is operator of prod until"));
  const Outcome drained = Ctl("node drain node1");
  EXPECT_EQ(drained.code, 0) << drained.err;
  EXPECT_EQ(ModeOfNode(), "draining");
  EXPECT_EQ(Ctl("unfreeze").code, 5) << "it is an admin's";
  EXPECT_EQ(log_.Count("operator_certificate_issued"), 1);
  EXPECT_THAT(Read(dir_.File("home/config.yaml")), Not(HasSubstr("night")));
  EXPECT_EQ(::access(dir_.File("home/prod.key").c_str(), R_OK), 0);
  AddContext("admin", "spoke:admins");
  EXPECT_EQ(Log()[0]["who"], "system:serviceaccount:ops:night");
  const Outcome again =
      Ctl("login --context prod --enroll 127.0.0.1:" + std::to_string(enrollment_.port()), "night");
  EXPECT_EQ(again.code, 0) << again.err << "the context knows the rest by now";
}

TEST_F(OperatorsTest, LoginRefusesOtherTokensAndWritesNothing) {
  const std::string line = "login --context prod --at " + Address() +
                           " --enroll 127.0.0.1:" + std::to_string(enrollment_.port()) + " --ca " +
                           enrollment_.files().ca;
  const Outcome own = Ctl(line, "for-the-api-server");
  EXPECT_EQ(own.code, 5);
  EXPECT_THAT(own.err, HasSubstr("token audiences are invalid"));
  EXPECT_THAT(Ctl(line, "stranger").err,
              HasSubstr("system:serviceaccount:web:shop has no role here"));
  EXPECT_THAT(Ctl(line, "nobody's").err, HasSubstr("the token is no good"));
  EXPECT_EQ(Ctl(line, "").code, 2);
  EXPECT_EQ(Ctl("login --context prod", "night").code, 2) << "where is not known";
  EXPECT_NE(::access(dir_.File("home/config.yaml").c_str(), F_OK), 0);
  EXPECT_EQ(log_.Count("operator_certificate_refused"), 3);
}

TEST_F(OperatorsTest, ACertificateOfOperatorsIsNoNodes) {
  AddContext("node1", "spoke:admins");
  ipam::NodeService nodes({.server_version = "1.4.0", .check_peer_name = true},
                          {.streams = streams_,
                           .loop = loop_,
                           .traffic = traffic_,
                           .budgets = budgets_,
                           .revocations = *revocations_});
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", rpc::ServerCredentials(enrollment_.files()).value(),
                           &port);
  builder.RegisterService(&nodes);
  const auto server = builder.BuildAndStart();
  const auto hello = [&] {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    const auto credentials = rpc::ClientCredentials({.ca = enrollment_.files().ca,
                                                     .certificate = dir_.File("node1.pem"),
                                                     .key = dir_.File("node1.key")});
    const auto stub = v1::NodeService::NewStub(grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(port), credentials.value(), arguments));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
    const auto stream = stub->Connect(&context);
    stream->Write(HelloMessage());
    stream->WritesDone();
    v1::ServerMessage message;
    const bool welcomed = stream->Read(&message);
    if (welcomed) context.TryCancel();
    return std::pair(welcomed, stream->Finish());
  };
  const auto [welcomed, refused] = hello();
  EXPECT_FALSE(welcomed);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED) << refused.error_message();
  AddContext("node1", "");
  EXPECT_TRUE(hello().first) << "the same name without an organization is the node's";
  server->Shutdown(std::chrono::system_clock::now());
}

TEST_F(OperatorsTest, TheServersOwnCertificateForOperatorsIsOneOfAdmins) {
  ASSERT_TRUE(os::MakeDirectory(dir_.File("home")).ok());
  ctl::ContextFile file{.current = "secret"};
  file.contexts["secret"] = {.servers = {Address()},
                             .ca = enrollment_.files().ca,
                             .certificate = enrollment_.File("operator.pem"),
                             .key = enrollment_.File("operator.key")};
  ASSERT_TRUE(ctl::WriteContexts(dir_.File("home/config.yaml"), file).ok());
  const Outcome applied = Ctl("apply -f -", kPool);
  EXPECT_EQ(applied.code, 0) << applied.err;
}

}  // namespace
}  // namespace spoke
