// The authority of the cluster: signs certificates of agents and servers, says whom to trust, and
// changes its root in time. It lies in the store, sealed, where a key to seal with is configured;
// else in a directory of the one server, as it was before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ipam-server/authority/roots.h"
#include "ipam-server/authority/seal_key.h"
#include "ipam-server/store/store.h"
#include "lib/telemetry/log.h"
#include "lib/tls/authority.h"

namespace spoke::ipam {

// Beside the store: what was last stored, still sealed. It comes back from here when the store was
// lost.
inline constexpr const char* kSealedCopy = "authority.sealed";
// What a listener reads of an authority in the store.
inline constexpr const char* kTrustedFile = "roots.pem";
// An authority that was taken over from a directory may have signed certificates of this life.
inline constexpr absl::Duration kFormerCertificateLife = absl::Hours(24 * 30);

// Thread-safe. Reading never waits for the store.
class ClusterAuthority {
 public:
  // The authority in the files ca.key and ca.pem of `directory`, as ipam::OpenAuthority() makes and
  // reads it. Its root stays the same. Errors: as OpenAuthority().
  static absl::StatusOr<std::unique_ptr<ClusterAuthority>> OpenDirectory(
      const std::string& directory, absl::Time now);

  struct Place {
    Store& store;  // Borrowed.
    SealKey key;
    std::string directory;  // Of this server: see kSealedCopy and kTrustedFile.
  };
  // The authority in the store. Where there is none yet it is, in this order: what a sealed copy in
  // the directory has; that of the directory's files ca.key and ca.pem, which stay as they are; a
  // new one. A copy that is newer than the store counts in its place. `life`: of the certificates
  // that are to be signed. Errors: as DecodeRoots(), OpenAuthority(), Store::Get() and
  // Store::Commit(); what errno says of the directory. With another key than the store's secrets
  // are sealed under, nothing is changed.
  static absl::StatusOr<std::unique_ptr<ClusterAuthority>> OpenStored(Place place,
                                                                      absl::Duration life,
                                                                      absl::Time now,
                                                                      telemetry::Log& log);
  ClusterAuthority(const ClusterAuthority&) = delete;
  ClusterAuthority& operator=(const ClusterAuthority&) = delete;

  // The root that signs now.
  tls::Authority signing() const;
  // Returns the certificates in PEM whose signatures count, the one that signs first.
  std::string trusted() const;
  Roots roots() const;

  // Begins a rotation to a new root. `beside` is a record that is written in the same commit; null:
  // none. Errors: kFailedPrecondition (one is under way, or the
  // authority is in a directory); as Store::Commit().
  absl::Status Rotate(absl::Time now, const CompareAndPut* beside = nullptr);
  // Does what time makes due of a rotation. True: the roots have changed. Errors: as
  // Store::Commit(); it is tried again with the next call.
  absl::StatusOr<bool> Step(absl::Time now);

 private:
  ClusterAuthority(std::unique_ptr<Place> place, Roots roots, int64_t revision);

  absl::Status Change(const Roots& roots, const CompareAndPut* beside = nullptr)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_);
  absl::Status ReadAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_);

  const std::unique_ptr<const Place> place_;         // nullptr: a directory.
  absl::Mutex change_ ABSL_ACQUIRED_BEFORE(mutex_);  // Held while the store is asked.
  int64_t revision_ ABSL_GUARDED_BY(change_) = 0;
  bool doubtful_ ABSL_GUARDED_BY(change_) = false;    // The store may have another record.
  bool beside_due_ ABSL_GUARDED_BY(change_) = false;  // The files of the directory are older.
  mutable absl::Mutex mutex_;
  Roots roots_ ABSL_GUARDED_BY(mutex_);
};

// Returns the key by which marks of the store were signed before there was a seal key; empty: none
// did. The file store.key of `directory` is taken over into the store at the first call, and stays
// as it is. Errors: as DecodeFormerMarkKey(), Store::Get() and Store::Commit();
// kFailedPrecondition (store.key is no key).
absl::StatusOr<std::string> FormerMarkKey(Store& store, const SealKey& key,
                                          const std::string& directory);

}  // namespace spoke::ipam
