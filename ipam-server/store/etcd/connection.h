// Calls of etcd's v3 API with any of a cluster's members: one that does not answer is followed by
// the next at once, and all calls of a connection must come from one cluster.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ipam-server/store/etcd/endpoint.h"
#include "ipam-server/store/etcd/verdict.h"
#include "proto/etcd/rpc.grpc.pb.h"

namespace spoke::ipam::etcd {

// How members are reached and what they are shown.
struct Access {
  std::vector<Endpoint> endpoints;
  // PEM files. With endpoints of https the authority that signed the members' certificates is
  // required; a certificate and its key go together.
  std::string ca;
  std::string certificate;
  std::string key;
  std::string user;         // Empty: none.
  std::string password;     // Of the user.
  uint64_t cluster_id = 0;  // The cluster that it must be; 0: the first that answers.
};

// How long one call may take.
struct CallTime {
  absl::Duration attempt = absl::Seconds(1);   // With one member, until the next is asked.
  absl::Duration patience = absl::Seconds(5);  // With all of them.
};

// Thread-safe. Every call blocks; errors are those of Judge() (verdict.h), and
// kFailedPrecondition when the answer comes from another cluster.
class Connection {
 public:
  // Connects, authenticates, and asks the members for their versions. Errors, besides: kNotFound
  // (no endpoint's name has an address; a file is not there); kUnimplemented (a member is older
  // than 3.4); kUnavailable (no member answers); as os::ReadFile() for the files.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(Access access);

  absl::Status Range(const etcdserverpb::RangeRequest& request,
                     etcdserverpb::RangeResponse& response, const CallTime& time = {});
  // Repeats a call that is in doubt with the next member: it must compare what makes a repetition
  // harmless. `in_doubt` becomes true when one of the attempts may have happened, or may yet
  // happen after this returns.
  absl::Status Txn(const etcdserverpb::TxnRequest& request, etcdserverpb::TxnResponse& response,
                   bool& in_doubt, const CallTime& time = {});
  // Forgets what was before `revision`; with `wait`, returns when the space can be used again.
  absl::Status Compact(int64_t revision, bool wait);
  // A lease of `seconds`; its id.
  absl::StatusOr<int64_t> Grant(int64_t seconds);
  absl::Status Revoke(int64_t lease);
  // Seconds that the lease has left; 0: there is no such lease any more.
  absl::StatusOr<int64_t> KeepAlive(int64_t lease, const CallTime& time);
  absl::StatusOr<etcdserverpb::AlarmResponse> Alarm(const etcdserverpb::AlarmRequest& request);

  // Of one member, by its place among the endpoints; no other is asked.
  size_t members() const { return members_.size(); }
  absl::StatusOr<etcdserverpb::StatusResponse> StatusOf(size_t member);
  absl::Status Defragment(size_t member);

  // A watch with the member that answers now. The caller ends it by `context`, and when it breaks
  // calls NextMember() with what `member` was set to, before it begins another.
  using WatchStream =
      grpc::ClientReaderWriter<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse>;
  std::unique_ptr<WatchStream> Watch(grpc::ClientContext& context, size_t& member);
  void NextMember(size_t failed);
  // Whether an answer comes from the cluster. Errors: kFailedPrecondition.
  absl::Status CheckCluster(const etcdserverpb::ResponseHeader& header) const;

  // Why the members refuse what is called: what each that was asked last said, with its endpoint.
  // OK while they take calls for records; others, a lease's, they may take from anybody. A call
  // that is refused for itself, or for a full database, which can be read, changes nothing here.
  absl::Status Trouble() const;

  uint64_t cluster_id() const { return cluster_id_; }
  std::string Describe() const;  // "https://a:2379,https://b:2379"

 private:
  struct Member {
    explicit Member(const std::shared_ptr<grpc::Channel>& channel);

    std::unique_ptr<etcdserverpb::KV::Stub> kv;
    std::unique_ptr<etcdserverpb::Watch::Stub> watch;
    std::unique_ptr<etcdserverpb::Lease::Stub> lease;
    std::unique_ptr<etcdserverpb::Maintenance::Stub> maintenance;
    std::unique_ptr<etcdserverpb::Auth::Stub> auth;
  };
  // One attempt; `header` of the answer, once there is one.
  using Attempt = std::function<grpc::Status(Member& member, grpc::ClientContext& context,
                                             const etcdserverpb::ResponseHeader*& header)>;

  explicit Connection(Access access) : access_(std::move(access)) {}
  absl::Status Start();
  absl::Status CheckMembers();
  absl::Status Try(const Attempt& attempt, const CallTime& time, bool* in_doubt);
  Verdict TryMember(size_t index, const Attempt& attempt, absl::Time deadline);
  absl::Status TryOnly(size_t index, const Attempt& attempt, absl::Duration time);
  absl::Status Authenticate(size_t index, absl::Time deadline);
  absl::Status TryForRecords(const Attempt& attempt, const CallTime& time, bool* in_doubt);
  void NoteTrouble(const absl::Status& failure);
  void Prepare(grpc::ClientContext& context, absl::Time deadline) const;

  const Access access_;
  std::vector<std::unique_ptr<Member>> members_;
  uint64_t cluster_id_ = 0;  // Set once, while it opens.
  mutable absl::Mutex mutex_;
  size_t current_ ABSL_GUARDED_BY(mutex_) = 0;  // The member that is asked first.
  std::string token_ ABSL_GUARDED_BY(mutex_);
  absl::Status trouble_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ipam::etcd
