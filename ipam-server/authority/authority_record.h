// The authority's records to bytes and back (proto/spoke/v1/authority.proto). Thread-safe (no
// state).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ipam-server/authority/roots.h"
#include "ipam-server/authority/seal_key.h"

namespace spoke::ipam {

inline constexpr std::string_view kAuthorityKeyPrefix = "authority/";
inline constexpr std::string_view kRootsKey = "authority/roots";
inline constexpr std::string_view kFormerMarkKeyKey = "authority/former-mark-key";

// Errors of both: kInternal (no randomness).
absl::StatusOr<std::string> EncodeRoots(const Roots& roots, const SealKey& key);
absl::StatusOr<std::string> EncodeFormerMarkKey(std::string_view mark_key, const SealKey& key);

// Errors of both: kFailedPrecondition (sealed under another key: the text has both fingerprints);
// kDataLoss (no record of ours, damaged, or roots that cannot be).
absl::StatusOr<Roots> DecodeRoots(std::string_view bytes, const SealKey& key);
absl::StatusOr<std::string> DecodeFormerMarkKey(std::string_view bytes, const SealKey& key);

// Returns the fingerprint of the key under which a record of the authority is sealed. Errors:
// kDataLoss.
absl::StatusOr<std::string> FingerprintIn(std::string_view record_key, std::string_view bytes);

// Returns kFailedPrecondition unless `fingerprint` is that of `key`.
absl::Status CheckFingerprint(std::string_view fingerprint, const SealKey& key);

}  // namespace spoke::ipam
