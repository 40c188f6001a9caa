#include "ipam-server/core/policy/bundle.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

std::string EntryKey(const ObjectKey& key) { return key.kind + "/" + key.name; }

}  // namespace

Bundle CompileBundle(const ObjectSet& set, const NodeLabels& labels) {
  Bundle bundle{.version = set.node_version(), .entries = {}};
  for (const auto& [key, object] : set.objects()) {
    std::optional<NodeEntry> entry = object->spec->ForNodes(key);
    if (!entry || !BearsLabels(labels, entry->wanted)) continue;
    bundle.entries.emplace(EntryKey(key), std::move(entry->value));
  }
  return bundle;
}

BundleDelta DeltaFrom(const Bundle* from, const Bundle& to) {
  BundleDelta delta{
      .version = to.version, .full = true, .base_version = 0, .changed = to.entries, .removed = {}};
  if (from == nullptr) return delta;
  BundleDelta relative{.version = to.version, .base_version = from->version};
  for (const auto& [key, value] : to.entries) {
    const auto before = from->entries.find(key);
    if (before == from->entries.end() || before->second != value) {
      relative.changed.emplace(key, value);
    }
  }
  for (const auto& [key, value] : from->entries) {
    if (!to.entries.contains(key)) relative.removed.push_back(key);
  }
  const size_t steps = relative.changed.size() + relative.removed.size();
  return steps <= to.entries.size() ? relative : delta;
}

std::optional<Bundle> ApplyDelta(const Bundle* from, const BundleDelta& delta) {
  if (!delta.full && (from == nullptr || from->version != delta.base_version)) return std::nullopt;
  Bundle bundle;
  if (!delta.full) bundle.entries = from->entries;
  bundle.version = delta.version;
  for (const std::string& key : delta.removed) bundle.entries.erase(key);
  for (const auto& [key, value] : delta.changed) bundle.entries[key] = value;
  return bundle;
}

BundleHistory::BundleHistory(const ObjectSet& set) { kept_.push_back(Compile(set)); }

bool BundleHistory::Advance(const ObjectSet& set) {
  if (set.node_version() == version()) return false;
  CHECK(set.node_version() > version(), "policy versions only rise");
  kept_.push_back(Compile(set));
  if (kept_.size() > kKept) kept_.pop_front();
  return true;
}

std::shared_ptr<const Bundle> BundleHistory::For(const NodeLabels& labels) {
  return Select(kept_.back(), labels);
}

std::shared_ptr<const Bundle> BundleHistory::KnownTo(uint64_t version, const NodeLabels& labels) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Compiled& compiled) {
    return compiled.version == version;
  });
  return found == kept_.end() || !found->uniform ? nullptr : Select(*found, labels);
}

BundleHistory::Compiled BundleHistory::Compile(const ObjectSet& set) {
  Compiled compiled;
  compiled.version = set.node_version();
  for (const auto& [key, object] : set.objects()) {
    std::optional<NodeEntry> entry = object->spec->ForNodes(key);
    if (!entry) continue;
    compiled.uniform = compiled.uniform && entry->wanted.empty();
    compiled.entries.push_back({EntryKey(key), *std::move(entry)});
  }
  return compiled;
}

std::shared_ptr<const Bundle> BundleHistory::Select(Compiled& compiled, const NodeLabels& labels) {
  std::vector<bool> selection;
  selection.reserve(compiled.entries.size());
  for (const Entry& entry : compiled.entries) {
    selection.push_back(BearsLabels(labels, entry.entry.wanted));
  }
  std::shared_ptr<const Bundle>& bundle = compiled.by_selection[selection];
  if (bundle != nullptr) return bundle;
  Bundle made{.version = compiled.version, .entries = {}};
  for (size_t i = 0; i < selection.size(); ++i) {
    if (selection[i])
      made.entries.emplace(compiled.entries[i].key, compiled.entries[i].entry.value);
  }
  bundle = std::make_shared<const Bundle>(std::move(made));
  return bundle;
}

}  // namespace spoke::ipam
