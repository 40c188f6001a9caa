// The key that is the same on all servers of a cluster and in no store: what is secret in the store
// is sealed under it, and the marks that nodes keep of the store are signed by it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam {

inline constexpr size_t kLeastSealKeyBytes = 32;

struct SealKey {
  std::string seal;         // Seals secrets in the store.
  std::string mark;         // Signs marks of the store.
  std::string fingerprint;  // Tells keys apart, and nothing of the key.

  // Makes the keys from the text of a file: 64 or more hexadecimal digits, with white space around
  // them or not, or else 32 or more bytes that count as they are. Errors: kInvalidArgument (too
  // short or too long, or one byte over and over); kInternal.
  static absl::StatusOr<SealKey> From(std::string_view text);
};

// Reads `path`. Errors: as errno says; as SealKey::From(), with the path.
absl::StatusOr<SealKey> ReadSealKey(const std::string& path);

// Does the same, and compares it with the store. A file that is missing is made, with mode 0600, if
// `may_make` and nothing in `store` is sealed yet; `made` says whether it was. Errors: as
// ReadSealKey(); kFailedPrecondition (what is in the store is sealed under another key: the text
// has both fingerprints; nothing was changed).
struct OpenedSealKey {
  SealKey key;
  bool made = false;
};
absl::StatusOr<OpenedSealKey> OpenSealKey(const std::string& path, bool may_make, Store& store);

// Seals `secret`, which belongs into the record `record`; `of` says which one it is there.
absl::StatusOr<std::string> SealFor(const SealKey& key, std::string_view record,
                                    std::string_view of, std::string_view secret);
// Errors: kDataLoss (damaged, or moved here from another place).
absl::StatusOr<std::string> UnsealFrom(const SealKey& key, std::string_view record,
                                       std::string_view of, std::string_view sealed);

}  // namespace spoke::ipam
