#include "netagent/azure/kept_identity.h"

#include <optional>
#include <utility>

#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::netagent::azure {
namespace {

// Reads the identity; nothing where there is no file, or none that can be believed.
std::optional<Identity> FromFile(const std::string& file, const std::string& device,
                                 const ip::MacAddress& mac, telemetry::Log& log) {
  const auto text = os::ReadFile(file, kMaxImdsBytes);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  absl::Status problem = text.status();
  if (text.ok()) {
    const auto instance = ParseImdsInstance(*text);
    const auto identity = instance.ok() ? IdentityOf(*instance, device, mac) : instance.status();
    if (identity.ok()) return *identity;
    problem = identity.status();
  }
  log.Warn("imds_file_unusable", {{"file", file}, {"error", problem}});
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Identity> LearnIdentity(Imds& imds, const std::string& file,
                                       const std::string& device, const ip::MacAddress& mac,
                                       telemetry::Log& log) {
  if (auto kept = FromFile(file, device, mac, log)) return *std::move(kept);
  ASSIGN_OR_RETURN(const ImdsReading reading, imds.ReadInstance());
  ASSIGN_OR_RETURN(Identity identity, IdentityOf(reading.instance, device, mac));
  const absl::Status kept = os::WriteFileAtomic(file, reading.text, os::Durability::kVisible);
  if (!kept.ok()) log.Warn("imds_file_unusable", {{"file", file}, {"error", kept}});
  return identity;
}

}  // namespace spoke::netagent::azure
