// Who is let in by version: agents at their hello, spokectl at each call.
#include "fmt/core.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "ipam-server/admin/admin_gate.h"
#include "ipam-server/session/testing/services_for_test.h"
#include "tests/support/schema.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

// The fixture's node service has version 1.4.0; so has the gate before its admin service.
class VersionTest : public ServicesTest {
 protected:
  VersionTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(versioned_address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&gate_);
    versioned_ = builder.BuildAndStart();
    const auto channel =
        grpc::CreateChannel(versioned_address_, grpc::InsecureChannelCredentials());
    operators_ = v1::AdminService::NewStub(channel);
  }
  ~VersionTest() override { versioned_->Shutdown(std::chrono::system_clock::now()); }

  // How an agent's stream ends, and which version the server says it has.
  std::pair<grpc::Status, std::string> SayHelloAs(const std::string& version) {
    grpc::ClientContext context;
    const auto stream = node_stub_->Connect(&context);
    v1::AgentMessage hello = HelloMessage();
    hello.mutable_hello()->set_agent_version(version);
    stream->Write(hello);
    stream->WritesDone();
    v1::ServerMessage message;
    while (stream->Read(&message)) {
    }
    const grpc::Status status = stream->Finish();
    std::string said;
    const auto& metadata = context.GetServerTrailingMetadata();
    if (const auto it = metadata.find("spoke-version"); it != metadata.end()) {
      said = std::string(it->second.data(), it->second.size());
    }
    return {status, said};
  }

  grpc::Status ListPoolsAs(const char* version) {
    grpc::ClientContext context;
    if (version != nullptr) context.AddMetadata("spoke-version", version);
    v1::ListPoolsResponse response;
    return operators_->ListPools(&context, v1::ListPoolsRequest(), &response);
  }

  // How a call of any method ends, with a request that says nothing.
  grpc::Status CallAs(const std::string& version, const std::string& method) {
    grpc::GenericStub stub(
        grpc::CreateChannel(versioned_address_, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.AddMetadata("spoke-version", version);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(&context, method, &queue);
    grpc::Status status;
    // One step after the other; each may fail once the server has refused.
    const auto wait = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      queue.Next(&tag, &ok);
    };
    call->StartCall(nullptr);
    wait();
    const grpc::Slice nothing;
    call->WriteLast(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions(), nullptr);
    wait();
    grpc::ByteBuffer answer;
    call->Read(&answer, nullptr);
    wait();
    call->Finish(&status, nullptr);
    wait();
    return status;
  }

  const std::string versioned_address_ = "unix:" + dir_.File("versioned.sock");
  AdminGate gate_{"1.4.0", admin_, {.revocations = *revocations_, .clock = clock_, .log = log_}};
  std::unique_ptr<grpc::Server> versioned_;
  std::unique_ptr<v1::AdminService::Stub> operators_;
};

TEST_F(VersionTest, AnAgentBeyondOneMinorVersionIsRefusedWithWhatToUpgrade) {
  const auto [status, server] = SayHelloAs("1.2.0");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(),
            "spoke-netagent 1.2.0 and spoke-ipam-server 1.4.0 do not work together, since they are "
            "more than one minor version apart: upgrade spoke-netagent first, to 1.3 or 1.4");
  EXPECT_EQ(server, "1.4.0");
  EXPECT_THAT(SayHelloAs("2.0.0").first.error_message(),
              HasSubstr("upgrade spoke-ipam-server first, to 2.0"));
}

TEST_F(VersionTest, AgentsWithinItAndThoseThatSayNoneAreWelcome) {
  for (const char* version : {"1.3.0", "1.4.7", "1.5.0-rc.1", "", "swarm"}) {
    EXPECT_TRUE(SayHelloAs(version).first.ok()) << version;
  }
}

TEST_F(VersionTest, SpokectlBeyondItIsRefusedButForTheStatus) {
  EXPECT_EQ(ListPoolsAs("1.2.0").error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(ListPoolsAs("1.2.0").error_message(),
              HasSubstr("upgrade spokectl first, to 1.3 or 1.4"));
  for (const char* version : {"1.3.9", "1.5.0", ""}) {
    EXPECT_TRUE(ListPoolsAs(version).ok()) << version;
  }
  EXPECT_TRUE(ListPoolsAs(nullptr).ok()) << "an old client says none";

  grpc::ClientContext context;
  context.AddMetadata("spoke-version", "9.0.0");
  v1::GetStatusResponse status;
  EXPECT_TRUE(operators_->GetStatus(&context, v1::GetStatusRequest(), &status).ok());
}

TEST_F(VersionTest, ListsAreRefusedLikewise) {
  grpc::ClientContext context;
  context.AddMetadata("spoke-version", "1.0.0");
  const auto reader = operators_->ListNodes(&context, v1::ListNodesRequest());
  v1::ListNodesResponse response;
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

// A method that is new in the service and forgotten in the gate would be UNIMPLEMENTED.
TEST_F(VersionTest, EveryMethodIsBehindTheGate) {
  const auto& service = testing_support::AdminServiceDescriptor();
  ASSERT_GT(service.method_count(), 20);
  for (int i = 0; i < service.method_count(); ++i) {
    const auto& method = *service.method(i);
    const grpc::Status status =
        CallAs("1.0.0", fmt::format("/{}/{}", service.full_name(), method.name()));
    EXPECT_EQ(status.error_code(), method.name() == "GetStatus"
                                       ? grpc::StatusCode::OK
                                       : grpc::StatusCode::FAILED_PRECONDITION)
        << method.name() << ": " << status.error_message();
  }
}

}  // namespace
}  // namespace spoke::ipam
