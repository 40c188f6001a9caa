#include "tests/ha/history/fence_stripper.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "fmt/core.h"
#include "lib/base/check.h"
#include "proto/etcd/rpc.grpc.pb.h"

namespace spoke::ha {
namespace {

namespace pb = etcdserverpb;

// Carries one call of a server on to the member.
template <typename Call>
grpc::Status PassOn(const grpc::ServerContext& from, const Call& call) {
  grpc::ClientContext to;
  to.set_deadline(from.deadline());
  return call(to);
}

class KvService final : public pb::KV::Service {
 public:
  KvService(const std::shared_ptr<grpc::Channel>& member, std::string leader_key,
            FenceStripper::Fence fence)
      : member_(pb::KV::NewStub(member)), leader_key_(std::move(leader_key)), fence_(fence) {}

  grpc::Status Range(grpc::ServerContext* context, const pb::RangeRequest* request,
                     pb::RangeResponse* response) override {
    if (request->key() == leader_key_ && request->range_end().empty()) {
      const absl::MutexLock lock(&mutex_);
      if (held_leader_.has_value()) {
        *response = *held_leader_;
        return grpc::Status::OK;
      }
    }
    return PassOn(*context, [&](auto& to) { return member_->Range(&to, *request, response); });
  }

  grpc::Status Txn(grpc::ServerContext* context, const pb::TxnRequest* request,
                   pb::TxnResponse* response) override {
    pb::TxnRequest changed = *request;
    if (fence_ == FenceStripper::Fence::kTakenOut && !IsForLeadership(*request)) {
      changed.clear_compare();
    }
    return PassOn(*context, [&](auto& to) { return member_->Txn(&to, changed, response); });
  }

  grpc::Status Compact(grpc::ServerContext* context, const pb::CompactionRequest* request,
                       pb::CompactionResponse* response) override {
    return PassOn(*context, [&](auto& to) { return member_->Compact(&to, *request, response); });
  }

  void HoldLeader() {
    grpc::ClientContext context;
    pb::RangeRequest request;
    request.set_key(leader_key_);
    pb::RangeResponse now;
    CHECK(member_->Range(&context, request, &now).ok(), "the member answers");
    const absl::MutexLock lock(&mutex_);
    held_leader_ = std::move(now);
  }

 private:
  bool IsForLeadership(const pb::TxnRequest& request) const {
    return std::any_of(
        request.success().begin(), request.success().end(),
        [&](const pb::RequestOp& op) { return op.request_put().key() == leader_key_; });
  }

  const std::unique_ptr<pb::KV::Stub> member_;
  const std::string leader_key_;
  const FenceStripper::Fence fence_;
  absl::Mutex mutex_;
  std::optional<pb::RangeResponse> held_leader_ ABSL_GUARDED_BY(mutex_);
};

class LeaseService final : public pb::Lease::Service {
 public:
  explicit LeaseService(const std::shared_ptr<grpc::Channel>& member)
      : member_(pb::Lease::NewStub(member)) {}

  grpc::Status LeaseGrant(grpc::ServerContext* context, const pb::LeaseGrantRequest* request,
                          pb::LeaseGrantResponse* response) override {
    return PassOn(*context, [&](auto& to) { return member_->LeaseGrant(&to, *request, response); });
  }

  grpc::Status LeaseRevoke(grpc::ServerContext* context, const pb::LeaseRevokeRequest* request,
                           pb::LeaseRevokeResponse* response) override {
    return PassOn(*context,
                  [&](auto& to) { return member_->LeaseRevoke(&to, *request, response); });
  }

  // A renewal has one answer.
  grpc::Status LeaseKeepAlive(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<pb::LeaseKeepAliveResponse, pb::LeaseKeepAliveRequest>* stream)
      override {
    return PassOn(*context, [&](auto& to) {
      const auto member = member_->LeaseKeepAlive(&to);
      pb::LeaseKeepAliveRequest request;
      pb::LeaseKeepAliveResponse response;
      while (stream->Read(&request) && member->Write(request) && member->Read(&response)) {
        stream->Write(response);
      }
      member->WritesDone();
      return member->Finish();
    });
  }

 private:
  const std::unique_ptr<pb::Lease::Stub> member_;
};

class WatchService final : public pb::Watch::Service {
 public:
  explicit WatchService(const std::shared_ptr<grpc::Channel>& member)
      : member_(pb::Watch::NewStub(member)) {}

  grpc::Status Watch(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<pb::WatchResponse, pb::WatchRequest>* stream) override {
    return PassOn(*context, [&](auto& to) {
      const auto member = member_->Watch(&to);
      std::thread asking([&] {
        pb::WatchRequest request;
        while (stream->Read(&request)) member->Write(request);
        to.TryCancel();  // The server has gone.
      });
      pb::WatchResponse response;
      while (member->Read(&response)) stream->Write(response);
      context->TryCancel();  // Or the member has.
      asking.join();
      return member->Finish();
    });
  }

 private:
  const std::unique_ptr<pb::Watch::Stub> member_;
};

class MaintenanceService final : public pb::Maintenance::Service {
 public:
  explicit MaintenanceService(const std::shared_ptr<grpc::Channel>& member)
      : member_(pb::Maintenance::NewStub(member)) {}

  grpc::Status Alarm(grpc::ServerContext* context, const pb::AlarmRequest* request,
                     pb::AlarmResponse* response) override {
    return PassOn(*context, [&](auto& to) { return member_->Alarm(&to, *request, response); });
  }
  grpc::Status Status(grpc::ServerContext* context, const pb::StatusRequest* request,
                      pb::StatusResponse* response) override {
    return PassOn(*context, [&](auto& to) { return member_->Status(&to, *request, response); });
  }
  grpc::Status Defragment(grpc::ServerContext* context, const pb::DefragmentRequest* request,
                          pb::DefragmentResponse* response) override {
    return PassOn(*context, [&](auto& to) { return member_->Defragment(&to, *request, response); });
  }

 private:
  const std::unique_ptr<pb::Maintenance::Stub> member_;
};

}  // namespace

class FenceStripper::Services {
 public:
  Services(const std::shared_ptr<grpc::Channel>& member, const std::string& leader_key, Fence fence)
      : kv(member, leader_key, fence), lease(member), watch(member), maintenance(member) {}

  KvService kv;
  LeaseService lease;
  WatchService watch;
  MaintenanceService maintenance;
  std::unique_ptr<grpc::Server> server;  // The last: it uses the others.
};

FenceStripper::FenceStripper(const std::string& member, const std::string& leader_key, Fence fence)
    : services_(std::make_unique<Services>(
          grpc::CreateChannel(member, grpc::InsecureChannelCredentials()), leader_key, fence)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(&services_->kv);
  builder.RegisterService(&services_->lease);
  builder.RegisterService(&services_->watch);
  builder.RegisterService(&services_->maintenance);
  services_->server = builder.BuildAndStart();
  CHECK(services_->server != nullptr, "loopback has a free port");
}

FenceStripper::~FenceStripper() {
  services_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
}

void FenceStripper::HoldLeader() { services_->kv.HoldLeader(); }

std::string FenceStripper::endpoint() const { return fmt::format("http://127.0.0.1:{}", port_); }

}  // namespace spoke::ha
