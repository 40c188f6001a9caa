// All policy objects in force, and what a change of them comes to. Pure.
//
//   ASSIGN_OR_RETURN(ApplyPlan plan, PlanApply(set, ParsePolicyFiles(files), world, now));
//   ... store EncodePlan(plan) in one batch; when that is durable:
//   set = plan.next;
//
// A change is judged as a whole: the rules across objects hold for the set that would be in force
// after it, so that a block may move from one object to another in one step. Nothing changes when
// there is a problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/policy/objects/object.h"
#include "ipam-server/policy/objects/problem.h"
#include "ipam-server/policy/objects/selector.h"

namespace spoke::ipam {

inline constexpr size_t kMaxObjects = 10000;  // The most objects in a set.
// The most bytes that one node gets, as one message: half of what an agent's gRPC receives (4 MiB,
// its default).
inline constexpr size_t kMaxBundleBytes = 2UL << 20;
// What an entry of a bundle takes there beside its value, at most: tag and length.
inline constexpr size_t kEntryOverhead = 8;

// The version of a set is the time of its last change in milliseconds since 1970, or one more than
// the version before, if that is later. So versions only rise, and none is ever given twice: also
// not when an old backup has been restored while agents keep bundles that were made after it.
// Version 1 is that of a server to which nothing was ever applied; no set has version 0.
struct SetVersion {
  uint64_t version = 1;
  // The last change to what nodes get: the version of the bundles. A change of pools leaves it.
  uint64_t node_version = 1;

  bool operator==(const SetVersion&) const = default;
};

// An immutable value, cheap to copy: its objects are shared. Thread-safe as any const value.
class ObjectSet {
 public:
  using Objects = std::map<ObjectKey, std::shared_ptr<const PolicyObject>>;

  ObjectSet() = default;

  // What the store holds. Errors: kDataLoss (two objects with one key, a version that cannot be).
  static absl::StatusOr<ObjectSet> Restore(std::vector<PolicyObject> objects, SetVersion version);

  // Returns the object; nullptr when there is none.
  std::shared_ptr<const PolicyObject> Find(const ObjectKey& key) const;

  const Objects& objects() const { return objects_; }
  uint64_t version() const { return version_.version; }
  uint64_t node_version() const { return version_.node_version; }
  const SetVersion& versions() const { return version_; }

 private:
  friend class SetChange;

  Objects objects_;
  SetVersion version_;
};

// An object as a file gives it.
struct SourcedObject {
  ObjectKey key;
  std::shared_ptr<const Spec> spec;  // nullptr: it has mistakes, which are among the problems.
  std::string file;
  int name_line = 0;
  int spec_line = 0;
  // The avoidances of the addresses that its host names have, beside those of the spec.
  std::vector<Avoidance> resolved = {};
};

struct ParsedFiles {
  std::vector<std::string> files;      // Their names, in order.
  std::vector<SourcedObject> objects;  // The files' order.
  std::vector<Problem> problems;       // Problems of each object alone, and of the files.
  std::vector<Problem> warnings = {};  // What is taken all the same, and should be changed.
};

// What surrounds the set.
struct PolicyWorld {
  // The configuration's objects: the others must agree with them and cannot replace them.
  std::vector<PolicyObject> configured;
  std::map<ObjectKey, ObjectUse> used;  // What is not in it is not used.
  // The addresses that no object may have nodes drop.
  std::vector<ProtectedAddress> protected_addresses = {};
};

enum class ChangeAction { kCreated, kChanged, kUnchanged, kDeleted };
std::string_view NameOf(ChangeAction action);  // "created", ...

struct ObjectChange {
  ObjectKey key;
  ChangeAction action = ChangeAction::kUnchanged;
  std::shared_ptr<const PolicyObject> before;  // nullptr: created.
  std::shared_ptr<const PolicyObject> after;   // nullptr: deleted.
};

struct ApplyPlan {
  std::vector<ObjectChange> changes;  // The files' order; the unchanged ones as well.
  ObjectSet next;                     // It has the same version as before when nothing changes.
};

// Errors, with every problem on a line of its own ("FILE:LINE: PATH: what is wrong and what to
// do"): kInvalidArgument (the files are wrong in themselves: the problems of `parsed`, an object
// twice, clashes between objects of the files), kFailedPrecondition (they clash with what is in
// force, with the configuration, or with addresses in use; they name what is not there; they would
// cut a protected address), kResourceExhausted (more than kMaxObjects or kMaxBundleBytes; the
// message names the limit, and the object that takes most of it).
// The objects of `gone` go in the same step; those that are not there are passed over.
absl::StatusOr<ApplyPlan> PlanApply(const ObjectSet& set, const ParsedFiles& parsed,
                                    const PolicyWorld& world, absl::Time now,
                                    std::span<const ObjectKey> gone = {});

// Deletes what `keys` names; a key given twice counts once. Errors: kNotFound (one is not there),
// kFailedPrecondition (one is in use, named by an object that stays, or part of the configuration).
absl::StatusOr<ApplyPlan> PlanDelete(const ObjectSet& set, std::span<const ObjectKey> keys,
                                     const PolicyWorld& world, absl::Time now);

// Checks at start, when the configuration may have changed since objects were applied.
// Errors: kFailedPrecondition (an object clashes with the configuration; a line for each).
absl::Status CheckAgainst(const ObjectSet& set, const PolicyWorld& world);

}  // namespace spoke::ipam
