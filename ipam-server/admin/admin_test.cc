// What operators ask over gRPC: that it is done, and that what cannot be is refused with its own
// code and a sentence, and changes nothing.
#include <chrono>
#include <filesystem>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/admin/testing/admin_fixture.h"

namespace spoke::ipam {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

constexpr const char* kPoolYaml =
    "apiVersion: spoke/v1\nkind: Pool\nmetadata:\n  name: {}\nspec:\n  cidr: {}\n";

TEST_F(AdminTest, AppliedPoolsServeNodesAndCannotBeTakenAwayUnderThem) {
  v1::ApplyResponse applied;
  ASSERT_TRUE(ApplyYaml(fmt::format(kPoolYaml, "six", "fd00::/64"), &applied).ok());
  EXPECT_EQ(applied.changes(0).action(), "created");
  const std::vector<std::string> both = {"default 10.1.0.0/24", "six fd00::/64"};
  EXPECT_EQ(PoolNames(), both);
  ConnectNode(4);  // Two of each family.
  v1::GetStatusResponse status;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetStatus, v1::GetStatusRequest(), status).ok());
  EXPECT_EQ(status.ipv4().usable(), 251U);
  EXPECT_EQ(status.ipv4().available(), 2U);
  EXPECT_GT(status.ipv6().usable(), uint64_t{1} << 60U);
  EXPECT_EQ(status.ipv6().available(), 2U);

  const grpc::Status shrunk = ApplyYaml(fmt::format(kPoolYaml, "six", "fd00::8000:0:0:0/65"));
  EXPECT_EQ(shrunk.error_code(), StatusCode::FAILED_PRECONDITION) << shrunk.error_message();
  v1::DeleteObjectsRequest request;
  v1::ObjectName& name = *request.add_objects();
  name.set_kind("Pool");
  name.set_name("six");
  v1::DeleteObjectsResponse deleted;
  EXPECT_EQ(Ask(&v1::AdminService::Stub::DeleteObjects, request, deleted).error_code(),
            StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(PoolNames(), both);
  name.set_kind("Pol");
  const grpc::Status wrong = Ask(&v1::AdminService::Stub::DeleteObjects, request, deleted);
  EXPECT_EQ(wrong.error_code(), StatusCode::NOT_FOUND);
  EXPECT_NE(wrong.error_message().find("there is no kind \"Pol\"; the kinds are"),
            std::string::npos);
  request.clear_objects();
  EXPECT_EQ(Ask(&v1::AdminService::Stub::DeleteObjects, request, deleted).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST_F(AdminTest, StatusNamesBothThatHaveAnAddress) {
  ConnectNode();
  grpc::ClientContext other_context;
  const std::unique_ptr<Stream> other = node_stub_->Connect(&other_context);
  v1::AgentMessage hello = HelloMessage("node2");
  hello.mutable_hello()->set_vm_id("vm-2");
  hello.mutable_hello()->mutable_nics(0)->set_mac("00:0d:3a:00:00:02");
  ASSERT_TRUE(other->Write(hello));
  ASSERT_EQ(ReadAddresses(*other, 2).size(), 2U);
  v1::AgentMessage conflict;
  conflict.mutable_conflict()->set_address(addresses_[0]);
  conflict.mutable_conflict()->set_other_mac("00:0d:3a:00:00:02");
  ASSERT_TRUE(stream_->Write(conflict));
  Assign(1);  // Once acknowledged, what was said before it has been taken.
  v1::GetStatusResponse status;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetStatus, v1::GetStatusRequest(), status).ok());
  EXPECT_THAT(status.problems(),
              testing::ElementsAre(testing::AllOf(
                  HasSubstr(TextOf(0) + " is in two places"), HasSubstr("node node1 holds it"),
                  HasSubstr("00:0d:3a:00:00:02 (the NIC of node node2) answers for it"))));
  other_context.TryCancel();
}

TEST_F(AdminTest, ASpokeMayNotHoldTheAddressAtWhichAgentsReachTheServer) {
  const std::string yaml =
      "apiVersion: spoke/v1\nkind: ClusterNetwork\nmetadata: {name: main}\nspec: {peerSpoke: [";
  const grpc::Status cut = ApplyYaml(yaml + "10.64.0.0/16]}\n");
  EXPECT_EQ(cut.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(cut.error_message(), HasSubstr("pools.yaml:4: spec.peerSpoke: 10.64.0.0/16 holds "
                                             "10.64.0.1, at which agents reach this server"));
  EXPECT_TRUE(ApplyYaml(yaml + "10.65.0.0/16]}\n").ok());
}

TEST_F(AdminTest, AGroupHasNoNameOfAHostInsideTheCluster) {
  const std::string yaml =
      "apiVersion: spoke/v1\nkind: DestinationGroup\nmetadata: {name: g}\nspec: {names: "
      "[data.example.org]}\n---\napiVersion: spoke/v1\nkind: ClusterNetwork\nmetadata: {name: "
      "main}\nspec: {storage: [10.64.0.0/16]}\n";
  resolver_.Set("data.example.org", {ip::Address::V4(0x0A400005)});
  const grpc::Status inside = ApplyYaml(yaml);
  EXPECT_EQ(inside.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(inside.error_message(),
              HasSubstr("pools.yaml:4: spec.names: data.example.org resolves to 10.64.0.5, which "
                        "lies in 10.64.0.0/16, a block of storage of ClusterNetwork \"main\""));
  resolver_.Set("data.example.org", {});
  EXPECT_TRUE(ApplyYaml(yaml).ok());
}

TEST_F(AdminTest, AnUnusedObjectIsDeletedByItsName) {
  ASSERT_TRUE(ApplyYaml(fmt::format(kPoolYaml, "b", "10.2.0.0/24")).ok());
  v1::DeleteObjectsRequest request;
  v1::ObjectName& name = *request.add_objects();
  name.set_kind("Pool");
  name.set_name("b");
  v1::DeleteObjectsResponse deleted;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::DeleteObjects, request, deleted).ok());
  EXPECT_EQ(deleted.changes(0).action(), "deleted");
  EXPECT_EQ(PoolNames(), std::vector<std::string>{"default 10.1.0.0/24"});
  EXPECT_EQ(Ask(&v1::AdminService::Stub::DeleteObjects, request, deleted).error_code(),
            StatusCode::NOT_FOUND);
}

TEST_F(AdminTest, WhatIsWrongInAFileIsNamedWithItsLineAndNothingChanges) {
  const auto refused = [&](const std::string& yaml) {
    const grpc::Status status = ApplyYaml(yaml);
    EXPECT_EQ(PoolNames(), std::vector<std::string>{"default 10.1.0.0/24"});
    return std::pair(status.error_code(), status.error_message());
  };
  const auto overlap = refused(fmt::format(kPoolYaml, "b", "10.1.0.128/25"));
  EXPECT_EQ(overlap.first, StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(overlap.second, HasSubstr("pools.yaml:6: "));
  const auto host_bits = refused(fmt::format(kPoolYaml, "b", "10.2.0.5/24"));
  EXPECT_EQ(host_bits.first, StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(host_bits.second, HasSubstr("10.2.0.0/24"));
  const auto unknown_key = refused(fmt::format(kPoolYaml, "b", "10.2.0.0/24") + "  colour: blue\n");
  EXPECT_EQ(unknown_key.first, StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(unknown_key.second, HasSubstr("pools.yaml:7: spec.colour"));
  EXPECT_EQ(refused(std::string(2 << 20, '#')).first, StatusCode::INVALID_ARGUMENT);
  // Ten mebibytes do not even reach the parser.
  EXPECT_EQ(refused(std::string(10 << 20, '#')).first, StatusCode::RESOURCE_EXHAUSTED);
  // A dry run judges and does nothing.
  v1::ApplyResponse planned;
  EXPECT_TRUE(ApplyYaml(fmt::format(kPoolYaml, "b", "10.2.0.0/24"), &planned, true).ok());
  EXPECT_EQ(planned.changes(0).action(), "created");
  EXPECT_EQ(PoolNames(), std::vector<std::string>{"default 10.1.0.0/24"});
}

TEST_F(AdminTest, AReleaseOfWhatIsAssignedOrAnothersIsRefused) {
  ConnectNode();
  Assign(0);
  const auto release = [&](const std::string& address, const std::string& node) {
    v1::ReleaseAddressRequest request;
    request.set_address(address);
    request.set_node(node);
    v1::AddressInfo info;
    return Ask(&v1::AdminService::Stub::ReleaseAddress, request, info);
  };
  const grpc::Status in_use = release(TextOf(0), "");
  EXPECT_EQ(in_use.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(in_use.error_message(), HasSubstr("ns/pod-a"));
  EXPECT_EQ(release(TextOf(1), "node9").error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(release("nonsense", "").error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(release("10.1.0.200", "").error_code(), StatusCode::NOT_FOUND);

  ASSERT_TRUE(release(TextOf(1), "node1").ok());
  v1::ServerMessage asked;
  while (stream_->Read(&asked) && !asked.has_reclaim()) {
  }
  EXPECT_EQ(asked.reclaim().configurations(0).base(), addresses_[1]);
}

TEST_F(AdminTest, AnOperatorEndsAnAssignmentWithAReason) {
  ConnectNode();
  Assign(0);
  v1::ReleaseAddressRequest request;
  request.set_address(TextOf(0));
  request.set_force(true);
  v1::AddressInfo info;
  const auto release = [&] { return Ask(&v1::AdminService::Stub::ReleaseAddress, request, info); };
  EXPECT_EQ(release().error_code(), StatusCode::INVALID_ARGUMENT) << "without a reason";
  request.set_reason("its DEL was lost");
  request.set_address(TextOf(1));
  EXPECT_EQ(release().error_code(), StatusCode::FAILED_PRECONDITION) << "nobody uses it";
  request.set_address(TextOf(0));
  ASSERT_TRUE(release().ok());
  v1::ServerMessage told;
  while (stream_->Read(&told) && !told.has_end_assignment()) {
  }
  EXPECT_EQ(told.end_assignment().address(), addresses_[0]);
  EXPECT_EQ(told.end_assignment().generation(), 1U);
  EXPECT_EQ(told.end_assignment().reason(), "its DEL was lost");
}

TEST_F(AdminTest, AMachineThatIsGoneIsForgotten) {
  ConnectNode();
  Assign(0);
  v1::ForgetNodeRequest request;
  request.set_name("node1");
  request.set_in_use(1);
  v1::ForgetNodeResponse forgotten;
  const auto forget = [&] { return Ask(&v1::AdminService::Stub::ForgetNode, request, forgotten); };
  EXPECT_THAT(forget().error_message(), HasSubstr("is connected"));
  stream_->WritesDone();
  grpc::Status status = forget();
  for (int i = 0; i < 200 && !status.ok(); ++i, status = forget()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(forgotten.vm_id(), "vm-1");
  EXPECT_EQ(forgotten.addresses(), 2U);
}

TEST_F(AdminTest, NodesAreDrainedByNameAndUnknownOnesAreNamed) {
  ConnectNode();
  v1::SetNodeModeRequest request;
  request.set_name("node1");
  request.set_mode("draining");
  v1::NodeInfo info;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::SetNodeMode, request, info).ok());
  EXPECT_EQ(info.mode(), "draining");
  EXPECT_EQ(info.target(), 0U);
  request.set_mode("sleeping");
  EXPECT_EQ(Ask(&v1::AdminService::Stub::SetNodeMode, request, info).error_code(),
            StatusCode::INVALID_ARGUMENT);
  request.set_mode("frozen");
  request.set_name("node9");
  const grpc::Status unknown = Ask(&v1::AdminService::Stub::SetNodeMode, request, info);
  EXPECT_EQ(unknown.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(unknown.error_message(), HasSubstr("spokectl node list"));
}

TEST_F(AdminTest, ReservationsAreMadeListedAndEnded) {
  ConnectNode();
  v1::CreateReservationRequest request;
  request.set_name("job-1");
  request.add_nodes("node1");
  request.set_addresses_per_node(3);
  request.set_ttl_ms(60'000);
  v1::ReservationInfo info;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::CreateReservation, request, info).ok());
  EXPECT_EQ(info.addresses_per_node(), 3U);
  EXPECT_EQ(Ask(&v1::AdminService::Stub::CreateReservation, request, info).error_code(),
            StatusCode::ALREADY_EXISTS);
  request.set_name("job-2");
  request.set_nodes(0, "node9");
  EXPECT_EQ(Ask(&v1::AdminService::Stub::CreateReservation, request, info).error_code(),
            StatusCode::NOT_FOUND);
  request.set_nodes(0, "node1");
  request.set_addresses_per_node(999);
  EXPECT_EQ(Ask(&v1::AdminService::Stub::CreateReservation, request, info).error_code(),
            StatusCode::RESOURCE_EXHAUSTED);
  v1::ListReservationsResponse all;
  ASSERT_TRUE(
      Ask(&v1::AdminService::Stub::ListReservations, v1::ListReservationsRequest(), all).ok());
  ASSERT_EQ(all.reservations_size(), 1);
  v1::DeleteReservationRequest end;
  end.set_name("job-1");
  EXPECT_TRUE(Ask(&v1::AdminService::Stub::DeleteReservation, end, info).ok());
  EXPECT_EQ(Ask(&v1::AdminService::Stub::DeleteReservation, end, info).error_code(),
            StatusCode::NOT_FOUND);
}

TEST_F(AdminTest, HistorySaysWhoHadAnAddress) {
  ConnectNode();
  Assign(0);
  v1::GetAddressHistoryRequest request;
  request.set_address(TextOf(0));
  v1::GetAddressHistoryResponse all;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetAddressHistory, request, all).ok());
  ASSERT_EQ(all.entries_size(), 2);
  EXPECT_EQ(all.entries(0).event(), "in_use");
  EXPECT_EQ(all.entries(0).pod_name(), "pod-a");
  EXPECT_EQ(all.entries(1).event(), "attached");
  request.set_address("nonsense");
  EXPECT_EQ(Ask(&v1::AdminService::Stub::GetAddressHistory, request, all).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST_F(AdminTest, QuarantineIsSetSeenAndLifted) {
  v1::QuarantineAddressRequest request;
  request.set_address("10.1.0.9");
  request.set_reason("doubled");
  v1::AddressInfo info;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::QuarantineAddress, request, info).ok());
  EXPECT_EQ(info.state(), "quarantined");
  EXPECT_THAT(info.note(), HasSubstr("doubled"));
  EXPECT_EQ(ListAddresses("quarantined").size(), 1U);
  EXPECT_EQ(Ask(&v1::AdminService::Stub::QuarantineAddress, request, info).error_code(),
            StatusCode::ALREADY_EXISTS);
  request.set_lift(true);
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::QuarantineAddress, request, info).ok());
  EXPECT_EQ(info.state(), "free");
  EXPECT_EQ(Ask(&v1::AdminService::Stub::QuarantineAddress, request, info).error_code(),
            StatusCode::FAILED_PRECONDITION);
}

TEST_F(AdminTest, ANodeSaysHowManyOfItsAddressesNoPodGets) {
  ConnectNode();
  Assign(0);
  v1::QuarantineAddressRequest request;
  v1::AddressInfo info;
  v1::GetNodeRequest get;
  get.set_name("node1");
  for (const size_t i : {size_t{0}, size_t{1}}) {
    request.set_address(TextOf(i));
    ASSERT_TRUE(Ask(&v1::AdminService::Stub::QuarantineAddress, request, info).ok());
    v1::GetNodeResponse node;
    ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetNode, get, node).ok());
    EXPECT_EQ(node.node().attached(), 2U);
    EXPECT_EQ(node.node().withheld(), i) << "a pod keeps the address that it has";
  }
}

TEST_F(AdminTest, ExplainsPodsNodesAndAddresses) {
  ConnectNode();
  Assign(0);
  v1::ExplainResponse out;
  v1::ExplainRequest request;
  request.set_pod("ns/pod-a");
  ASSERT_TRUE(ExplainSubject(request, out).ok());
  EXPECT_THAT(out.details(0), HasSubstr("on node node1"));
  EXPECT_THAT(out.without_adds(0), HasSubstr("did not answer"));  // An older agent is silent.
  request.set_pod("ns/nobody");
  ASSERT_TRUE(ExplainSubject(request, out).ok());
  EXPECT_THAT(out.summary(), HasSubstr("no address is assigned"));
  request.set_pod("nobody");
  EXPECT_EQ(ExplainSubject(request, out).error_code(), StatusCode::INVALID_ARGUMENT);
  request.clear_pod();
  request.set_node("node1");
  ASSERT_TRUE(ExplainSubject(request, out).ok());
  EXPECT_THAT(out.summary(), HasSubstr("node node1"));
  request.set_node("node9");
  EXPECT_EQ(ExplainSubject(request, out).error_code(), StatusCode::NOT_FOUND);
  request.clear_node();
  request.set_address("10.1.0.0");
  ASSERT_TRUE(ExplainSubject(request, out).ok());
  EXPECT_THAT(out.summary(), HasSubstr("never handed out"));
}

TEST_F(AdminTest, ANodeThatTheCloudRefusesIsNotGettingAddresses) {
  cloud_.Forecast({.eta = absl::FromUnixSeconds(2'000'000'000), .waits_for = "its turn"});
  cloud_.FailRequests(absl::PermissionDeniedError("no action networkInterfaces/write"));
  stream_ = node_stub_->Connect(&stream_context_);
  ASSERT_TRUE(stream_->Write(HelloMessage()));
  v1::ExplainRequest request;
  request.set_node("node1");
  v1::ExplainResponse out;
  for (int i = 0; i < 1000 && out.summary().find("refuses") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    out.Clear();
    const grpc::Status asked = ExplainSubject(request, out);
    ASSERT_TRUE(asked.ok() || asked.error_code() == StatusCode::NOT_FOUND);
  }
  EXPECT_EQ(out.summary(), "node node1 gets no addresses: the cloud refuses to change its NIC");
  EXPECT_THAT(out.details(), testing::Contains(HasSubstr("no action networkInterfaces/write")));
  EXPECT_EQ(out.eta_unix_ms(), 0) << "a permission does not come by waiting";
  v1::GetNodeRequest get;
  get.set_name("node1");
  v1::GetNodeResponse node;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetNode, get, node).ok());
  EXPECT_EQ(node.node().cloud_eta_unix_ms(), 0);
  EXPECT_EQ(node.node().cloud_waits_for(), "another attempt: the cloud refused the last");
}

TEST_F(AdminTest, ANodesOwnAddressIsNotFree) {
  v1::AgentMessage hello = HelloMessage();
  const ip::Address own = ip::Address::V4(0x0A0100C8);  // 10.1.0.200
  hello.mutable_hello()->mutable_nics(0)->add_addresses(own.ToBytes());
  stream_ = node_stub_->Connect(&stream_context_);
  ASSERT_TRUE(stream_->Write(hello));
  ASSERT_EQ(ReadAddresses(*stream_, 2).size(), 2U);
  v1::ExplainRequest request;
  request.set_address("10.1.0.200");
  v1::ExplainResponse out;
  ASSERT_TRUE(ExplainSubject(request, out).ok());
  EXPECT_EQ(out.summary(), "10.1.0.200 is the own address of node node1, and for no pod");
  v1::GetAddressRequest show;
  show.set_address("10.1.0.200");
  v1::AddressInfo info;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetAddress, show, info).ok());
  EXPECT_EQ(info.state(), "excluded");
  EXPECT_EQ(info.note(), "the own address of node node1, and for no pod");
  request.set_address("10.1.0.201");
  ASSERT_TRUE(ExplainSubject(request, out).ok());
  EXPECT_EQ(out.summary(), "10.1.0.201 is free");
  v1::WhatIfRequest more;
  more.set_nodes(1);
  more.set_pods_per_node(1);
  v1::WhatIfResponse judged;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::WhatIf, more, judged).ok());
  // 251 are usable, of which the node has two for its pods, and one of its own.
  EXPECT_EQ(judged.limits(0).available(), 248U);
}

TEST_F(AdminTest, NamesThatAreNoneAreNotEmptyLists) {
  v1::GetObjectsRequest objects;
  objects.set_kind("Bogus");
  v1::GetObjectsResponse none;
  const grpc::Status kind = Ask(&v1::AdminService::Stub::GetObjects, objects, none);
  EXPECT_EQ(kind.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(kind.error_message(), HasSubstr("there is no kind \"Bogus\"; the kinds are"));
  for (const bool of_node : {true, false}) {
    v1::ListAddressesRequest request;
    *(of_node ? request.mutable_node() : request.mutable_pool()) = "nope";
    grpc::ClientContext context;
    const auto reader = admin_stub_->ListAddresses(&context, request);
    v1::ListAddressesResponse batch;
    EXPECT_FALSE(reader->Read(&batch));
    EXPECT_EQ(reader->Finish().error_code(), StatusCode::NOT_FOUND);
  }
}

TEST_F(AdminTest, WhatIfNamesTheLimitThatIsInTheWay) {
  v1::WhatIfRequest request;
  request.set_nodes(10);
  request.set_pods_per_node(4);
  v1::WhatIfResponse out;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::WhatIf, request, out).ok());
  EXPECT_TRUE(out.fits());
  request.set_nodes(1000);
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::WhatIf, request, out).ok());
  EXPECT_FALSE(out.fits());
  EXPECT_FALSE(out.limits(0).ok());
  EXPECT_THAT(out.limits(0).remedy(), HasSubstr("spokectl pool"));
  request.set_nodes(0);
  EXPECT_EQ(Ask(&v1::AdminService::Stub::WhatIf, request, out).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST_F(AdminTest, AnAuditOfAConsistentWorldIsCleanAndFindsWhatWasChangedBehindUs) {
  ConnectNode();
  // The agent answers for its inventory from now on.
  std::thread agent([&] {
    v1::ServerMessage message;
    while (stream_->Read(&message)) {
      if (!message.has_inventory_request()) continue;
      v1::AgentMessage answer;
      answer.mutable_inventory()->set_id(message.inventory_request().id());
      for (const std::string& address : addresses_) answer.mutable_inventory()->add_held(address);
      stream_->Write(answer);
    }
  });
  const auto audit = [&] {
    grpc::ClientContext context;
    const auto reader = admin_stub_->Audit(&context, v1::AuditRequest());
    v1::AuditResponse last;
    v1::AuditResponse message;
    while (reader->Read(&message)) last = message;
    EXPECT_TRUE(reader->Finish().ok());
    EXPECT_TRUE(last.done());
    return last;
  };
  clock_.Advance(absl::Minutes(5));
  EXPECT_EQ(audit().differences_size(), 0);
  NicRequest empty{.node = {"node1", "vm-1"}};
  ASSERT_TRUE(cloud_.Apply(empty).ok());
  const v1::AuditResponse found = audit();
  ASSERT_GT(found.differences_size(), 0);
  EXPECT_EQ(found.differences(0).node(), "node1");
  EXPECT_FALSE(found.differences(0).cause().empty());
  EXPECT_EQ(found.nodes_total(), 1U);
  EXPECT_EQ(found.nodes_done(), 1U);
  stream_context_.TryCancel();
  agent.join();
}

TEST_F(AdminTest, ABackupIsAWholeStore) {
  ConnectNode();
  grpc::ClientContext context;
  const auto reader = admin_stub_->Backup(&context, v1::BackupRequest());
  std::string data;
  v1::BackupResponse piece;
  while (reader->Read(&piece)) {
    EXPECT_EQ(piece.offset(), data.size());
    data += piece.data();
  }
  ASSERT_TRUE(reader->Finish().ok());
  EXPECT_EQ(data.size(), piece.total());
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    EXPECT_EQ(entry.path().filename().string().find("backup"), std::string::npos) << entry.path();
  }
  EXPECT_THAT(data, HasSubstr("node/node1/vm-1"));
}

// Whoever has a backup has everything, so it is known who has taken one; and in the copy itself.
TEST_F(AdminTest, ABackupIsOnRecord) {
  grpc::ClientContext context;
  const auto reader = admin_stub_->Backup(&context, v1::BackupRequest());
  std::string data;
  v1::BackupResponse piece;
  while (reader->Read(&piece)) data += piece.data();
  ASSERT_TRUE(reader->Finish().ok());
  v1::ListOperatorLogResponse log;
  ASSERT_TRUE(
      Ask(&v1::AdminService::Stub::ListOperatorLog, v1::ListOperatorLogRequest(), log).ok());
  ASSERT_EQ(log.records_size(), 1);
  EXPECT_EQ(log.records(0).method(), "Backup");
  EXPECT_EQ(log.records(0).what(), "takes a copy of the whole store");
  EXPECT_EQ(log.records(0).from(), "unix socket");
  EXPECT_EQ(log.records(0).role(), "admin");
  EXPECT_EQ(log.records(0).policy_before(), log.records(0).policy_after());
  EXPECT_EQ(log_.Count("operator_change"), 1);
  EXPECT_THAT(data, HasSubstr("takes a copy of the whole store"));
}

TEST_F(AdminTest, ACallThatComesTooLateIsRefusedAndChangesNothing) {
  ConnectNode();
  v1::SetNodeModeRequest request;
  request.set_name("node1");
  request.set_mode("frozen");
  v1::NodeInfo info;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() - std::chrono::seconds(1));
  EXPECT_EQ(admin_stub_->SetNodeMode(&context, request, &info).error_code(),
            StatusCode::DEADLINE_EXCEEDED);
  v1::GetNodeRequest get;
  get.set_name("node1");
  v1::GetNodeResponse node;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetNode, get, node).ok());
  EXPECT_EQ(node.node().mode(), "active");
  EXPECT_EQ(node.addresses_size(), 2);
  EXPECT_EQ(node.node().cloud_lane(), "") << "nothing is forecast";
  cloud_.Forecast({.eta = absl::FromUnixSeconds(2'000'000'000), .waits_for = "its turn"});
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetNode, get, node).ok());
  EXPECT_EQ(node.node().cloud_eta_unix_ms(), 2'000'000'000'000);
  EXPECT_EQ(node.node().cloud_waits_for(), "its turn");
}

TEST_F(AdminTest, EventsAreKeptForWhoAsksLater) {
  ConnectNode();
  v1::ListEventsRequest request;
  request.set_node("node1");
  grpc::ClientContext context;
  const auto reader = admin_stub_->ListEvents(&context, request);
  v1::ListEventsResponse events;
  ASSERT_TRUE(reader->Read(&events));
  EXPECT_EQ(events.events(0).event(), "agent_connected");
  EXPECT_EQ(events.events(0).fields().at("vm"), "vm-1");
}

TEST_F(AdminTest, TopCountsWhoUsesMost) {
  ConnectNode();
  Assign(0);
  v1::GetTopResponse top;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetTop, v1::GetTopRequest(), top).ok());
  EXPECT_EQ(top.nodes(0).in_use(), 1U);
  EXPECT_EQ(top.namespaces(0).name(), "ns");
}

TEST_F(AdminTest, ApplyOfAnOlderVersionThanThePresentIsRefusedWithBoth) {
  v1::GetStatusResponse before;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetStatus, v1::GetStatusRequest(), before).ok());
  v1::ApplyRequest request;
  request.set_expected_version(before.policy_version());
  v1::PolicyFile& file = *request.add_files();
  file.set_text(fmt::format(kPoolYaml, "b", "10.2.0.0/24"));
  v1::ApplyResponse applied;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::Apply, request, applied).ok());
  EXPECT_GT(applied.policy_version(), before.policy_version());

  file.set_text(fmt::format(kPoolYaml, "c", "10.3.0.0/24"));
  v1::ApplyResponse ignored;
  const grpc::Status stale = Ask(&v1::AdminService::Stub::Apply, request, ignored);
  EXPECT_EQ(stale.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(stale.error_message(),
              HasSubstr(fmt::format("version {} now, not of version {}", applied.policy_version(),
                                    before.policy_version())));
  EXPECT_EQ(PoolNames(), (std::vector<std::string>{"default 10.1.0.0/24", "b 10.2.0.0/24"}));
  v1::GetObjectsResponse objects;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetObjects, v1::GetObjectsRequest(), objects).ok());
  request.set_expected_version(objects.policy_version());
  EXPECT_TRUE(Ask(&v1::AdminService::Stub::Apply, request, ignored).ok());
}

// Each is judged against what the others have done, and none is lost.
TEST_F(AdminTest, MayApplyAtTheSameTime) {
  std::vector<std::thread> operators;
  std::vector<grpc::Status> results(8);
  for (size_t i = 0; i < results.size(); ++i) {
    operators.emplace_back([&, i] {
      results[i] = ApplyYaml(fmt::format(
          "apiVersion: spoke/v1\nkind: Team\nmetadata:\n  name: t{}\nspec:\n  namespaces: [n{}]\n",
          i, i / 2));
    });
  }
  for (std::thread& thread : operators) thread.join();
  size_t applied = 0;
  for (const grpc::Status& result : results) applied += result.ok() ? 1 : 0;
  EXPECT_EQ(applied, results.size() / 2) << "a namespace is of one team";
  v1::GetObjectsRequest teams;
  teams.set_kind("Team");
  v1::GetObjectsResponse objects;
  ASSERT_TRUE(Ask(&v1::AdminService::Stub::GetObjects, teams, objects).ok());
  EXPECT_EQ(objects.objects_size(), 4);
}

}  // namespace
}  // namespace spoke::ipam
