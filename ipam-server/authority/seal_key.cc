#include "ipam-server/authority/seal_key.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "fmt/core.h"
#include "ipam-server/authority/authority_record.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/tls/message_code.h"
#include "lib/tls/seal.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxFileBytes = 4096;
constexpr size_t kFingerprintBytes = 8;

// Returns the bytes that the text stands for.
std::string SecretIn(std::string_view text) {
  const absl::string_view digits = absl::StripAsciiWhitespace({text.data(), text.size()});
  const bool hex = digits.size() >= 2 * kLeastSealKeyBytes && digits.size() % 2 == 0 &&
                   std::all_of(digits.begin(), digits.end(), [](char c) {
                     return absl::ascii_isxdigit(static_cast<unsigned char>(c));
                   });
  return hex ? absl::HexStringToBytes(digits) : std::string(text);
}

// Returns the fingerprint of the key under which the store's secrets are sealed; nullopt: there are
// none.
absl::StatusOr<std::optional<std::string>> FingerprintOf(Store& store) {
  for (const std::string_view record : {kRootsKey, kFormerMarkKeyKey}) {
    ASSIGN_OR_RETURN(const auto found, store.Get(record));
    if (!found) continue;
    ASSIGN_OR_RETURN(std::string fingerprint, FingerprintIn(record, found->value));
    return fingerprint;
  }
  return std::nullopt;
}

std::string ContextOf(std::string_view record, std::string_view of) {
  return fmt::format("{}\n{}", record, of);
}

}  // namespace

absl::StatusOr<SealKey> SealKey::From(std::string_view text) {
  const std::string secret = SecretIn(text);
  if (secret.size() < kLeastSealKeyBytes || text.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        fmt::format("a seal key has {} to {} bytes, or twice as many hexadecimal digits; this has "
                    "{}",
                    kLeastSealKeyBytes, kMaxFileBytes, secret.size()));
  }
  if (secret.find_first_not_of(secret.front()) == std::string::npos) {
    return absl::InvalidArgumentError(
        "a seal key is random, and this is one byte over and over: make one with `openssl rand "
        "-hex 32`");
  }
  SealKey key;
  ASSIGN_OR_RETURN(key.seal, tls::DeriveKey(secret, "spoke seal 1"));
  ASSIGN_OR_RETURN(key.mark, tls::DeriveKey(secret, "spoke store mark 1"));
  ASSIGN_OR_RETURN(const std::string print, tls::DeriveKey(secret, "spoke fingerprint 1"));
  key.fingerprint = absl::BytesToHexString(print.substr(0, kFingerprintBytes));
  return key;
}

absl::StatusOr<SealKey> ReadSealKey(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, os::ReadFile(path, kMaxFileBytes + 1));
  auto key = SealKey::From(text);
  if (!key.ok()) return base::Annotate(key.status(), path);
  return key;
}

absl::StatusOr<OpenedSealKey> OpenSealKey(const std::string& path, bool may_make, Store& store) {
  ASSIGN_OR_RETURN(const std::optional<std::string> sealed, FingerprintOf(store));
  auto key = ReadSealKey(path);
  const bool make = absl::IsNotFound(key.status()) && may_make && !sealed;
  if (make) {
    RETURN_IF_ERROR(os::MakeDirectory(os::DirectoryOf(path)));
    ASSIGN_OR_RETURN(const std::string random, tls::RandomBytes(kLeastSealKeyBytes));
    RETURN_IF_ERROR(os::WriteFileAtomic(path, absl::BytesToHexString(random) + "\n",
                                        os::Durability::kSurvivesPower, 0600));
    key = ReadSealKey(path);
  }
  if (!key.ok() && sealed) {
    return base::Annotate(
        key.status(),
        fmt::format("seal_key_file, which must have the key with the fingerprint {}", *sealed));
  }
  if (!key.ok()) return base::Annotate(key.status(), "seal_key_file");
  if (sealed) RETURN_IF_ERROR(CheckFingerprint(*sealed, *key));
  return OpenedSealKey{.key = *std::move(key), .made = make};
}

absl::StatusOr<std::string> SealFor(const SealKey& key, std::string_view record,
                                    std::string_view of, std::string_view secret) {
  return tls::Seal(key.seal, ContextOf(record, of), secret);
}

absl::StatusOr<std::string> UnsealFrom(const SealKey& key, std::string_view record,
                                       std::string_view of, std::string_view sealed) {
  auto secret = tls::Unseal(key.seal, ContextOf(record, of), sealed);
  if (secret.ok()) return secret;
  return absl::DataLossError(
      fmt::format("store key {}: a sealed secret is damaged: {}; restore the store from a backup",
                  record, base::MessageOf(secret.status())));
}

}  // namespace spoke::ipam
