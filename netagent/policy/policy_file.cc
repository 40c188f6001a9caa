#include "netagent/policy/policy_file.h"

#include "fmt/core.h"
#include "lib/policy/wire.h"
#include "netagent/journal/frame.h"
#include "proto/spoke/v1/policy.pb.h"

namespace spoke::netagent {
namespace {

constexpr std::string_view kMagic = "SPOKEPOL";
constexpr uint32_t kFormat = 1;
constexpr size_t kHeaderBytes = kMagic.size() + 3 * sizeof(uint32_t);

}  // namespace

std::string EncodePolicyFile(const Policy& policy) {
  v1::PolicyBundle bundle;
  bundle.set_version(policy.version);
  bundle.set_full(true);
  for (const auto& [key, entry] : policy.entries) {
    bundle.add_changed()->ParseFromString(entry.bytes);
  }
  const std::string payload = bundle.SerializeAsString();
  std::string out(kMagic);
  AppendLittleEndian(kFormat, out);
  AppendLittleEndian(static_cast<uint32_t>(payload.size()), out);
  AppendLittleEndian(Crc32(payload), out);
  return out + payload;
}

absl::StatusOr<Policy> DecodePolicyFile(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::DataLossError("this is no policy file");
  }
  const uint32_t format = ReadLittleEndian(bytes.substr(kMagic.size(), 4));
  if (format != kFormat) {
    return absl::FailedPreconditionError(
        fmt::format("the policy file has format {}; this agent reads {}", format, kFormat));
  }
  const uint32_t length = ReadLittleEndian(bytes.substr(kMagic.size() + 4, 4));
  const uint32_t checksum = ReadLittleEndian(bytes.substr(kMagic.size() + 8, 4));
  const std::string_view payload = bytes.substr(kHeaderBytes);
  if (payload.size() != length || Crc32(payload) != checksum) {
    return absl::DataLossError("the policy file is torn or damaged");
  }
  v1::PolicyBundle bundle;
  if (!bundle.ParseFromArray(payload.data(), static_cast<int>(payload.size())) || !bundle.full()) {
    return absl::DataLossError("the policy file holds no policy");
  }
  auto policy = ApplyPolicy({}, policy::FromWire(bundle));
  if (!policy.ok()) return absl::DataLossError(policy.status().message());
  return policy;
}

}  // namespace spoke::netagent
