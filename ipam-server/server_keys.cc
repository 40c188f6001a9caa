#include "ipam-server/server_keys.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/authority/authority_record.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

// A server that did not see what is in the store would make another authority beside it.
absl::Status CheckNothingIsSealed(Store& store) {
  std::string fingerprint;
  absl::Status damaged;
  RETURN_IF_ERROR(
      store.List(kAuthorityKeyPrefix, [&](std::string_view key, const StoredRecord& record) {
        const auto found = FingerprintIn(key, record.value);
        damaged.Update(found.status());
        fingerprint = found.value_or("");
      }));
  RETURN_IF_ERROR(damaged);
  if (fingerprint.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "the authority is in the store, sealed under the key with the fingerprint {}: name the file "
      "with that key in the configuration, as seal_key_file",
      fingerprint));
}

absl::StatusOr<std::optional<OpenedSealKey>> OpenSealKeyOf(const ServerConfig& config, Store& store,
                                                           telemetry::Log& log) {
  if (config.seal_key_file.empty()) {
    RETURN_IF_ERROR(CheckNothingIsSealed(store));
    return std::nullopt;
  }
  ASSIGN_OR_RETURN(OpenedSealKey opened,
                   OpenSealKey(config.seal_key_file, config.may_make_seal_key(), store));
  log.Info(opened.made ? "seal_key_made" : "seal_key_read",
           {{"file", config.seal_key_file}, {"fingerprint", opened.key.fingerprint}});
  return opened;
}

absl::StatusOr<std::optional<MarkKeys>> MarkKeysOf(const std::optional<OpenedSealKey>& seal,
                                                   const std::string& directory, Store& store) {
  if (!seal) return std::nullopt;
  MarkKeys keys{.present = seal->key.mark, .made = seal->made};
  ASSIGN_OR_RETURN(keys.former, FormerMarkKey(store, seal->key, directory));
  keys.made = keys.made && keys.former.empty();
  return keys;
}

// Makes the files that the agents' port needs.
absl::StatusOr<std::unique_ptr<Enrollment>> OpenEnrollment(const ServerConfig& all,
                                                           Enrollment::Edges edges) {
  const EnrollConfig& config = *all.enroll;
  const auto access =
      kubernetes::InClusterAccess([](const char* name) { return std::getenv(name); });
  if (!access.ok()) {
    return base::Annotate(access.status(),
                          "enroll needs the cluster's API server; without one give agents "
                          "certificates by other means (tls in place of enroll)");
  }
  return Enrollment::Open({.address = config.address,
                           .files = config.files(),
                           .directory = config.directory,
                           .server_names = config.server_names,
                           .rules = {.audience = config.audience,
                                     .k8s_namespace = config.k8s_namespace,
                                     .service_account = config.service_account},
                           .certificate_life = config.certificate_life,
                           .operators = config.operators,
                           .serves_operators = all.listen_operators != "off",
                           .access = *access},
                          std::move(edges));
}

}  // namespace

absl::StatusOr<ServerKeys> OpenKeys(const ServerConfig& config, const KeyEdges& edges) {
  Store& store = edges.store;
  ASSIGN_OR_RETURN(const auto seal, OpenSealKeyOf(config, store, edges.log));
  std::unique_ptr<Enrollment> enrollment;
  if (config.enroll) {
    Enrollment::Edges needs{.revocations = edges.revocations,
                            .clock = edges.clock,
                            .log = edges.log,
                            .margin = edges.margin};
    if (seal) {
      needs.place.emplace(ClusterAuthority::Place{
          .store = store, .key = seal->key, .directory = config.enroll->directory});
    }
    ASSIGN_OR_RETURN(enrollment, OpenEnrollment(config, std::move(needs)));
  }
  const std::string directory = config.witness_directory();
  ASSIGN_OR_RETURN(const auto marks, MarkKeysOf(seal, directory, store));
  ASSIGN_OR_RETURN(StoreWitness witness,
                   StoreWitness::Open(directory, edges.trusts_mark ? ThisBoot() : "", marks));
  return ServerKeys{.witness = std::move(witness), .enrollment = std::move(enrollment)};
}

}  // namespace spoke::ipam
