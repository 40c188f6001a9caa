// What nodes get of the policy, compiled once for all that get the same; and the difference between
// two versions of it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ipam-server/policy/objects/object.h"
#include "ipam-server/policy/objects/object_set.h"

namespace spoke::ipam {

// Entries by key ("Team/vision"), each a serialized v1::PolicyEntry with that key in it.
struct Bundle {
  uint64_t version = 0;  // node_version() of its set.
  std::map<std::string, std::string> entries;

  bool operator==(const Bundle&) const = default;
};

// What leads from one bundle to another.
struct BundleDelta {
  uint64_t version = 0;
  bool full = false;
  uint64_t base_version = 0;  // The base's version, unless full.
  std::map<std::string, std::string> changed;
  std::vector<std::string> removed;  // Sorted.

  bool operator==(const BundleDelta&) const = default;
};

// The bundle of a node that bears `labels`.
Bundle CompileBundle(const ObjectSet& set, const NodeLabels& labels);

// Full when `from` is nullptr, or when that takes fewer bytes: so no delta is larger than a full
// bundle, which has a limit. Applied to `from` it gives `to`.
BundleDelta DeltaFrom(const Bundle* from, const Bundle& to);

// What an agent makes of `delta`; the law of DeltaFrom(), and a model for the agent.
// nullopt: `delta` is relative to another version than that of `from`.
std::optional<Bundle> ApplyDelta(const Bundle* from, const BundleDelta& delta);

// The policy of a set, compiled for all nodes. Immutable, except what it remembers: that belongs to
// whoever has the BundleHistory. May be made on any thread.
class CompiledPolicy {
 public:
  explicit CompiledPolicy(const ObjectSet& set);

  uint64_t version() const { return version_; }
  bool uniform() const { return choices_.empty(); }  // All nodes get all entries.
  size_t choices() const { return choices_.size(); }

  // What a node that bears `labels` gets: the same pointer for all that get the same.
  std::shared_ptr<const Bundle> Select(const NodeLabels& labels);

 private:
  struct Entry {
    std::string key;
    NodeEntry entry;
  };

  uint64_t version_ = 0;
  std::vector<Entry> entries_;
  std::vector<size_t> choices_;  // The entries that want labels.
  // The bundles by which of `choices_` are in them, one bit each. There is at most one for each set
  // of labels that nodes bear.
  std::map<std::vector<bool>, std::shared_ptr<const Bundle>> by_selection_;
};

// The bundles of the present set and of the last ones before it. Nodes that get the same entries
// share one bundle, and keep it alive for as long as they have to catch up from it: that is why it
// is handed out as a shared_ptr. Not thread-safe; the server's loop owns it.
class BundleHistory {
 public:
  static constexpr size_t kKept = 8;  // Versions, with the present one.

  explicit BundleHistory(const ObjectSet& set);

  // Makes `next` the present one. True when nodes get something else than before; false, and
  // nothing changes, when the bundles are of the same version.
  bool Advance(CompiledPolicy next);
  bool Advance(const ObjectSet& set) { return Advance(CompiledPolicy(set)); }

  uint64_t version() const { return kept_.back().version(); }
  // Returns how many entries a node gets only by its labels: what For() costs.
  size_t choices() const { return kept_.back().choices(); }

  // The present bundle of a node that bears `labels`. The same pointer for all that get the same.
  std::shared_ptr<const Bundle> For(const NodeLabels& labels);

  // What an agent has that says it keeps `version` and bears `labels`; nullptr when that is not
  // known, and it needs a full bundle: the version is not kept, or its entries depend on the labels
  // the node bore then. Within a session, what was last acknowledged is the better base.
  std::shared_ptr<const Bundle> KnownTo(uint64_t version, const NodeLabels& labels);

 private:
  std::deque<CompiledPolicy> kept_;  // Oldest first; never empty.
};

}  // namespace spoke::ipam
