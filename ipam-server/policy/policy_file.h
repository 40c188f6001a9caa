// Policy files to objects: one or more YAML documents, each with apiVersion, kind, metadata.name
// and spec. Pure: the caller reads the files.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/policy/objects/object.h"
#include "ipam-server/policy/objects/object_set.h"

namespace spoke::ipam {

struct PolicyFileText {
  std::string name;  // The name for messages.
  std::string text;
};

// The largest file that is read; 1,000 objects have some 200 KiB.
inline constexpr size_t kMaxPolicyFileBytes = 1UL << 20;

// Reads everything in `files`, and all that is wrong with it: not YAML, too large, another
// apiVersion, an unknown kind, unknown keys, fields that cannot be. Order is kept. The rules across
// objects are PlanApply()'s.
ParsedFiles ParsePolicyFiles(std::span<const PolicyFileText> files);

// Which objects `files` name, for deleting them: their specs are not read, so that an object can
// also be deleted by a file that would no longer be accepted.
// Errors: kInvalidArgument, with all mistakes.
absl::StatusOr<std::vector<ObjectKey>> ParseObjectKeys(std::span<const PolicyFileText> files);

// The spec of an object from its canonical JSON, for the store; all rules for a new object hold.
// Errors: kInvalidArgument (unknown kind, or what is wrong with the spec).
absl::StatusOr<std::shared_ptr<const Spec>> ParseSpec(const ObjectKey& key, std::string_view json);

}  // namespace spoke::ipam
