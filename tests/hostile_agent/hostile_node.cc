#include "tests/hostile_agent/hostile_node.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "absl/time/clock.h"
#include "lib/base/check.h"
#include "lib/rpc/credentials.h"
#include "lib/tls/certificate.h"

namespace spoke::hostile {
namespace {

// The time for a whole stream: no test waits longer for a server that does not answer.
constexpr absl::Duration kPatience = absl::Seconds(60);

}  // namespace

Credentials Enrolled(const tls::Authority& authority, const tls::Subject& subject) {
  Credentials made{.key = tls::MakeKey().value(), .certificate = ""};
  made.certificate =
      tls::IssueCertificate(authority, tls::PublicKeyOf(made.key).value(), subject,
                            {absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(1)})
          .value();
  return made;
}

HostileNode::HostileNode(const std::string& target, const std::string& server_name,
                         const std::string& ca, const Credentials& credentials) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = ca;
  options.pem_cert_chain = credentials.certificate;
  options.pem_private_key = credentials.key;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetSslTargetNameOverride(server_name);
  stub_ = v1::NodeService::NewStub(
      grpc::CreateCustomChannel(target, grpc::SslCredentials(options), arguments));
  context_.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  stream_ = stub_->Connect(&context_);
}

HostileNode::~HostileNode() {
  if (ended_) return;
  context_.TryCancel();
  static_cast<void>(stream_->Finish());
}

bool HostileNode::Say(const v1::AgentMessage& message) { return stream_->Write(message); }

void HostileNode::Acknowledge(const v1::ServerMessage& message) {
  if (!message.has_desired()) return;
  v1::AgentMessage ack;
  ack.mutable_ack()->set_version(message.desired().version());
  Say(ack);
}

absl::StatusOr<std::vector<std::string>> HostileNode::Greet(const v1::Hello& hello,
                                                            size_t addresses) {
  v1::AgentMessage message;
  *message.mutable_hello() = hello;
  Say(message);
  std::vector<std::string> listed;
  do {
    const auto desired = Hear([](const v1::ServerMessage& heard) { return heard.has_desired(); });
    if (!desired) return End();
    for (const auto& added : desired->desired().added()) listed.push_back(added.base());
  } while (listed.size() < addresses);
  return listed;
}

absl::Status HostileNode::End() {
  v1::ServerMessage ignored;
  while (stream_->Read(&ignored)) {
  }
  ended_ = true;
  const grpc::Status status = stream_->Finish();
  CHECK(!status.ok(), "a stream that its server ends has a reason");
  return rpc::FromGrpc(static_cast<int>(status.error_code()), status.error_message());
}

}  // namespace spoke::hostile
