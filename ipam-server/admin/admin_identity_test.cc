// What operators ask about certificates: an agent that is revoked is cut and stays out.
#include "gmock/gmock.h"
#include "ipam-server/admin/testing/admin_fixture.h"

namespace spoke::ipam {
namespace {

using testing::HasSubstr;

using Stub = v1::AdminService::Stub;

class AdminIdentityTest : public AdminTest {
 protected:
  grpc::Status Revoke(const std::string& kind, const std::string& value,
                      v1::RevokeIdentityResponse* out = nullptr) {
    v1::RevokeIdentityRequest request;
    request.set_kind(kind);
    request.set_value(value);
    request.set_reason("stolen");
    v1::RevokeIdentityResponse ignored;
    return Ask(&Stub::RevokeIdentity, request, out == nullptr ? ignored : *out);
  }
  // How a new session of the node ends, once it has said hello and listened.
  grpc::Status SayHello(const v1::AgentMessage& hello = HelloMessage()) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    const auto stream = node_stub_->Connect(&context);
    stream->Write(hello);
    v1::ServerMessage message;
    if (stream->Read(&message)) {
      context.TryCancel();
      while (stream->Read(&message)) {
      }
      stream->Finish();
      return grpc::Status::OK;
    }
    return stream->Finish();
  }
  bool IsConnected() {
    v1::GetNodeRequest request;
    request.set_name("node1");
    v1::GetNodeResponse response;
    EXPECT_TRUE(Ask(&Stub::GetNode, request, response).ok());
    return response.node().connected();
  }
};

TEST_F(AdminIdentityTest, ARevokedNodeIsCutAndStaysOut) {
  ConnectNode();
  v1::RevokeIdentityResponse revoked;
  ASSERT_TRUE(Revoke("node", "node1", &revoked).ok());
  EXPECT_EQ(revoked.sessions_ended(), 1U);
  EXPECT_EQ(revoked.identity().reason(), "stolen");
  v1::ServerMessage message;
  while (stream_->Read(&message)) {
  }
  const grpc::Status end = stream_->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::PERMISSION_DENIED) << end.error_message();
  EXPECT_THAT(end.error_message(), HasSubstr("node node1 is revoked: stolen"));
  EXPECT_EQ(SayHello().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  while (IsConnected()) std::this_thread::yield();
  // Its pods go on: nothing is taken from it.
  EXPECT_EQ(ListAddresses().size(), 2U);

  v1::ListRevokedResponse list;
  ASSERT_TRUE(Ask(&Stub::ListRevoked, v1::ListRevokedRequest(), list).ok());
  ASSERT_EQ(list.identities_size(), 1);
  EXPECT_EQ(list.identities(0).value(), "node1");
  EXPECT_EQ(list.identities(0).by(), "uid 0");
  v1::UnrevokeIdentityRequest lift;
  lift.set_kind("node");
  lift.set_value("node1");
  v1::UnrevokeIdentityResponse lifted;
  ASSERT_TRUE(Ask(&Stub::UnrevokeIdentity, lift, lifted).ok());
  EXPECT_TRUE(SayHello().ok());
  EXPECT_EQ(Ask(&Stub::UnrevokeIdentity, lift, lifted).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(log_.Count("identity_revoked"), 1);
  EXPECT_EQ(log_.Count("identity_unrevoked"), 1);
}

TEST_F(AdminIdentityTest, AMachineIsRevokedByItsId) {
  ConnectNode();
  ASSERT_TRUE(Revoke("machine", "VM-1").ok());
  EXPECT_EQ(SayHello().error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

// The VM's id is the agent's own word, so that another one must not let it in.
TEST_F(AdminIdentityTest, AMachineThatSaysAnotherIdIsKnownByItsInstance) {
  v1::AgentMessage hello = HelloMessage();
  hello.mutable_hello()->set_instance("machines/7");
  ASSERT_TRUE(SayHello(hello).ok());
  v1::RevokeIdentityResponse revoked;
  ASSERT_TRUE(Revoke("machine", "VM-1", &revoked).ok());
  EXPECT_EQ(revoked.identity().value(), "machines/7");
  hello.mutable_hello()->set_vm_id("vm-2");
  EXPECT_EQ(SayHello(hello).error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(AdminIdentityTest, WhatMakesNoSenseIsRefused) {
  EXPECT_EQ(Revoke("pod", "a").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Revoke("node", "").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Revoke("serial", "xyz").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::ListRootsResponse roots;
  EXPECT_EQ(Ask(&Stub::ListRoots, v1::ListRootsRequest(), roots).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Ask(&Stub::RotateAuthority, v1::RotateAuthorityRequest(), roots).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

}  // namespace
}  // namespace spoke::ipam
