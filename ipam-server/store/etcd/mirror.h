// What a server that stands by keeps of the store: every record as it is in etcd, not decoded, and
// who leads. It follows a watch in the order of revisions; where the history it needs has been
// compacted, it reads everything again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ipam-server/store/etcd/connection.h"
#include "ipam-server/store/etcd/layout.h"
#include "ipam-server/store/etcd/leader_record.h"
#include "ipam-server/store/store.h"
#include "lib/os/unique_fd.h"

namespace spoke::ipam::etcd {

// Who leads, by its key.
struct Leader {
  LeaderRecord record;
  int64_t revision = 0;  // Of the key: LeadershipSettings::depose. Rises with each raised fence.
  int64_t lease = 0;     // Of its leadership: another one for each leader and each time it leads.

  bool operator==(const Leader&) const = default;
};

struct MirrorStats {
  int64_t records = 0;
  int64_t revision = 0;    // Up to which it is complete.
  int64_t full_reads = 0;  // The first among them.
  int64_t broken_watches = 0;
  absl::Duration age;  // Since it was last known to have all that there was of the leader's key.
};

// Thread-safe. Follows on a thread of its own. Another one asks the members twice a second who
// leads: a watch with a member that is silent says nothing, and is ended when it is behind.
class Mirror {
 public:
  // Returns when everything has been read once. Errors: as Connection::Range(); kResourceExhausted
  // (out of descriptors).
  static absl::StatusOr<std::unique_ptr<Mirror>> Open(std::shared_ptr<Connection> connection,
                                                      const std::string& prefix);
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  // As Store::List(), without a call: holds the mirror up while it visits.
  void List(const ListOptions& options, const Store::Visit& visit) const;

  // nullopt: nobody leads.
  std::optional<Leader> CurrentLeader() const;

  // An eventfd that becomes readable when CurrentLeader() has changed; who waits for it reads it
  // before it looks.
  int leader_changed() const { return leader_changed_.get(); }

  // Whether everything up to `revision` is in the mirror within `time`. After a server has won with
  // that fence (EtcdStore::Fence()) no record changes but by that server.
  bool AwaitRevision(int64_t revision, absl::Duration time) const;

  // Shared with the store of a server that takes over, which then need not connect.
  const std::shared_ptr<Connection>& connection() const { return connection_; }

  MirrorStats stats() const;

 private:
  Mirror(std::shared_ptr<Connection> connection, Layout layout, os::UniqueFd leader_changed);
  absl::Status ReadAll();
  void Follow();
  void Check();
  bool IsBehind(int64_t leader_revision) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WatchOnce();
  bool Apply(const etcdserverpb::WatchResponse& response);
  void SetLeader(std::optional<Leader> leader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Connection> connection_;
  const Layout layout_;
  const os::UniqueFd leader_changed_;
  mutable absl::Mutex mutex_;
  std::map<std::string, StoredRecord, std::less<>> records_ ABSL_GUARDED_BY(mutex_);
  std::optional<Leader> leader_ ABSL_GUARDED_BY(mutex_);
  MirrorStats stats_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext* watching_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t agreed_ms_ ABSL_GUARDED_BY(mutex_) = 0;  // When the last check agreed.
  int64_t missed_ ABSL_GUARDED_BY(mutex_) = -1;    // What the last check found and we have not.
  std::thread follower_;
  std::thread checker_;
};

}  // namespace spoke::ipam::etcd
