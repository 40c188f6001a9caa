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

#include "ipam-server/core/policy/object.h"
#include "ipam-server/core/policy/object_set.h"

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
  uint64_t base_version = 0;  // Unless full.
  std::map<std::string, std::string> changed;
  std::vector<std::string> removed;  // Sorted.

  bool operator==(const BundleDelta&) const = default;
};

// The bundle of a node that bears `labels`.
Bundle CompileBundle(const ObjectSet& set, const NodeLabels& labels);

// Full when `from` is nullptr, or when that is the shorter way. Applied to `from` it gives `to`.
BundleDelta DeltaFrom(const Bundle* from, const Bundle& to);

// What an agent makes of `delta`; the law of DeltaFrom(), and a model for the agent.
// nullopt: `delta` is relative to another version than that of `from`.
std::optional<Bundle> ApplyDelta(const Bundle* from, const BundleDelta& delta);

// The bundles of the present set and of the last ones before it. Nodes that get the same entries
// share one bundle, and keep it alive for as long as they have to catch up from it: that is why it
// is handed out as a shared_ptr. Not thread-safe; the server's loop owns it.
class BundleHistory {
 public:
  static constexpr size_t kKept = 8;  // Versions, with the present one.

  explicit BundleHistory(const ObjectSet& set);

  // Makes `set` the present one. True when nodes get something else than before; false, and nothing
  // changes, when the bundles are of the same version.
  bool Advance(const ObjectSet& set);

  uint64_t version() const { return kept_.back().version; }

  // The present bundle of a node that bears `labels`. The same pointer for all that get the same.
  std::shared_ptr<const Bundle> For(const NodeLabels& labels);

  // What an agent has that says it keeps `version` and bears `labels`; nullptr when that is not
  // known, and it needs a full bundle: the version is not kept, or its entries depend on the labels
  // the node bore then. Within a session, what was last acknowledged is the better base.
  std::shared_ptr<const Bundle> KnownTo(uint64_t version, const NodeLabels& labels);

 private:
  struct Entry {
    std::string key;
    NodeEntry entry;
  };
  struct Compiled {
    uint64_t version = 0;
    bool uniform = true;  // All nodes get all entries.
    std::vector<Entry> entries;
    // By which entries are in it, one bit each. At most one for each set of labels that nodes bear.
    std::map<std::vector<bool>, std::shared_ptr<const Bundle>> by_selection;
  };

  static Compiled Compile(const ObjectSet& set);
  static std::shared_ptr<const Bundle> Select(Compiled& compiled, const NodeLabels& labels);

  std::deque<Compiled> kept_;  // Oldest first; never empty.
};

}  // namespace spoke::ipam
