#include "ipam-server/revocation/denied_record.h"

#include "fmt/core.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/authority.pb.h"

namespace spoke::ipam {

std::string DeniedKeyOf(const DeniedName& name) {
  return fmt::format("{}{}/{}", kDeniedKeyPrefix, NameOf(name.kind), name.value);
}

std::string EncodeDenial(const Denial& denial) {
  v1::DeniedRecord record;
  record.set_reason(denial.reason);
  record.set_by(denial.by);
  record.set_since_unix_ms(absl::ToUnixMillis(denial.since));
  if (denial.until != absl::InfiniteFuture()) {
    record.set_until_unix_ms(absl::ToUnixMillis(denial.until));
  }
  return record.SerializeAsString();
}

absl::StatusOr<DeniedName> ParseDeniedKey(std::string_view key) {
  std::string_view rest = key;
  if (rest.starts_with(kDeniedKeyPrefix)) rest.remove_prefix(kDeniedKeyPrefix.size());
  const size_t slash = rest.find('/');
  if (rest.size() == key.size() || slash == std::string_view::npos) {
    return absl::DataLossError("not the key of a revoked identity");
  }
  auto name = DeniedName::From(rest.substr(0, slash), rest.substr(slash + 1));
  if (!name.ok()) return absl::DataLossError(std::string(base::MessageOf(name.status())));
  if (DeniedKeyOf(*name) != key) return absl::DataLossError("a key that we would write otherwise");
  return name;
}

absl::StatusOr<Denial> DecodeDenial(std::string_view bytes) {
  v1::DeniedRecord record;
  if (!record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("not the record of a revoked identity");
  }
  return Denial{.reason = record.reason(),
                .by = record.by(),
                .since = absl::FromUnixMillis(record.since_unix_ms()),
                .until = record.until_unix_ms() == 0
                             ? absl::InfiniteFuture()
                             : absl::FromUnixMillis(record.until_unix_ms())};
}

}  // namespace spoke::ipam
