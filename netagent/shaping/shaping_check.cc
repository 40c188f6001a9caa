#include "netagent/shaping/shaping_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

const char* NameOf(TrafficDirection direction) {
  return direction == TrafficDirection::kIngress ? "ingress" : "egress";
}

struct ClassPlace {
  int depth = 0;
  bool is_leaf = false;
  bool has_children = false;
};
using ClassPlaces = std::map<ShapeClassId, ClassPlace>;

absl::Status CheckClass(const ShapeClass& wanted, const char* tree, ClassPlaces& places) {
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        fmt::format("{} class {:x} (parent {:x}): {}", tree, wanted.id, wanted.parent, why));
  };
  if (wanted.id == 0) return refuse("0 is no number of a class");
  if (wanted.id > kMaxShapeClassId) return refuse("its number is too high");
  if (wanted.rate.is_zero()) return refuse("has no rate");
  for (const units::ByteCount size : {wanted.burst, wanted.quantum, wanted.queue}) {
    if (size.count() > UINT32_MAX) return refuse("has a burst, quantum or queue above 4 GiB");
  }
  if (wanted.ceil < wanted.rate) return refuse("may have less than its own rate");
  int depth = 1;
  if (wanted.parent != 0) {
    const auto parent = places.find(wanted.parent);
    if (parent == places.end()) return refuse("its parent does not come before it");
    if (parent->second.is_leaf) return refuse("its parent has a queue");
    parent->second.has_children = true;
    depth = parent->second.depth + 1;
  }
  if (depth > kMaxTreeDepth) return refuse(fmt::format("is deeper than {}", kMaxTreeDepth));
  if (!places.emplace(wanted.id, ClassPlace{depth, !wanted.queue.is_zero()}).second) {
    return refuse("is there twice");
  }
  return absl::OkStatus();
}

absl::StatusOr<ClassPlaces> CheckTree(const std::vector<ShapeClass>& tree, const char* name) {
  ClassPlaces places;
  for (const ShapeClass& wanted : tree) RETURN_IF_ERROR(CheckClass(wanted, name, places));
  for (const auto& [id, place] : places) {
    if (place.is_leaf || place.has_children) continue;
    return absl::InvalidArgumentError(
        fmt::format("{} class {:x} has neither a queue nor children", name, id));
  }
  return places;
}

absl::Status CheckRange(const ClassRange& range) {
  if (range.first.family() == range.last.family() && !(range.last < range.first)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format("the scope's addresses {} to {} are no range",
                                                range.first.ToString(), range.last.ToString()));
}

absl::Status CheckOverlaps(const std::vector<ClassRange>& scopes) {
  std::vector<const ClassRange*> sorted;
  for (const ClassRange& range : scopes) {
    RETURN_IF_ERROR(CheckRange(range));
    sorted.push_back(&range);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const ClassRange* a, const ClassRange* b) { return a->first < b->first; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const ClassRange& before = *sorted[i - 1];
    if (before.last.family() != sorted[i]->first.family() || before.last < sorted[i]->first) {
      continue;
    }
    return absl::InvalidArgumentError(fmt::format("{} is in two scopes, {} and {}",
                                                  sorted[i]->first.ToString(), before.number,
                                                  sorted[i]->number));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckShapingTables(const ShapingTables& tables) {
  std::array<ClassPlaces, 2> places;
  for (const TrafficDirection direction : kBothDirections) {
    const auto i = static_cast<size_t>(direction);
    ASSIGN_OR_RETURN(places.at(i), CheckTree(tables.trees.at(i), NameOf(direction)));
  }
  if (tables.flows.size() > kMaxShapedFlows || tables.buckets.size() > kMaxConnectionBuckets) {
    return absl::InvalidArgumentError(
        fmt::format("{} flows and {} buckets; there is room for {} and {}", tables.flows.size(),
                    tables.buckets.size(), kMaxShapedFlows, kMaxConnectionBuckets));
  }
  std::set<uint16_t> buckets;
  for (const ConnectionBucket& bucket : tables.buckets) {
    if (bucket.id != 0 && buckets.insert(bucket.id).second) continue;
    return absl::InvalidArgumentError(
        fmt::format("bucket {} is there twice, or has no number", bucket.id));
  }
  std::set<std::tuple<uint32_t, ClassNumber, TrafficDirection>> seen;
  for (const ShapedFlow& flow : tables.flows) {
    const auto refuse = [&](std::string_view why) {
      return absl::InvalidArgumentError(fmt::format("the {} flow of link {} with scope {} {}",
                                                    NameOf(flow.direction), flow.host_index,
                                                    flow.scope, why));
    };
    const ClassPlaces& classes = places.at(static_cast<size_t>(flow.direction));
    const auto at = classes.find(flow.class_id);
    if (flow.class_id != 0 && (at == classes.end() || !at->second.is_leaf)) {
      return refuse(fmt::format("is of class {:x}, which is no leaf of its tree", flow.class_id));
    }
    if (flow.bucket != 0 && buckets.count(flow.bucket) == 0) {
      return refuse(fmt::format("is of bucket {}, which is not there", flow.bucket));
    }
    if (flow.host_index == 0) return refuse("has no link");
    if (flow.scope == kWholeLink && flow.direction == TrafficDirection::kIngress) {
      return refuse("cannot be: the limit of what a pod gets is at its link");
    }
    if (!seen.insert({flow.host_index, flow.scope, flow.direction}).second) {
      return refuse("is there twice");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<AddressBlock<ClassNumber>>> ScopeBlocks(const ShapingTables& tables) {
  RETURN_IF_ERROR(CheckOverlaps(tables.scopes));
  std::vector<AddressBlock<ClassNumber>> blocks;
  // Learned ranges come first, so that a range's block of the same address is the one that goes.
  for (const ClassRange& learned : tables.learned) {
    if (learned.first != learned.last) {
      return absl::InvalidArgumentError(fmt::format("{} to {} are learned, but are not one address",
                                                    learned.first.ToString(),
                                                    learned.last.ToString()));
    }
    blocks.push_back({ip::Prefix::Host(learned.first), learned.number});
  }
  for (const ClassRange& range : tables.scopes) {
    for (const ip::Prefix& prefix : BlocksOf(range.first, range.last)) {
      blocks.push_back({prefix, range.number});
    }
  }
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const auto& a, const auto& b) { return a.prefix < b.prefix; });
  blocks.erase(std::unique(blocks.begin(), blocks.end(),
                           [](const auto& a, const auto& b) { return a.prefix == b.prefix; }),
               blocks.end());
  if (blocks.size() > kMaxShapedPrefixes) {
    return absl::InvalidArgumentError(
        fmt::format("the scopes come to {} blocks of addresses; "
                    "there is room for {}",
                    blocks.size(), kMaxShapedPrefixes));
  }
  return blocks;
}

}  // namespace spoke::netagent
