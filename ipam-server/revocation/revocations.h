// The deny list as the server has it: in the store, in memory, and in force on sessions that are
// open.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "ipam-server/revocation/deny_list.h"
#include "ipam-server/store/store.h"
#include "lib/os/clock.h"

namespace spoke::ipam {

// Thread-safe. Checks never wait for the store.
class Revocations {
 public:
  // Ends a session at once. Called without a lock of this class held; an unknown session is
  // ignored.
  using Cut = std::function<void(uint64_t session, const absl::Status& why)>;

  // Reads the list. Borrows store and clock, which tells the time of day. Errors: as Store::List();
  // kDataLoss (a damaged record: the message names its key).
  static absl::StatusOr<std::unique_ptr<Revocations>> Open(Store& store, const os::Clock& clock,
                                                           Cut cut);
  Revocations(const Revocations&) = delete;
  Revocations& operator=(const Revocations&) = delete;

  // Whether the peer may be given or keep a certificate. Errors: as DenyList::Check().
  absl::Status Check(const PeerIdentity& peer) const;
  // Admits a session, which from then on is cut when its peer is revoked. Errors: as above.
  absl::Status Admit(uint64_t session, PeerIdentity peer);
  void Forget(uint64_t session);

  // Returns how many sessions were cut. What was revoked before has the new reason and end.
  // `beside` is a record that is written in the same commit; null: none. Errors: as DenyList::Put()
  // and Store::Commit(); after an error of the store it may be in force.
  absl::StatusOr<size_t> Revoke(const DeniedName& name, const Denial& denial,
                                const CompareAndPut* beside = nullptr);
  // Errors: kNotFound; as Store::Commit().
  absl::Status Unrevoke(const DeniedName& name, const CompareAndPut* beside = nullptr);
  // Cuts the sessions whose certificate has ended: whoever connects anew has to show another one.
  // Call it now and then. Returns how many were cut.
  size_t CutEnded();
  // Returns the list as it is in force.
  std::map<DeniedName, Denial> List() const;

 private:
  Revocations(Store& store, const os::Clock& clock, Cut cut)
      : store_(store), clock_(clock), cut_(std::move(cut)) {}
  absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_);
  absl::Status Write(const DeniedName& name, const Denial* denial, const CompareAndPut* beside)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_);
  // Cuts each session for which `judge` returns an error, with that.
  size_t CutWhere(const std::function<absl::Status(const PeerIdentity&, absl::Time)>& judge);

  Store& store_;
  const os::Clock& clock_;
  const Cut cut_;
  absl::Mutex change_ ABSL_ACQUIRED_BEFORE(mutex_);  // Held while the store is asked.
  std::map<DeniedName, int64_t> revisions_ ABSL_GUARDED_BY(change_);
  bool doubtful_ ABSL_GUARDED_BY(change_) = false;  // The store may have another list.
  mutable absl::Mutex mutex_;
  DenyList list_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, PeerIdentity> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ipam
