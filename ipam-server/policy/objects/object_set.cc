#include "ipam-server/policy/objects/object_set.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

using ObjectPointer = std::shared_ptr<const PolicyObject>;

std::vector<Selector> SelectorsOf(const PolicyWorld& world) {
  std::vector<Selector> selectors;
  for (const PolicyObject& object : world.configured) {
    selectors.push_back({.key = object.key, .spec = object.spec.get(), .configured = true});
  }
  return selectors;
}

bool IsConfigured(const PolicyWorld& world, const ObjectKey& key) {
  return std::any_of(world.configured.begin(), world.configured.end(),
                     [&](const PolicyObject& object) { return object.key == key; });
}

absl::Status CheckUse(const PolicyWorld& world, const PolicyObject& before, const Spec* next) {
  const auto use = world.used.find(before.key);
  return before.spec->CheckChange(next, use == world.used.end() ? ObjectUse{} : use->second);
}

bool IsForNodes(const ObjectPointer& object) {
  return object != nullptr && object->spec->ForNodes(object->key).has_value();
}

}  // namespace

// The set that a plan leads to, in the making.
class SetChange {
 public:
  SetChange(const ObjectSet& set, absl::Time now) : next_(set), now_(now) {
    const int64_t ms = absl::ToUnixMillis(now);
    version_ = std::max(set.version() + 1, ms > 0 ? static_cast<uint64_t>(ms) : 0);
  }

  ObjectChange Put(const ObjectKey& key, const std::shared_ptr<const Spec>& spec) {
    const ObjectPointer before = next_.Find(key);
    if (before != nullptr && before->spec->ToJson() == spec->ToJson()) {
      return {key, ChangeAction::kUnchanged, before, before};
    }
    const auto after = std::make_shared<const PolicyObject>(
        PolicyObject{.key = key, .spec = spec, .version = version_, .changed = now_});
    next_.objects_[key] = after;
    Count(before, after);
    return {key, before == nullptr ? ChangeAction::kCreated : ChangeAction::kChanged, before,
            after};
  }

  ObjectChange Delete(const ObjectKey& key) {
    const ObjectPointer before = next_.Find(key);
    next_.objects_.erase(key);
    Count(before, nullptr);
    return {key, ChangeAction::kDeleted, before, nullptr};
  }

  const ObjectSet& next() const { return next_; }

 private:
  void Count(const ObjectPointer& before, const ObjectPointer& after) {
    next_.version_.version = version_;
    if (IsForNodes(before) || IsForNodes(after)) next_.version_.node_version = version_;
  }

  ObjectSet next_;
  absl::Time now_;
  uint64_t version_;
};

namespace {

// The objects of the files one by one: each against its namesakes, the configuration and its use.
std::vector<Problem> CheckEach(const ObjectSet& set, const ParsedFiles& parsed,
                               const PolicyWorld& world) {
  std::vector<Problem> problems;
  std::map<ObjectKey, const SourcedObject*> first_by_key;
  for (const SourcedObject& object : parsed.objects) {
    const auto [first, inserted] = first_by_key.try_emplace(object.key, &object);
    Problem problem{.file = object.file, .line = object.name_line, .path = "metadata.name"};
    if (!inserted) {
      problem.message =
          fmt::format("{} is given twice: {}:{} has it already; remove one of them",
                      object.key.ToString(), first->second->file, first->second->name_line);
      problems.push_back(std::move(problem));
      continue;
    }
    problem.conflict = true;
    if (IsConfigured(world, object.key)) {
      problem.message = fmt::format(
          "{} is in the server's configuration: change it there, or choose another name",
          object.key.ToString());
      problems.push_back(std::move(problem));
      continue;
    }
    const ObjectPointer before = set.Find(object.key);
    if (before == nullptr || object.spec == nullptr) continue;
    const absl::Status status = CheckUse(world, *before, object.spec.get());
    if (status.ok()) continue;
    problems.push_back(
        {object.file, object.spec_line, "spec", std::string(base::MessageOf(status)), true});
  }
  return problems;
}

// The rules across objects, for the set as it would be.
std::vector<Problem> CheckTogether(const ObjectSet& set, const ParsedFiles& parsed,
                                   const PolicyWorld& world) {
  std::set<ObjectKey> given;
  std::vector<ObjectKey> known;
  for (const SourcedObject& object : parsed.objects) {
    given.insert(object.key);
    known.push_back(object.key);
  }
  std::vector<Selector> selectors = SelectorsOf(world);
  for (const Selector& selector : selectors) known.push_back(selector.key);
  for (const auto& [key, object] : set.objects()) {
    known.push_back(key);
    // What a file replaces no longer counts, even if what replaces it has mistakes: else a block
    // that moves would be called an overlap.
    if (!given.contains(key)) selectors.push_back({.key = key, .spec = object->spec.get()});
  }
  std::set<ObjectKey> seen;
  for (const SourcedObject& object : parsed.objects) {
    if (object.spec == nullptr || !seen.insert(object.key).second) continue;
    if (IsConfigured(world, object.key)) continue;  // It was said already.
    selectors.push_back({.key = object.key, .spec = object.spec.get(), .source = &object});
  }
  std::vector<Problem> problems = FindClashes(selectors);
  for (const auto& found : {FindMissing(selectors, known), FindSwallowed(selectors),
                            FindCutProtectedAddresses(selectors, world.protected_addresses)}) {
    problems.insert(problems.end(), found.begin(), found.end());
  }
  return problems;
}

// The objects that others name, which do not go themselves, and why each must stay.
std::map<ObjectKey, std::string> NamedByOthers(const ObjectSet& set,
                                               std::span<const ObjectKey> going) {
  const std::set<ObjectKey> goes(going.begin(), going.end());
  std::map<ObjectKey, std::string> named;
  for (const auto& [other, object] : set.objects()) {
    if (goes.contains(other)) continue;
    for (const Reference& reference : object->spec->References()) {
      named.try_emplace(reference.key, fmt::format("{} names it ({}): change or delete that first",
                                                   other.ToString(), reference.path));
    }
  }
  return named;
}

absl::Status CheckSize(const ObjectSet& set) {
  if (set.objects().size() > kMaxObjects) {
    return absl::ResourceExhaustedError(
        fmt::format("there would be {} policy objects, more than the {} allowed: delete some first",
                    set.objects().size(), kMaxObjects));
  }
  size_t bytes = 0;
  size_t most = 0;
  const ObjectKey* largest = nullptr;
  for (const auto& [key, object] : set.objects()) {
    const auto entry = object->spec->ForNodes(key);
    if (!entry) continue;
    const size_t takes = entry->value.size() + kEntryOverhead;
    bytes += takes;
    if (takes > most) {
      most = takes;
      largest = &key;
    }
  }
  if (bytes > kMaxBundleBytes) {
    return absl::ResourceExhaustedError(fmt::format(
        "nodes would get {} bytes of policy, more than the {} that an agent takes in one message; "
        "{} has {} of them: shorten its lists, or delete some objects first",
        bytes, kMaxBundleBytes, largest->ToString(), most));
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view NameOf(ChangeAction action) {
  switch (action) {
    case ChangeAction::kCreated:
      return "created";
    case ChangeAction::kChanged:
      return "changed";
    case ChangeAction::kUnchanged:
      return "unchanged";
    case ChangeAction::kDeleted:
      return "deleted";
  }
  return "unknown";
}

absl::StatusOr<ObjectSet> ObjectSet::Restore(std::vector<PolicyObject> objects,
                                             SetVersion version) {
  ObjectSet set;
  set.version_ = version;
  if (version.node_version == 0 || version.node_version > version.version) {
    return absl::DataLossError(fmt::format("policy version {} with bundles of version {}",
                                           version.version, version.node_version));
  }
  for (PolicyObject& object : objects) {
    const ObjectKey key = object.key;
    if (object.version > version.version) {
      return absl::DataLossError(fmt::format("{} is of version {}, the policy only of {}",
                                             key.ToString(), object.version, version.version));
    }
    auto shared = std::make_shared<const PolicyObject>(std::move(object));
    if (!set.objects_.emplace(key, std::move(shared)).second) {
      return absl::DataLossError(fmt::format("{} is there twice", key.ToString()));
    }
  }
  return set;
}

ObjectPointer ObjectSet::Find(const ObjectKey& key) const {
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

absl::StatusOr<ApplyPlan> PlanApply(const ObjectSet& set, const ParsedFiles& parsed,
                                    const PolicyWorld& world, absl::Time now,
                                    std::span<const ObjectKey> gone) {
  ApplyPlan plan;
  SetChange change(set, now);
  std::vector<Problem> problems = parsed.problems;
  for (const ObjectKey& key : gone) {
    const ObjectPointer object = change.next().Find(key);
    if (object == nullptr) continue;
    if (const absl::Status status = CheckUse(world, *object, nullptr); !status.ok()) {
      problems.push_back({.path = key.ToString(),
                          .message = std::string(base::MessageOf(status)),
                          .conflict = true});
    }
    plan.changes.push_back(change.Delete(key));
  }
  for (const auto& found :
       {CheckEach(set, parsed, world), CheckTogether(change.next(), parsed, world)}) {
    problems.insert(problems.end(), found.begin(), found.end());
  }
  RETURN_IF_ERROR(ToStatus(std::move(problems), parsed.files));

  for (const SourcedObject& object : parsed.objects) {
    plan.changes.push_back(change.Put(object.key, object.spec));
  }
  plan.next = change.next();
  std::vector<Problem> stay;
  const std::map<ObjectKey, std::string> named = NamedByOthers(plan.next, gone);
  for (const ObjectKey& key : gone) {
    const auto by = named.find(key);
    if (by == named.end()) continue;
    stay.push_back({.path = key.ToString(), .message = by->second, .conflict = true});
  }
  RETURN_IF_ERROR(ToStatus(std::move(stay), {}));
  RETURN_IF_ERROR(CheckSize(plan.next));
  return plan;
}

absl::StatusOr<ApplyPlan> PlanDelete(const ObjectSet& set, std::span<const ObjectKey> keys,
                                     const PolicyWorld& world, absl::Time now) {
  std::string missing;
  std::string used;
  ApplyPlan plan;
  SetChange change(set, now);
  std::set<ObjectKey> seen;
  const std::map<ObjectKey, std::string> named = NamedByOthers(set, keys);
  for (const ObjectKey& key : keys) {
    if (!seen.insert(key).second) continue;
    const auto add = [&](std::string& to, std::string_view what) {
      to += fmt::format("{}{}{}", to.empty() ? "" : "\n", key.ToString(), what);
    };
    const ObjectPointer object = set.Find(key);
    if (object == nullptr && IsConfigured(world, key)) {
      add(used, " is in the server's configuration: remove it there");
    } else if (object == nullptr) {
      add(missing, ": there is no such object");
    } else if (const absl::Status status = CheckUse(world, *object, nullptr); !status.ok()) {
      add(used, fmt::format(": {}", base::MessageOf(status)));
    } else if (const auto by = named.find(key); by != named.end()) {
      add(used, ": " + by->second);
    } else {
      plan.changes.push_back(change.Delete(key));
    }
  }
  if (!missing.empty()) {
    return absl::NotFoundError(used.empty() ? missing : missing + "\n" + used);
  }
  if (!used.empty()) return absl::FailedPreconditionError(used);
  plan.next = change.next();
  return plan;
}

absl::Status CheckAgainst(const ObjectSet& set, const PolicyWorld& world) {
  std::vector<Problem> problems;
  std::vector<Selector> selectors = SelectorsOf(world);
  for (const auto& [key, object] : set.objects()) {
    selectors.push_back({.key = key, .spec = object->spec.get()});
    if (!IsConfigured(world, key)) continue;
    problems.push_back({.path = key.ToString(),
                        .message = "is applied, and in the server's configuration as well: take "
                                   "it out of the configuration, or give it another name there",
                        .conflict = true});
  }
  std::vector<Problem> clashes = FindClashes(selectors);
  problems.insert(problems.end(), clashes.begin(), clashes.end());
  return ToStatus(std::move(problems), {});
}

}  // namespace spoke::ipam
