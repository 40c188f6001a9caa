// Being the one server that writes: a key under a lease, and a fence that every write compares.
//
// The lease is kept alive from a thread, and only while `alive` says that the program's loop turns.
// Who stalls past the end of its lease may still believe that it leads; its writes then fail by the
// fence. Times are of CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ipam-server/store/etcd/connection.h"

namespace spoke::ipam::etcd {

// The longest that a commit holds its thread where nothing is wrong with the process. The fence may
// have to be raised first, with members that do not answer: two calls of CallTime().patience, 10 s.
// Then comes a chunk of the greatest size, 11 s at the very most (writer.cc). Members that slow are
// a fault of their own, so that a little less than the sum is enough.
inline constexpr absl::Duration kLongestCommit = absl::Seconds(20);

struct LeadershipSettings {
  std::string key;                          // Of etcd's.
  std::string name;                         // The server's, for people.
  std::string address;                      // As LeaderRecord has it.
  absl::Duration lease = absl::Seconds(3);  // Whole seconds; etcd makes less than 2 s longer.
  // Asked before each renewal, on the keeper's thread. The loop waits for the store in a commit, so
  // its silence may last for kLongestCommit without a fault.
  std::function<bool()> alive = [] { return true; };
  // Called once, when the leadership is known to be lost: on the keeper's thread, or on that of a
  // commit. The process has to end.
  std::function<void(const absl::Status& why)> on_lost = [](const absl::Status&) {};
  // Revision of the leader's key that may be overthrown (Leader::revision); 0: none.
  int64_t depose = 0;
  int64_t deposed_lease = 0;  // The lease of that leader, which is ended then; 0: unknown.
};

// Thread-safe.
class Leadership {
 public:
  // Borrows `connection`. Errors: kAlreadyExists (another server leads; the message names it); as
  // Connection's.
  static absl::StatusOr<std::unique_ptr<Leadership>> Win(Connection& connection,
                                                         LeadershipSettings settings);
  // Gives the leadership up, so that the next server need not wait for the lease to end.
  ~Leadership();
  Leadership(const Leadership&) = delete;
  Leadership& operator=(const Leadership&) = delete;

  // A transaction of ours compares that the key has this revision of modification.
  int64_t fence() const;
  const std::string& key() const { return settings_.key; }
  int64_t lease() const { return lease_; }

  // Makes every write that is still on its way fail. Errors: kFailedPrecondition (the leadership is
  // lost); kUnavailable (try again; nothing may be read or written before it succeeds).
  absl::Status RaiseFence();

  // What the key holds now, as a transaction found it. Errors: kFailedPrecondition (it is not
  // ours: the leadership is lost).
  absl::Status Check(const etcdserverpb::RangeResponse& found);

  // How long nobody else can have become leader, from now on; zero and less: somebody may have.
  absl::Duration Margin() const;

  // OK until the leadership is known to be lost. Errors: kFailedPrecondition (says how).
  absl::Status lost() const;

 private:
  Leadership(Connection& connection, LeadershipSettings settings);
  absl::Status Campaign();
  absl::Status Write(etcdserverpb::Compare::CompareTarget target, int64_t revision);
  absl::Status Look(const CallTime& time);
  absl::Status Lose(const std::string& why);
  void KeepAlive();

  Connection& connection_;
  const LeadershipSettings settings_;
  int64_t lease_ = 0;
  absl::Mutex raising_;  // One RaiseFence() at a time.
  mutable absl::Mutex mutex_;
  int64_t fence_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t renewed_ms_ ABSL_GUARDED_BY(mutex_) = 0;  // When the last renewal was sent.
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread keeper_;
};

}  // namespace spoke::ipam::etcd
