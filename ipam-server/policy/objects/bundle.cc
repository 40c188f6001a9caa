#include "ipam-server/policy/objects/bundle.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

std::string EntryKey(const ObjectKey& key) { return key.kind + "/" + key.name; }

size_t BytesOf(const BundleDelta& delta) {
  size_t bytes = 0;
  for (const auto& [key, value] : delta.changed) bytes += value.size() + kEntryOverhead;
  for (const std::string& key : delta.removed) bytes += key.size() + kEntryOverhead;
  return bytes;
}

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
  return BytesOf(relative) <= BytesOf(delta) ? relative : delta;
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

CompiledPolicy::CompiledPolicy(const ObjectSet& set) : version_(set.node_version()) {
  for (const auto& [key, object] : set.objects()) {
    std::optional<NodeEntry> entry = object->spec->ForNodes(key);
    if (!entry) continue;
    if (!entry->wanted.empty()) choices_.push_back(entries_.size());
    entries_.push_back({EntryKey(key), *std::move(entry)});
  }
}

std::shared_ptr<const Bundle> CompiledPolicy::Select(const NodeLabels& labels) {
  std::vector<bool> selection;
  selection.reserve(choices_.size());
  for (const size_t index : choices_) {
    selection.push_back(BearsLabels(labels, entries_[index].entry.wanted));
  }
  std::shared_ptr<const Bundle>& bundle = by_selection_[selection];
  if (bundle != nullptr) return bundle;
  Bundle made{.version = version_, .entries = {}};
  auto chosen = selection.begin();
  for (const Entry& entry : entries_) {
    const bool is_for_it = entry.entry.wanted.empty() || *chosen++;
    if (is_for_it) made.entries.emplace(entry.key, entry.entry.value);
  }
  bundle = std::make_shared<const Bundle>(std::move(made));
  return bundle;
}

BundleHistory::BundleHistory(const ObjectSet& set) { kept_.emplace_back(set); }

bool BundleHistory::Advance(CompiledPolicy next) {
  if (next.version() == version()) return false;
  CHECK(next.version() > version(), "policy versions only rise");
  kept_.push_back(std::move(next));
  if (kept_.size() > kKept) kept_.pop_front();
  return true;
}

std::shared_ptr<const Bundle> BundleHistory::For(const NodeLabels& labels) {
  return kept_.back().Select(labels);
}

std::shared_ptr<const Bundle> BundleHistory::KnownTo(uint64_t version, const NodeLabels& labels) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const CompiledPolicy& compiled) {
    return compiled.version() == version;
  });
  return found == kept_.end() || !found->uniform() ? nullptr : found->Select(labels);
}

}  // namespace spoke::ipam
