#include "ipam-server/policy/object_codec.h"

#include <utility>

#include "fmt/core.h"
#include "ipam-server/policy/policy_file.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/object.pb.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxShownName = 64;

}  // namespace

std::string StoreKeyOf(const ObjectKey& key) {
  return fmt::format("{}{}/{}", kObjectKeyPrefix, key.kind, key.name);
}

std::string EncodeObject(const PolicyObject& object) {
  v1::StoredObject out;
  out.set_kind(object.key.kind);
  out.set_name(object.key.name);
  out.set_spec_json(object.spec->ToJson());
  out.set_version(object.version);
  out.set_changed_unix_ms(absl::ToUnixMillis(object.changed));
  return out.SerializeAsString();
}

absl::StatusOr<PolicyObject> DecodeObject(std::string_view bytes) {
  v1::StoredObject in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || in.kind().empty()) {
    return absl::DataLossError("not a policy object");
  }
  PolicyObject object;
  object.key = {.kind = in.kind(), .name = in.name()};
  object.version = in.version();
  object.changed = absl::FromUnixMillis(in.changed_unix_ms());
  auto spec = ParseSpec(object.key, in.spec_json());
  if (!spec.ok()) {
    return absl::DataLossError(
        fmt::format("stored {} \"{}\": {}; was it written by a newer version?",
                    in.kind().substr(0, kMaxShownName), in.name().substr(0, kMaxShownName),
                    base::MessageOf(spec.status())));
  }
  object.spec = *std::move(spec);
  return object;
}

std::string EncodePolicyVersion(const SetVersion& version) {
  v1::StoredPolicyVersion out;
  out.set_version(version.version);
  out.set_node_version(version.node_version);
  return out.SerializeAsString();
}

absl::StatusOr<SetVersion> DecodePolicyVersion(std::string_view bytes) {
  v1::StoredPolicyVersion in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || in.version() == 0) {
    return absl::DataLossError("not a policy version");
  }
  return SetVersion{.version = in.version(), .node_version = in.node_version()};
}

std::vector<PolicyWrite> EncodePlan(const ApplyPlan& plan) {
  std::vector<PolicyWrite> writes;
  for (const ObjectChange& change : plan.changes) {
    switch (change.action) {
      case ChangeAction::kUnchanged:
        break;
      case ChangeAction::kCreated:
      case ChangeAction::kChanged:
        writes.push_back({StoreKeyOf(change.key), EncodeObject(*change.after)});
        break;
      case ChangeAction::kDeleted:
        writes.push_back({StoreKeyOf(change.key), std::nullopt});
        break;
    }
  }
  if (writes.empty()) return writes;
  writes.push_back({std::string(kPolicyVersionKey), EncodePolicyVersion(plan.next.versions())});
  return writes;
}

}  // namespace spoke::ipam
