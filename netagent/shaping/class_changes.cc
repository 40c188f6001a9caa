#include "netagent/shaping/class_changes.h"

#include <algorithm>
#include <map>
#include <set>

namespace spoke::netagent {
namespace {

struct There {
  ShapeClass state;
  bool has_children = false;
  size_t depth = 0;
};
using ById = std::map<ShapeClassId, There>;

ById Index(const std::vector<ShapeClass>& there) {
  ById by_id;
  for (const ShapeClass& state : there) by_id[state.id].state = state;
  for (auto& [id, entry] : by_id) {
    const auto parent = by_id.find(entry.state.parent);
    if (parent != by_id.end()) parent->second.has_children = true;
    // The walk is bounded, whatever was read.
    ShapeClassId at = entry.state.parent;
    while (entry.depth <= by_id.size() && by_id.count(at) != 0) {
      at = by_id.at(at).state.parent;
      ++entry.depth;
    }
  }
  return by_id;
}

// Returns whether what is there can become what is wanted without being removed.
bool CanStay(const There& there, const ShapeClass& wanted) {
  if (there.state.parent != wanted.parent) return false;
  // A leaf never turns into a class with children, nor back: flows may name it meanwhile.
  return wanted.queue.is_zero() ? there.state.queue.is_zero() : !there.has_children;
}

bool SameClass(const ShapeClass& there, const ShapeClass& wanted) {
  const bool same_quantum =
      wanted.queue.is_zero() || wanted.quantum.is_zero() || there.quantum == wanted.quantum;
  return there.rate == wanted.rate && there.ceil == wanted.ceil && there.burst == wanted.burst &&
         same_quantum;
}

}  // namespace

ClassChanges PlanClassChanges(const std::vector<ShapeClass>& there,
                              const std::vector<ShapeClass>& wanted) {
  const ById by_id = Index(there);
  ClassChanges changes;
  std::set<ShapeClassId> stays;
  std::set<ShapeClassId> ready;  // The classes that are there after `first`.
  for (const ShapeClass& one : wanted) {
    const auto at = by_id.find(one.id);
    const bool under_ready = one.parent == 0 || ready.count(one.parent) != 0;
    const bool under_kept = one.parent == 0 || stays.count(one.parent) != 0;
    if (at != by_id.end() && under_kept && CanStay(at->second, one)) {
      stays.insert(one.id);
      ready.insert(one.id);
      const ClassChange change{one, !SameClass(at->second.state, one),
                               at->second.state.queue != one.queue};
      if (change.set_class || change.set_queue) changes.first.push_back(change);
    } else if (at == by_id.end() && under_ready) {
      ready.insert(one.id);
      changes.first.push_back({one, true, !one.queue.is_zero()});
    } else {
      changes.again.push_back({one, true, !one.queue.is_zero()});
    }
  }
  for (const auto& [id, entry] : by_id) {
    if (stays.count(id) == 0) changes.removed.push_back(id);
  }
  std::stable_sort(
      changes.removed.begin(), changes.removed.end(),
      [&](ShapeClassId a, ShapeClassId b) { return by_id.at(a).depth > by_id.at(b).depth; });
  for (const auto* list : {&changes.first, &changes.again}) {
    for (const ClassChange& change : *list) {
      changes.differences += (change.set_class ? 1U : 0U) + (change.set_queue ? 1U : 0U);
    }
  }
  // These classes come again, and are counted there.
  std::set<ShapeClassId> again;
  for (const ClassChange& change : changes.again) again.insert(change.wanted.id);
  for (const ShapeClassId id : changes.removed) changes.differences += again.count(id) == 0 ? 1 : 0;
  return changes;
}

}  // namespace spoke::netagent
