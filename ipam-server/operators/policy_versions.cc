#include "ipam-server/operators/policy_versions.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"
#include "fmt/core.h"
#include "ipam-server/operators/operator_keys.h"
#include "ipam-server/policy/policy_file.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/operator.pb.h"

namespace spoke::ipam {
namespace {

// A piece is one record, and one object of 1 MiB at most is the largest.
constexpr size_t kPieceBytes = size_t{256} << 10;

// The pieces by the version that they lead back from.
using Pieces = std::map<uint64_t, std::vector<v1::FormerObjects>>;

absl::StatusOr<Pieces> ReadPieces(Store& store) {
  Pieces pieces;
  absl::Status first_error;
  RETURN_IF_ERROR(
      store.List(kPolicyHistoryPrefix, [&](std::string_view key, const StoredRecord& record) {
        const auto version = ParsePolicyHistoryKey(key);
        v1::FormerObjects piece;
        if (!version || !piece.ParseFromString(record.value)) {
          first_error.Update(
              absl::DataLossError(fmt::format("store key {}: no former policy objects", key)));
          return;
        }
        pieces[*version].push_back(std::move(piece));
      }));
  RETURN_IF_ERROR(first_error);
  return pieces;
}

std::vector<uint64_t> Versions(const Pieces& pieces, uint64_t from) {
  std::vector<uint64_t> versions;
  for (auto it = pieces.find(from); it != pieces.end(); it = pieces.find(versions.back())) {
    const uint64_t before = it->second.front().version_before();
    if (before >= it->first) break;  // No version is before itself.
    versions.push_back(before);
  }
  return versions;
}

absl::Status NotKept(uint64_t from, uint64_t to, const std::vector<uint64_t>& versions) {
  if (versions.empty()) {
    return absl::FailedPreconditionError(fmt::format(
        "what policy was before version {} is not kept, so that nothing can be undone", from));
  }
  return absl::FailedPreconditionError(
      fmt::format("what policy was at version {} is not kept; from version {} one can go back to "
                  "{} (spokectl policy history)",
                  to, from, absl::StrJoin(versions, ", ")));
}

}  // namespace

std::vector<PolicyWrite> EncodeFormer(const ApplyPlan& plan, uint64_t before) {
  std::vector<PolicyWrite> writes;
  v1::FormerObjects piece;
  size_t bytes = 0;
  const std::string prefix = PolicyHistoryPrefix(plan.next.version());
  const auto put = [&] {
    if (piece.objects().empty()) return;
    piece.set_version_before(before);
    writes.push_back({fmt::format("{}{:06}", prefix, writes.size()), piece.SerializeAsString()});
    piece.Clear();
    bytes = 0;
  };
  for (const ObjectChange& change : plan.changes) {
    if (change.action == ChangeAction::kUnchanged) continue;
    const std::string json = change.before == nullptr ? "" : change.before->spec->ToJson();
    if (bytes + json.size() > kPieceBytes) put();
    v1::FormerObject& object = *piece.add_objects();
    object.set_kind(change.key.kind);
    object.set_name(change.key.name);
    object.set_spec_json(json);
    bytes += json.size() + change.key.kind.size() + change.key.name.size();
  }
  put();
  return writes;
}

absl::StatusOr<WayBack> FindWayBack(Store& store, uint64_t from, uint64_t to) {
  ASSIGN_OR_RETURN(const Pieces pieces, ReadPieces(store));
  const std::vector<uint64_t> versions = Versions(pieces, from);
  if (versions.empty()) return NotKept(from, to, versions);
  if (to == 0) to = versions.front();
  const auto last = std::find(versions.begin(), versions.end(), to);
  if (last == versions.end()) return NotKept(from, to, versions);
  // An earlier change says more: it has what was there before all the later ones.
  std::map<ObjectKey, std::string> former;
  uint64_t at = from;
  for (auto it = versions.begin(); it != last + 1; at = *it, ++it) {
    for (const v1::FormerObjects& piece : pieces.at(at)) {
      for (const v1::FormerObject& object : piece.objects()) {
        former[{object.kind(), object.name()}] = object.spec_json();
      }
    }
  }
  WayBack way;
  const std::string file = fmt::format("version {}", to);
  way.objects.files = {file};
  for (const auto& [key, json] : former) {
    if (json.empty()) {
      way.gone.push_back(key);
      continue;
    }
    SourcedObject object{.key = key, .spec = nullptr, .file = file};
    auto spec = ParseSpec(key, json);
    if (!spec.ok()) {
      way.objects.problems.push_back({.file = file,
                                      .path = key.ToString(),
                                      .message = std::string(base::MessageOf(spec.status()))});
    } else {
      object.spec = *std::move(spec);
    }
    way.objects.objects.push_back(std::move(object));
  }
  return way;
}

absl::StatusOr<std::vector<uint64_t>> VersionsToGoBackTo(Store& store, uint64_t from) {
  ASSIGN_OR_RETURN(const Pieces pieces, ReadPieces(store));
  return Versions(pieces, from);
}

}  // namespace spoke::ipam
