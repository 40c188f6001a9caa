#include "ipam-server/authority/authority_record.h"

#include "fmt/core.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/authority.pb.h"

namespace spoke::ipam {
namespace {

constexpr int kMostRoots = 8;
constexpr std::string_view kMarkKey = "key of marks";

v1::AuthorityRoot::State ToWire(RootState state) {
  switch (state) {
    case RootState::kNext:
      return v1::AuthorityRoot::STATE_NEXT;
    case RootState::kSigning:
      return v1::AuthorityRoot::STATE_SIGNING;
    case RootState::kRetired:
      return v1::AuthorityRoot::STATE_RETIRED;
  }
  return v1::AuthorityRoot::STATE_UNSPECIFIED;
}

absl::StatusOr<RootState> FromWire(v1::AuthorityRoot::State state) {
  switch (state) {
    case v1::AuthorityRoot::STATE_NEXT:
      return RootState::kNext;
    case v1::AuthorityRoot::STATE_SIGNING:
      return RootState::kSigning;
    case v1::AuthorityRoot::STATE_RETIRED:
      return RootState::kRetired;
    default:
      return absl::DataLossError(fmt::format("a root of the unknown state {}", int{state}));
  }
}

absl::Status NoRecord(std::string_view key) {
  return absl::DataLossError(fmt::format("store key {}: no record of the authority", key));
}

template <typename Message>
absl::Status Parse(std::string_view bytes, std::string_view key, Message& out) {
  if (out.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return absl::OkStatus();
  return NoRecord(key);
}

// What the seal of a record is for: all of its roots. The lengths keep certificates apart.
std::string SealedTextOf(const v1::AuthorityRecord& record) {
  std::string text = "roots";
  for (const v1::AuthorityRoot& root : record.roots()) {
    text += fmt::format("\n{} {} {} {}:{}", int{root.state()}, root.since_unix_ms(),
                        root.longest_life_ms(), root.certificate().size(), root.certificate());
  }
  return text;
}

absl::StatusOr<Root> FromWire(const v1::AuthorityRoot& wire, const SealKey& key) {
  ASSIGN_OR_RETURN(const RootState state, FromWire(wire.state()));
  Root root{.certificate = wire.certificate(),
            .key = "",
            .state = state,
            .since = absl::FromUnixMillis(wire.since_unix_ms()),
            .longest_life = absl::Milliseconds(wire.longest_life_ms())};
  if (wire.sealed_key().empty()) return root;
  // The key is bound to its certificate, so that none can be put beside another.
  ASSIGN_OR_RETURN(root.key, UnsealFrom(key, kRootsKey, wire.certificate(), wire.sealed_key()));
  return root;
}

}  // namespace

absl::Status CheckFingerprint(std::string_view fingerprint, const SealKey& key) {
  if (fingerprint == key.fingerprint) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "what is secret in the store is sealed under the key with the fingerprint {}, and "
      "seal_key_file has the key {}: put the file with the former key there, the same on all "
      "servers of the cluster",
      fingerprint, key.fingerprint));
}

absl::StatusOr<std::string> EncodeRoots(const Roots& roots, const SealKey& key) {
  v1::AuthorityRecord record;
  record.set_seal_fingerprint(key.fingerprint);
  for (const Root& root : roots) {
    v1::AuthorityRoot& out = *record.add_roots();
    out.set_certificate(root.certificate);
    if (!root.key.empty()) {
      ASSIGN_OR_RETURN(*out.mutable_sealed_key(),
                       SealFor(key, kRootsKey, root.certificate, root.key));
    }
    out.set_state(ToWire(root.state));
    out.set_since_unix_ms(absl::ToUnixMillis(root.since));
    out.set_longest_life_ms(absl::ToInt64Milliseconds(root.longest_life));
  }
  ASSIGN_OR_RETURN(*record.mutable_seal(), SealFor(key, kRootsKey, SealedTextOf(record), ""));
  return record.SerializeAsString();
}

absl::StatusOr<Roots> DecodeRoots(std::string_view bytes, const SealKey& key) {
  v1::AuthorityRecord record;
  RETURN_IF_ERROR(Parse(bytes, kRootsKey, record));
  if (record.roots_size() > kMostRoots) return NoRecord(kRootsKey);
  RETURN_IF_ERROR(CheckFingerprint(record.seal_fingerprint(), key));
  RETURN_IF_ERROR(UnsealFrom(key, kRootsKey, SealedTextOf(record), record.seal()).status());
  Roots roots;
  for (const v1::AuthorityRoot& wire : record.roots()) {
    ASSIGN_OR_RETURN(roots.emplace_back(), FromWire(wire, key));
  }
  if (const absl::Status valid = CheckRoots(roots); !valid.ok()) {
    return absl::DataLossError(fmt::format("store key {}: {}", kRootsKey, base::MessageOf(valid)));
  }
  return roots;
}

absl::StatusOr<std::string> EncodeFormerMarkKey(std::string_view mark_key, const SealKey& key) {
  v1::FormerMarkKey record;
  record.set_seal_fingerprint(key.fingerprint);
  ASSIGN_OR_RETURN(*record.mutable_sealed_key(),
                   SealFor(key, kFormerMarkKeyKey, kMarkKey, mark_key));
  return record.SerializeAsString();
}

absl::StatusOr<std::string> DecodeFormerMarkKey(std::string_view bytes, const SealKey& key) {
  v1::FormerMarkKey record;
  RETURN_IF_ERROR(Parse(bytes, kFormerMarkKeyKey, record));
  RETURN_IF_ERROR(CheckFingerprint(record.seal_fingerprint(), key));
  return UnsealFrom(key, kFormerMarkKeyKey, kMarkKey, record.sealed_key());
}

absl::StatusOr<std::string> FingerprintIn(std::string_view record_key, std::string_view bytes) {
  if (record_key == kFormerMarkKeyKey) {
    v1::FormerMarkKey record;
    RETURN_IF_ERROR(Parse(bytes, record_key, record));
    return record.seal_fingerprint();
  }
  v1::AuthorityRecord record;
  RETURN_IF_ERROR(Parse(bytes, record_key, record));
  return record.seal_fingerprint();
}

}  // namespace spoke::ipam
