#include "ipam-server/authority/cluster_authority.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "fmt/core.h"
#include "ipam-server/authority/authority_files.h"
#include "ipam-server/authority/authority_record.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/tls/certificate.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxCopyBytes = 1U << 20U;
constexpr size_t kMaxKeyFileBytes = 1024;
constexpr size_t kMarkKeyBytes = 32;

absl::StatusOr<std::string> ReadIfThere(const std::string& path, size_t max_bytes) {
  auto text = os::ReadFile(path, max_bytes);
  if (absl::IsNotFound(text.status())) return std::string();
  return text;
}

absl::Status Write(const std::string& path, std::string_view content) {
  return os::WriteFileAtomic(path, content, os::Durability::kSurvivesPower, 0600);
}

// What listeners read, and what comes back when the store was lost.
absl::Status WriteBeside(const std::string& directory, const Roots& roots,
                         std::string_view record) {
  RETURN_IF_ERROR(Write(directory + "/" + kTrustedFile, TrustedPem(roots)));
  return Write(directory + "/" + kSealedCopy, record);
}

absl::StatusOr<int64_t> Put(Store& store, std::string_view key, std::string value, int64_t expected,
                            const CompareAndPut* beside = nullptr) {
  std::vector<CompareAndPut> batch = {
      {.key = std::string(key), .value = std::move(value), .expected = expected}};
  if (beside != nullptr) batch.push_back(*beside);
  ASSIGN_OR_RETURN(const std::vector<int64_t> revisions, store.Commit(batch));
  return revisions.front();
}

std::string CopyOf(const ClusterAuthority::Place& place) {
  return place.directory + "/" + kSealedCopy;
}

// Returns when the roots last changed.
absl::Time ChangedAt(const Roots& roots) {
  absl::Time last = absl::InfinitePast();
  for (const Root& root : roots) last = std::max(last, root.since);
  return last;
}

// Returns the roots that `stored` has, or those of the copy beside it where that is newer: a backup
// of the store was restored, and agents have certificates of what came after it.
absl::StatusOr<Roots> NewestRoots(const StoredRecord& stored, const ClusterAuthority::Place& place,
                                  telemetry::Log& log) {
  ASSIGN_OR_RETURN(Roots roots, DecodeRoots(stored.value, place.key));
  ASSIGN_OR_RETURN(const std::string copy, ReadIfThere(CopyOf(place), kMaxCopyBytes));
  auto copied = DecodeRoots(copy, place.key);
  if (!copied.ok() || ChangedAt(*copied) <= ChangedAt(roots)) return roots;
  log.Warn("authority_restored", {{"file", CopyOf(place)}});
  return copied;
}

// Returns the roots that a store without any begins with.
absl::StatusOr<Roots> FirstRoots(const ClusterAuthority::Place& place, absl::Duration life,
                                 absl::Time now, telemetry::Log& log) {
  ASSIGN_OR_RETURN(const std::string copy, ReadIfThere(CopyOf(place), kMaxCopyBytes));
  if (!copy.empty()) {
    auto roots = DecodeRoots(copy, place.key);
    if (!roots.ok()) {
      return base::Annotate(roots.status(), fmt::format("the store has no authority, and the copy "
                                                        "of a former one in {} is of no use",
                                                        CopyOf(place)));
    }
    log.Warn("authority_restored", {{"file", CopyOf(place)}});
    return roots;
  }
  ASSIGN_OR_RETURN(const std::string key, ReadIfThere(place.directory + "/ca.key", kMaxCopyBytes));
  if (!key.empty()) {
    ASSIGN_OR_RETURN(const tls::Authority former, OpenAuthority(place.directory, now));
    log.Info("authority_taken_over",
             {{"files", fmt::format("{0}/ca.key {0}/ca.pem", place.directory)}});
    return Roots{{.certificate = former.certificate,
                  .key = former.key,
                  .state = RootState::kSigning,
                  .since = now,
                  .longest_life = std::max(life, kFormerCertificateLife)}};
  }
  ASSIGN_OR_RETURN(const tls::Authority made, MakeAuthority(now));
  return Roots{{.certificate = made.certificate,
                .key = made.key,
                .state = RootState::kSigning,
                .since = now,
                .longest_life = life}};
}

}  // namespace

ClusterAuthority::ClusterAuthority(std::unique_ptr<Place> place, Roots roots, int64_t revision)
    : place_(std::move(place)), revision_(revision), roots_(std::move(roots)) {}

absl::StatusOr<std::unique_ptr<ClusterAuthority>> ClusterAuthority::OpenDirectory(
    const std::string& directory, absl::Time now) {
  ASSIGN_OR_RETURN(const tls::Authority authority, OpenAuthority(directory, now));
  Roots roots = {{.certificate = authority.certificate,
                  .key = authority.key,
                  .state = RootState::kSigning,
                  .since = now,
                  .longest_life = absl::ZeroDuration()}};
  return std::unique_ptr<ClusterAuthority>(new ClusterAuthority(nullptr, std::move(roots), 0));
}

absl::StatusOr<std::unique_ptr<ClusterAuthority>> ClusterAuthority::OpenStored(
    Place place, absl::Duration life, absl::Time now, telemetry::Log& log) {
  RETURN_IF_ERROR(os::MakeDirectory(place.directory));
  ASSIGN_OR_RETURN(const auto found, place.store.Get(kRootsKey));
  Roots roots;
  if (found) {
    ASSIGN_OR_RETURN(roots, NewestRoots(*found, place, log));
  } else {
    ASSIGN_OR_RETURN(roots, FirstRoots(place, life, now, log));
  }
  // That a longer life may be signed is stored before it is.
  Roots next = PlanRotation(WithLife(std::move(roots), life), now);
  ASSIGN_OR_RETURN(const std::string record, EncodeRoots(next, place.key));
  ASSIGN_OR_RETURN(const int64_t revision,
                   Put(place.store, kRootsKey, record, found ? found->revision : 0));
  RETURN_IF_ERROR(WriteBeside(place.directory, next, record));
  return std::unique_ptr<ClusterAuthority>(
      new ClusterAuthority(std::make_unique<Place>(std::move(place)), std::move(next), revision));
}

tls::Authority ClusterAuthority::signing() const {
  absl::MutexLock lock(&mutex_);
  const Root& root = SigningRoot(roots_);
  return {.certificate = root.certificate, .key = root.key};
}

std::string ClusterAuthority::trusted() const {
  absl::MutexLock lock(&mutex_);
  return TrustedPem(roots_);
}

Roots ClusterAuthority::roots() const {
  absl::MutexLock lock(&mutex_);
  return roots_;
}

absl::Status ClusterAuthority::Rotate(absl::Time now, const CompareAndPut* beside) {
  if (place_ == nullptr) {
    return absl::FailedPreconditionError(
        "the authority is in a directory of this server, where its root stays the same: configure "
        "seal_key_file, which takes it over into the store");
  }
  absl::MutexLock change(&change_);
  if (doubtful_) RETURN_IF_ERROR(ReadAgain());
  ASSIGN_OR_RETURN(const tls::Authority made, MakeAuthority(now));
  ASSIGN_OR_RETURN(const Roots next, BeginRotation(roots(), made.certificate, made.key, now));
  return Change(next, beside);
}

absl::StatusOr<bool> ClusterAuthority::Step(absl::Time now) {
  if (place_ == nullptr) return false;
  absl::MutexLock change(&change_);
  if (doubtful_) RETURN_IF_ERROR(ReadAgain());
  const Roots present = roots();
  const Roots next = PlanRotation(present, now);
  if (next != present) {
    RETURN_IF_ERROR(Change(next));
    return true;
  }
  if (!beside_due_) return false;
  ASSIGN_OR_RETURN(const std::string record, EncodeRoots(present, place_->key));
  RETURN_IF_ERROR(WriteBeside(place_->directory, present, record));
  beside_due_ = false;
  return true;
}

absl::Status ClusterAuthority::Change(const Roots& next, const CompareAndPut* beside) {
  ASSIGN_OR_RETURN(const std::string record, EncodeRoots(next, place_->key));
  const auto revision = Put(place_->store, kRootsKey, record, revision_, beside);
  doubtful_ = !revision.ok();
  if (!revision.ok()) return base::Annotate(revision.status(), "store the authority's roots");
  revision_ = *revision;
  {
    absl::MutexLock lock(&mutex_);
    roots_ = next;
  }
  beside_due_ = true;
  RETURN_IF_ERROR(WriteBeside(place_->directory, next, record));
  beside_due_ = false;
  return absl::OkStatus();
}

absl::Status ClusterAuthority::ReadAgain() {
  ASSIGN_OR_RETURN(const auto found, place_->store.Get(kRootsKey));
  if (!found) return absl::DataLossError("the authority has gone from the store");
  ASSIGN_OR_RETURN(Roots read, DecodeRoots(found->value, place_->key));
  RETURN_IF_ERROR(WriteBeside(place_->directory, read, found->value));
  revision_ = found->revision;
  doubtful_ = false;
  absl::MutexLock lock(&mutex_);
  roots_ = std::move(read);
  return absl::OkStatus();
}

absl::StatusOr<std::string> FormerMarkKey(Store& store, const SealKey& key,
                                          const std::string& directory) {
  ASSIGN_OR_RETURN(const auto found, store.Get(kFormerMarkKeyKey));
  if (found) return DecodeFormerMarkKey(found->value, key);
  ASSIGN_OR_RETURN(const std::string text, ReadIfThere(directory + "/store.key", kMaxKeyFileBytes));
  if (text.empty()) return std::string();
  const absl::string_view digits = absl::StripAsciiWhitespace({text.data(), text.size()});
  const std::string former = absl::HexStringToBytes(digits);
  if (former.size() != kMarkKeyBytes) {
    return absl::FailedPreconditionError(fmt::format(
        "{}/store.key is no key: restore it, or remove it and let `spokectl recovery confirm` take "
        "the nodes in anew",
        directory));
  }
  ASSIGN_OR_RETURN(std::string record, EncodeFormerMarkKey(former, key));
  RETURN_IF_ERROR(Put(store, kFormerMarkKeyKey, std::move(record), 0).status());
  return former;
}

}  // namespace spoke::ipam
